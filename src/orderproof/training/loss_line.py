"""The line at which a training step goes wrong: the first operator that differs between two calls of its loss.

The calls of a comparison are recorded operator by operator, from the batch to the loss. A difference in a token is
followed back from the logits, as for other measured laws. A difference with a label is the first one in the order of
the loss. What never reaches the model is named at the call of the model, a mean of means at the end of the loss, and
labels that the batch should not have where the batch was made, if that was seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from orderproof.auditing.explain.entries import Frame, frame_at
from orderproof.auditing.explain.first_difference import Place, place_of
from orderproof.auditing.explain.operator_steps import CallRecorder, RecordedCall, Step
from orderproof.auditing.explain.source_name import is_own_file
from orderproof.auditing.explain.step_search import StepSearch, step_twins, steps_by_key
from orderproof.auditing.explain.token_parts import TokenOfCall
from orderproof.laws.mixing_kinds import ATTENTION, OTHER
from orderproof.laws.training import Blame, TermComparison, TrainingBatch, TrainingStep
from orderproof.laws.training.recomputation import without_recomputation
from orderproof.training.made_lines import made_line, users_line
from orderproof.training.rank_line import place_on_rank


def loss_place(step: TrainingStep, comparison: TermComparison) -> Place | None:
    """The place of the difference in a comparison; None if it is not seen."""
    try:
        return _place(step, comparison)
    except Exception:  # noqa: BLE001 - tensors of any kind are compared, and a verdict does not wait for a place
        return None


def _place(step: TrainingStep, comparison: TermComparison) -> Place | None:
    blame, calls = comparison.blame, comparison.calls
    if comparison.made is not None and (frame := made_line(comparison.made)).source:
        return Place("", frame, OTHER)
    if blame is Blame.REDUCTION:
        return _last(_recorded(step, step.batch).steps)
    if blame is Blame.RECOMPUTED:
        return _recomputed(step)
    if blame in (Blame.SHARD, Blame.COLLECTIVE) and calls is not None:
        return place_on_rank(step, calls[0], of_exchange=blame is Blame.COLLECTIVE)
    if blame is Blame.MODEL_CALL and (frame := _model_call(step)).source:
        return Place("", frame, OTHER)
    if calls is None:
        return None
    one, other = (TokenOfCall(_recorded(step, at.batch), at.row, at.token) for at in calls)
    if blame in (Blame.OPERATOR, Blame.MODEL_CALL):
        search = StepSearch(one, other)
        found = search.origin()
        return None if found is None else _own_mask(step, place_of(found, search.kind(found)))
    changed = list(_differing(one, other, fractions=blame is Blame.TERMS))
    return place_of(changed[0], OTHER) if changed else None


def _own_mask(step: TrainingStep, place: Place) -> Place:
    """The place; of attention in a library, the line that made the mask of queries and keys in the batch."""
    mask = step.batch.values.get(step.batch.roles.get("mask"))
    if place.own_frame.source or place.kind != ATTENTION or not isinstance(mask, Tensor) or mask.dim() < 3:
        return place
    frame = made_line(mask)
    return place._replace(frame=frame) if frame.source else place


def _recorded(step: TrainingStep, batch: TrainingBatch) -> RecordedCall:
    """A call of the loss with its steps, and the logits as its output."""
    recorder = CallRecorder()
    logits = step.watched(batch, recorder.recording(step.model, batch.tokens))
    (call,) = recorder.calls
    call.output = logits
    return call


def _last(steps: Sequence[Step]) -> Place | None:
    """The last step in a file of the user, else the last one."""
    shown = [step for step in steps if step.key.file]
    own = [step for step in shown if is_own_file(step.key.file)]
    return place_of((own or shown)[-1], OTHER) if shown else None


def _differing(one: TokenOfCall, other: TokenOfCall, *, fractions: bool) -> Iterator[Step]:
    """The steps of the other call that differ from their twins, in order; those with fractions only."""
    twins = step_twins(one, other)
    for step in other.call.steps:
        twin = twins.get(step)
        if twin is None or step.value is None or twin.value is None or not step.key.file:
            continue
        if (step.value.is_floating_point() or not fractions) and not torch.equal(step.value, twin.value):
            yield step


def _recomputed(step: TrainingStep) -> Place | None:
    """The first step that has another value when its line runs again for the gradient, else where it is asked to."""
    recorder = CallRecorder()
    step.gradients(step.batch, recorder.recording(step.model, step.batch.tokens))
    kept = CallRecorder()
    with without_recomputation() as lines:
        step.gradients(step.batch, kept.recording(step.model, step.batch.tokens))
    once, runs = steps_by_key(kept.calls[0]), steps_by_key(recorder.calls[0])
    twice = [key for key in once if key.file and len(runs.get(key, ())) == 2 * len(once[key])]
    pairs = [pair for key in twice for pair in zip(runs[key], runs[key][len(once[key]) :], strict=False)]
    changed = (b for a, b in pairs if a.value is not None and b.value is not None and not torch.equal(a.value, b.value))
    if (found := next(changed, None)) is not None:
        return place_of(found, OTHER)
    file, _, line = lines[0]
    return Place("", frame_at(file, line), OTHER)


def _model_call(step: TrainingStep) -> Frame:
    """The line of the loss that calls the model; empty if that of the model is used."""
    found = [Frame()]

    def note(*_: Any) -> None:
        found.append(users_line())

    handle = step.model.register_forward_pre_hook(note)
    try:
        step.logits(step.batch)
    finally:
        handle.remove()
    return found[-1]
