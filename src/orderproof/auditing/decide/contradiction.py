"""The cause of two runs that contradict a proof: kept state, chance, another program in float64, or a wrong proof.

A proof is about the recorded call, in the model's own dtype. The runs that test it start from the state that earlier
calls left, and those in float64 are of a copy of the model, which takes other branches if the code asks for the dtype.
"""

from __future__ import annotations

import math

import torch
from torch.fx import Node

from orderproof.auditing.explain.entries import base_name, source_of
from orderproof.auditing.search.deviation import measured_deviation
from orderproof.auditing.search.law_runs import LawRuns
from orderproof.diagnosis.tolerances import FLOAT32_DIFFERENCE, ROUNDING_FACTOR
from orderproof.recording.capture import capture
from orderproof.recording.captured_graph import CapturedGraph
from orderproof.recording.execution import relative_difference
from orderproof.records.audit import Deviation

NOT_REPEATABLE = "two runs on equal inputs give other outputs, by state that calls change or by chance"
STATE_DIFFERS = "calls change the state of the module, and runs that start in the same state agree"
REPETITIONS = 4  # of two runs on equal inputs: chance may give the same outputs twice
PROVER_ERROR = "an error in the prover; please report it"


def contradiction_reason(search: LawRuns, deviation: Deviation) -> str:
    """The reason of a finding whose proof is contradicted by two runs that deviate so."""
    size = max(deviation.float32 or 0.0, deviation.float64 or 0.0)
    found = f"a proof was found, but two runs differ by {size:.2g}: "
    restored = search.with_restored_state()
    if not measured_deviation(restored)[1]:
        return found + STATE_DIFFERS
    for _ in range(REPETITIONS):
        restored.forget_runs()
        if not restored.repeats(search.context.token_count):
            return found + NOT_REPEATABLE
    of_float64_only = (deviation.float32 or 0.0) <= _rounding(restored)
    if of_float64_only and (program := other_program_in_float64(restored)):
        return f"{program}: a proof was found for {_dtype_name(restored)}, but two runs in float64 differ by {size:.2g}"
    return found + PROVER_ERROR


def other_program_in_float64(search: LawRuns) -> str:
    """That the model computes other things in float64 than in its own dtype, and where; empty if it does not.

    Its outputs for equal inputs differ by more than rounding, or have other shapes.
    """
    runs, inputs = search.runs, search.tokens(search.context.token_count)[0].inputs
    if search.graph is not None or runs.runs_graph or _dtype_name(search) == "float64":
        return ""
    try:
        own, wide = (runs.known_outputs(inputs, executor)[search.output] for executor in ("model", "float64 copy"))
        size = relative_difference(own, wide) if own.shape == wide.shape else math.inf
        rounding = _rounding(search)
    except Exception:  # noqa: BLE001 - third-party code: it may not run in float64
        return ""
    if size <= rounding:
        return ""
    line = _first_other_line(search)
    place = f" ({line})" if line else ""
    return f"the model computes other things in float64 than in {_dtype_name(search)}{place}"


def _rounding(search: LawRuns) -> float:
    """The greatest difference of outputs in the model's own dtype that may be rounding."""
    inputs = search.tokens(search.context.token_count)[0].inputs
    return max(FLOAT32_DIFFERENCE, ROUNDING_FACTOR * search.rounding_noise(inputs, "model"))


def _dtype_name(search: LawRuns) -> str:
    """The dtype of the model: ``float32``."""
    module = search.runs.subject.module
    tensors = (x for x in (*module.parameters(), *module.buffers()) if x.is_floating_point())
    first = next(tensors, None)
    return str(torch.get_default_dtype() if first is None else first.dtype).removeprefix("torch.")


def _first_other_line(search: LawRuns) -> str:
    """The line of the first operator that the model runs in one of both dtypes only; empty if none is found."""
    own, context = search.runs.captured, search.context
    inputs = context.subject.sample(context.length, context.seed).inputs
    wide = tuple(x.double() if x.is_floating_point() else x for x in inputs)
    try:
        other = capture(search.runs.copied_module("float64 copy"), wide, inside=context.subject.wrapped_path)
    except Exception:  # noqa: BLE001 - third-party code: it may not be recorded in float64
        return ""
    return "" if own is None else _line_of_difference(own, other)


def _line_of_difference(one: CapturedGraph, other: CapturedGraph) -> str:
    """The line of the first operator that only one of two graphs runs at its place; empty if there is none."""
    first, second = _operators(one), _operators(other)
    pairs = enumerate(zip(first, second, strict=False))
    same = next((k for k, (a, b) in pairs if a.target != b.target), min(len(first), len(second)))
    first, second = first[same:], second[same:]
    is_later = bool(first) and first[0].target in {node.target for node in second}
    different = second if is_later or not first else first
    return source_of(different[0])[0] if different else ""


def _operators(captured: CapturedGraph) -> list[Node]:
    """The operators of a graph without those that convert dtypes."""
    nodes = [node for node in captured.graph.nodes if node.op == "call_function"]
    return [node for node in nodes if base_name(node) not in ("to", "_to_copy")]
