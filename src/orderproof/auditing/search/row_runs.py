"""Many changes in one call: the rows of each change are next to those of the first run.

A causal mask with one hole shows after one cut only, so every cut is tried. A run for each takes long; rows of one call
do not. Rows may depend on each other, so a difference is evidence only if a pair of runs repeats it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from orderproof.auditing.record.execution import LabelledInputs
from orderproof.diagnosis.counterexample import Executor
from orderproof.diagnosis.tolerances import FLOAT32_SUSPICION
from orderproof.laws import InputChange
from orderproof.models.row_counts import inputs_with_rows
from orderproof.recording.execution import relative_difference

if TYPE_CHECKING:
    from orderproof.auditing.search.law_runs import LawRuns

MOST_SCORES = 1_000_000  # rows times tokens times tokens of one call: 4 MB of scores in float32 for each head


def differing_changes(runs: LawRuns, length: int, changes: Sequence[InputChange]) -> list[InputChange] | None:
    """The changes whose rows differ from those of the first run, the largest difference first.

    None if rows cannot be added: an input has tokens and no rows, or the model takes one number of rows.
    """
    row = _axis_of_rows(runs)
    if row is None:
        return None
    sizes: list[float] = []
    try:
        has_rows = inputs_with_rows(runs.runs.subject)
        tokens, others = (_rows_of_a_change(runs, x, has_rows) for x in runs.tokens(length))
        rows = len(tokens.inputs[has_rows.index(True)])
        for part in _parts(changes, max(1, MOST_SCORES // (rows * length**2) - 1)):
            sizes += _differences(runs, tokens, others, part, row)
    except Exception as error:  # noqa: BLE001 - third-party code: it may fail with this number of rows in any way
        runs.note_internal(error)
        return None
    except SystemExit:  # raised by the model
        return None
    found = sorted(zip(sizes, range(len(changes)), strict=True), reverse=True)
    return [changes[k] for size, k in found if FLOAT32_SUSPICION < size < math.inf]


def deviations_in_one_call(
    runs: LawRuns, length: int, changes: Sequence[InputChange], executor: Executor
) -> list[float] | None:
    """How far each change deviates from the law, with the rows of all of them in one call.

    None if rows cannot be added, or if the law tells rows apart: those of one change must not see another one. Of
    another law a deviation of zero is evidence as far as rows are independent.
    """
    row = _axis_of_rows(runs)
    if row is None or runs.law.reads_rows or not changes:
        return None
    try:
        tokens, others = runs.tokens(length)
        return _differences(runs, tokens, others, changes, row, executor)
    except Exception as error:  # noqa: BLE001 - third-party code: it may fail with this number of rows in any way
        runs.note_internal(error)
        return None


def _axis_of_rows(runs: LawRuns) -> int | None:
    """The axis of an output that runs over rows; None if rows cannot be added."""
    subject = runs.runs.subject
    axes = runs.context.output_axes.get(runs.output)
    no_rows = any(
        axis is not None and not has for axis, has in zip(subject.token_axes, inputs_with_rows(subject), strict=True)
    )
    return None if axes is None or no_rows or runs.runs.has_fixed_length or subject.packs_documents else axes.row


def _rows_of_a_change(runs: LawRuns, inputs: LabelledInputs, has_rows: Sequence[bool]) -> LabelledInputs:
    """One row, or those of a call if the law tells rows apart."""
    if runs.law.reads_rows:
        return inputs
    first = tuple(x[:1] if has else x for x, has in zip(inputs.inputs, has_rows, strict=True))
    return LabelledInputs(first, inputs.labels)


def _parts(changes: Sequence[InputChange], size: int) -> Iterator[Sequence[InputChange]]:
    yield from (changes[start : start + size] for start in range(0, len(changes), size))


def _differences(
    runs: LawRuns, tokens: LabelledInputs, others: LabelledInputs, changes: Sequence[InputChange], row: int,
    executor: Executor = "model",
) -> list[float]:  # fmt: skip
    """How far the output of each change deviates from the law, with all of them in one call."""
    has_rows = inputs_with_rows(runs.runs.subject)
    each = [tokens.inputs, *(runs.changed(tokens, others, change) for change in changes)]
    joined: tuple[Tensor, ...] = tuple(
        torch.cat(list(same)) if has else same[0] for same, has in zip(zip(*each, strict=True), has_rows, strict=True)
    )
    output = runs.runs.outputs(joined, executor)[runs.output]
    before, *after = output.chunk(len(each), row)
    pairs = (
        runs.law.expected_and_actual(before, x, runs.dims, change) for x, change in zip(after, changes, strict=True)
    )
    return [relative_difference(*pair) for pair in pairs]
