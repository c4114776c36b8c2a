"""Comparison of recordings with open sizes and eager calls of several lengths."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext

import torch
from torch import Tensor, nn

from orderproof.auditing.execution import named_tensors
from orderproof.auditing.length_ranges import Piece
from orderproof.errors import first_line
from orderproof.kernel_switch import without_compiled_kernels
from orderproof.prover.compiled_code import without_compilation
from orderproof.prover.execution import relative_difference
from orderproof.prover.recording.module_state import RANDOM_GENERATOR, preserved_state
from orderproof.prover.recording.open_sizes import LEAST_SIZE
from orderproof.prover.recording.reachable_state import reachable_state
from orderproof.prover.recording.restored_state import restored_state
from orderproof.prover.symbolic.open_execution import execute_open
from orderproof.seeded_random import seeded_random
from orderproof.tolerances import SAME_GRAPH


def difference(
    module: nn.Module, pieces: Sequence[Piece], examples: Callable[[int], Iterator[tuple[Tensor, ...]]],
    lengths: Sequence[int] | None = None,
) -> str:  # fmt: skip
    """How recordings differ from eager calls of a module; empty if they agree.

    Args:
        module: The module that was recorded.
        pieces: Its recordings, each for a range of lengths.
        examples: The inputs of calls, by their number of tokens.
        lengths: The numbers of tokens of the calls, if the recordings have no open one.

    """
    compared, failure = 0, ""
    changed = any(set(graph.changed_state) - {RANDOM_GENERATOR} for piece in pieces for graph in piece.graphs)
    reached = reachable_state(module) if changed else None
    with preserved_state(module, reached):
        for piece in pieces:
            for tokens in piece.compared_lengths if lengths is None else lengths:
                for inputs in examples(tokens):
                    if len(inputs[0]) < LEAST_SIZE:
                        continue
                    # A recording is of one call, in the state of the module that was recorded.
                    with restored_state(module, reached) if changed else nullcontext():
                        outputs = _outputs(module, inputs)
                    if isinstance(outputs, str):  # a proof is about calls in which no operator raises an error
                        failure = outputs
                        continue
                    if found := _differs(piece, outputs, inputs, tokens):
                        return f"with {len(inputs[0])} rows of {tokens} tokens {found}"
                    compared += 1
    return "" if compared else failure or "no call of several rows could be compared with it"


def _outputs(module: nn.Module, inputs: tuple[Tensor, ...]) -> dict[str, Tensor] | str:
    """The outputs of an eager call, or how it fails."""
    try:
        with torch.no_grad(), seeded_random(0), without_compilation(), without_compiled_kernels():
            return named_tensors(module(*(x.clone() for x in inputs)))
    except Exception as error:  # noqa: BLE001 - third-party code: a call may fail in any way
        return f"an eager call fails: {first_line(error)}"


def _differs(piece: Piece, real: dict[str, Tensor], inputs: tuple[Tensor, ...], tokens: int) -> str:
    sizes = {"batch": inputs[0].shape[0], "tokens": tokens}
    try:
        found = [execute_open(graph, inputs, sizes) for graph in piece.graphs]
    except Exception as error:  # noqa: BLE001 - a recording that is not the call's may fail in any way
        return f"the recording cannot be run: {first_line(error)}"
    taken = [outputs for outputs in found if outputs is not None]
    if len(taken) != 1:
        return f"{len(taken)} of {len(piece.graphs)} recordings describe the call"
    for name, expected in real.items():
        if name not in taken[0] or taken[0][name].shape != expected.shape:
            return f"the recording has no output {name} of this shape"
        if relative_difference(expected, taken[0][name]) > SAME_GRAPH:
            return f"the recording computes another {name}"
    return ""
