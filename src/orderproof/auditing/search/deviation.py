"""How far runs deviate from a law that is proved: in the model's own dtype, and in float64."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from orderproof.auditing.search.law_runs import LawRuns
from orderproof.auditing.search.row_runs import deviations_in_one_call
from orderproof.cast_on_use import is_large
from orderproof.diagnosis.counterexample import FLOAT64_EXECUTORS
from orderproof.diagnosis.tolerances import FLOAT32_DIFFERENCE, FLOAT64_DIFFERENCE, ROUNDING_FACTOR
from orderproof.laws import InputChange
from orderproof.laws.proved.proved_law import evenly_spaced
from orderproof.recording.execution import relative_difference
from orderproof.recording.restored_state import changes_state
from orderproof.records.audit import Deviation

CHANGES_OF_A_LARGE_MODEL = 2  # of a proved law that are run in float64 too, where outputs are equal


def measured_deviation(
    runs: LawRuns, *, of_all_weights: bool = False, of_entries: bool = False
) -> tuple[Deviation, bool]:  # fmt: skip
    """The largest difference over the generators or cases of the law, and whether it is more than rounding.

    ``of_all_weights``: the law is proved for all weights. All changes but one of a large model are then run with
    matrices of low rank, and with its own only if they differ. That one is run with its own weights once for a law,
    and not for the graph of a completed map (``of_entries``): a witness shows there what the model does.
    """
    length, known = runs.context.token_count, runs.context.with_own_weights
    changes = [change for change, _, _ in runs.law.proof_cases(length, runs.context.batch_size)]
    stand_in = runs.stand_in if of_all_weights and changes else None
    if stand_in is not None and (of_entries or stand_in.agree(length, changes)):
        changes = changes if of_entries else changes[len(changes) // 2 :][:1]
        if of_entries or runs.law.name in known:
            found, contradicts = _deviation_of_changes(stand_in, stand_in, length, changes)
            if not contradicts:
                return found, False
        known.add(runs.law.name)
    return _deviation_of_changes(runs, stand_in, length, changes)


def _deviation_of_changes(
    runs: LawRuns, stand_in: LawRuns | None, length: int, changes: Sequence[InputChange]
) -> tuple[Deviation, bool]:  # fmt: skip
    float32: float | None = None
    float64: float | None = None
    contradicts = False
    pairs = [runs.pair(length, change, "model") for change in changes]
    equal = {k for k, pair in enumerate(pairs) if pair is not None and torch.equal(*pair)}
    most = CHANGES_OF_A_LARGE_MODEL if is_large(runs.runs.subject.module) else len(changes)
    in_float64 = set(evenly_spaced(len(changes), most) if changes else ())
    again = {k: changes[k] for k in sorted(in_float64 & equal)}
    agreeing = _agreeing_in_float64(stand_in, length, again) if stand_in else _agreeing_in_one_call(runs, length, again)
    for k, (change, pair) in enumerate(zip(changes, pairs, strict=True)):
        size = None if pair is None else relative_difference(*pair)
        if size is not None:
            float32 = max(float32 or 0.0, size)
        if k in equal and k not in in_float64:
            continue
        wide = agreeing[k] if k in agreeing else _float64_deviation(runs, length, change)
        if wide is not None:
            float64 = max(float64 or 0.0, wide)
        # A copy has a state of its own: of a module that keeps state, its own runs count too.
        own_runs_count = wide is None or changes_state(runs.runs.captured)
        if own_runs_count and size is not None and size > FLOAT32_DIFFERENCE:
            contradicts = contradicts or size > ROUNDING_FACTOR * runs.noise(length, change, "model", size)
    contradicts = contradicts or (float64 is not None and float64 > FLOAT64_DIFFERENCE)
    runs.note_float64_failure()
    return Deviation(float32=float32, float64=float64), contradicts


def _agreeing_in_one_call(runs: LawRuns, length: int, changes: Mapping[int, InputChange]) -> dict[int, float]:
    """The deviations of those changes that agree with the law in float64, in one call of a large model.

    The model's own outputs, in calls of their own, are equal bit for bit for each of these changes: float64 shows
    besides that no dependence is hidden by rounding.
    """
    if not is_large(runs.runs.subject.module):
        return {}
    sizes = deviations_in_one_call(runs, length, list(changes.values()), FLOAT64_EXECUTORS[0])
    return {k: size for k, size in zip(changes, sizes or (), strict=False) if size <= FLOAT64_DIFFERENCE}


def _agreeing_in_float64(stand_in: LawRuns, length: int, changes: Mapping[int, InputChange]) -> dict[int, float]:
    """The same for runs with matrices of low rank: what rounding may hide does not depend on the weights."""
    sizes = {k: _float64_deviation(stand_in, length, change) for k, change in changes.items()}
    return {k: size for k, size in sizes.items() if size is not None and size <= FLOAT64_DIFFERENCE}


def _float64_deviation(runs: LawRuns, length: int, change: InputChange) -> float | None:
    """The difference of a change in float64; None if nothing runs in it throughout."""
    for executor in FLOAT64_EXECUTORS:
        pair = runs.pair(length, change, executor)
        if pair is not None:
            size = relative_difference(*pair)
            if size <= FLOAT64_DIFFERENCE or size > ROUNDING_FACTOR * runs.noise(length, change, executor, size):
                return size
    return None
