"""The outputs that score a label: those whose gradient changes with it.

Labels of different rows and places are changed at once where that says which output is whose.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orderproof.errors import UnsupportedCallError

if TYPE_CHECKING:
    from orderproof.laws.training.training_step import TrainingStep

COUNTED = 1e-3  # of the largest change of a gradient: an output that changes by more scores the label
UNCOUNTED = 1e-6  # of the largest gradient: a label whose change moves it by less is not counted


@dataclass(frozen=True)
class ScoredLabel:
    """A label, the outputs of its row whose gradient it changes, and by how much."""

    row: int
    index: int
    outputs: tuple[int, ...]
    change: float  # relative to the largest gradient


def find_scored_labels(step: TrainingStep) -> tuple[ScoredLabel, ...]:
    """Some labels that must be counted, with the outputs that score them. Raises `UnsupportedCallError`."""
    places = step.batch.included().nonzero().tolist()
    if not places:
        raise UnsupportedCallError("its batch has no label that must be counted")
    count = min(step.tries, len(places))
    chosen = [places[round(k * (len(places) - 1) / max(count - 1, 1))] for k in range(count)]
    return tuple(scored for group in _apart(chosen) for scored in _scored_together(step, group))


def _scored_together(step: TrainingStep, places: list[tuple[int, int]]) -> list[ScoredLabel]:
    """The outputs of labels in different rows and at different places, changed at once; else one by one."""
    found = _scored(step, places)
    offsets = {x.outputs[0] - x.index for x in found if len(x.outputs) == 1}
    if len(places) > 1 and (len(offsets) != 1 or any(len(x.outputs) != 1 for x in found)):
        return [_scored(step, [place])[0] for place in places]
    return found


def _scored(step: TrainingStep, places: list[tuple[int, int]]) -> list[ScoredLabel]:
    """The outputs of some labels of different rows, all of which are changed."""
    batch = step.batch
    for row, index in places:
        batch = batch.with_other_label(row, index)
    change = (step.terms(batch).gradient - step.base.gradient).abs().amax(-1)
    largest, found = float(step.base.gradient.abs().max()), []
    for row, index in places:
        own = change if len(places) == 1 else change[row : row + 1]
        if float(own.max()) <= UNCOUNTED * largest:
            found.append(ScoredLabel(row, index, (), 0.0))
            continue
        counted = own > COUNTED * own.max()
        if int(counted.sum()) > 2 + int((step.base.gradient.abs().amax(-1) > 0).sum()) // 2:
            raise UnsupportedCallError(
                "one label changes most gradients, as weights of classes do: its terms are not apart"
            )
        outputs = tuple(counted[row if len(places) == 1 else 0].nonzero().flatten().tolist())
        found.append(ScoredLabel(row, index, outputs, float(own.max()) / largest))
    return found


def _apart(places: Sequence[Sequence[int]]) -> list[list[tuple[int, int]]]:
    """Groups of places [row, index] of different rows and indices, in order."""
    groups: list[list[tuple[int, int]]] = []
    for row, index in places:
        fitting = (group for group in groups if all(row != r and index != i for r, i in group))
        group = next(fitting, None)
        if group is None:
            groups.append([(row, index)])
        else:
            group.append((row, index))
    return groups
