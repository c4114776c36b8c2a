"""The operator at which the runs of a measured comparison first differ: its module and its source line.

The first token whose outputs differ, or the last one if the model is not causal, is found in the outputs of both runs
by its values. The two calls that gave them are recorded operator by operator, and the search in `step_search` finds the
operator. It compares what a token sees up to itself, so the last token of a document shows all of the document.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from orderproof.auditing.explain.entries import Frame, frame_at
from orderproof.auditing.explain.operator_steps import CallRecorder, Step
from orderproof.auditing.explain.source_name import is_own_file
from orderproof.auditing.explain.step_search import StepSearch
from orderproof.auditing.explain.token_parts import TokenOfCall
from orderproof.laws.measured import CachedCalls, Comparison

MAX_TOKENS = 4096  # of the outputs of a call that is searched
FIRST_SHARE = 1e-2  # of the largest difference: a token that differs by more is the first that differs
MAX_TWINS = 16  # tokens with one output that are compared by what they are given


class Place(NamedTuple):
    """A module of the model, a line of its code, and how the operator there mixes tokens."""

    module: str
    frame: Frame
    kind: str

    @property
    def own_frame(self) -> Frame:
        """The line, if it is the model's own code and not a library's."""
        return self.frame if is_own_file(self.frame.file) else Frame()


def first_difference_place(comparison: Comparison, calls: CachedCalls, length: int) -> Place | None:
    """Where the runs of a comparison first differ; None if the token cannot be followed."""
    try:
        return (_cut_place if comparison.counts_tokens else _place)(comparison, calls, length)
    except Exception:  # noqa: BLE001 - tensors of any kind are compared, and a verdict does not wait for a place
        return None


def _place(comparison: Comparison, calls: CachedCalls, length: int) -> Place | None:
    seen = _run(comparison, calls, length, CallRecorder())
    if seen is None:
        return None
    recorder, expected, actual = seen
    found = _find_pair(recorder, expected, actual)
    if found is None:
        return None
    one, other = found
    watched = sorted({recorder.calls.index(token.call) for token in (one, other)})
    again = _run(comparison, calls, length, CallRecorder(watched))
    if again is None or len(again[0].calls) != len(recorder.calls):
        return None
    pair = [token._replace(call=again[0].calls[recorder.calls.index(token.call)]) for token in (one, other)]
    search = StepSearch(pair[0], pair[1])
    step = search.first_of_positions() if comparison.from_positions else search.origin()
    if step is None:
        return None
    return place_of(step, search.kind(step))


def _cut_place(comparison: Comparison, calls: CachedCalls, length: int) -> Place | None:
    """The last operator of a call that cuts its tokens to those that have outputs."""
    fresh, recorder = calls.as_before_the_first_call(own=True), CallRecorder((0,))
    if fresh is None:
        return None
    comparison.run(fresh.for_adapter(recorder.watch(fresh.adapter)).at_length(length))
    call = recorder.calls[0]
    count = None if call.output is None else call.output.shape[1]
    cuts = [
        step for step in call.steps for operand in step.operands
        if step.value is not None and operand.value is not None and step.value.dim() == operand.value.dim()
        and [(a, b) for a, b in zip(operand.value.shape, step.value.shape, strict=True) if a != b]
        == [(call.tokens, count)]
    ]  # fmt: skip
    if not cuts:
        return None
    return place_of(cuts[-1], "")


def place_of(step: Step, kind: str) -> Place:
    """The place of a step that mixes tokens in this way."""
    return Place(step.key.module, frame_at(step.key.file, step.key.line) if step.key.file else Frame(), kind)


def _run(
    comparison: Comparison, calls: CachedCalls, length: int, recorder: CallRecorder
) -> tuple[CallRecorder, Tensor, Tensor] | None:
    """The recorder after the comparison, and the vectors of a token that differs; None if it cannot be run."""
    own = calls.as_before_the_first_call(own=True)  # it is given hooks
    if own is None or not isinstance(own.adapter.module, nn.Module):
        return None
    fresh = own.float32  # in a narrower dtype, rounding differs at the first operator
    watched = recorder.watch(fresh.adapter)
    expected, actual = comparison.run(fresh.for_adapter(watched).at_length(length))[:2]
    if expected.shape != actual.shape or expected.dim() < 2 or not expected.is_floating_point():
        return None
    sizes = (expected - actual).abs().flatten(0, -2).amax(-1)
    differing = (sizes > FIRST_SHARE * sizes.max()).nonzero() if bool(sizes.max() > 0) else sizes.new_zeros(1).long()
    place = int(differing[0 if fresh.adapter.causal else -1])
    return recorder, expected.flatten(0, -2)[place], actual.flatten(0, -2)[place]


def _find_pair(recorder: CallRecorder, expected: Tensor, actual: Tensor) -> tuple[TokenOfCall, TokenOfCall] | None:
    """The tokens whose outputs are these vectors: the first one, and the last one in another call.

    Of several tokens with one output, those that are given the same are a pair.
    """
    ones, others = _find(recorder, expected), _find(recorder, actual)[::-1]
    pairs = [(one, other) for one in ones for other in others if one.call is not other.call or one != other]
    same = (pair for pair in pairs if torch.equal(pair[0].given, pair[1].given))
    return next(same, pairs[0] if pairs else None)


def _find(recorder: CallRecorder, vector: Tensor) -> list[TokenOfCall]:
    """The tokens whose output is this vector, in the order of the calls."""
    found = []
    for call in recorder.calls:
        output = call.output
        if output is None or output.shape[-1] != vector.shape[-1] or output.shape[:2].numel() > MAX_TOKENS:
            continue
        places = (output == vector).all(-1).nonzero()[:MAX_TWINS].tolist()
        found += [TokenOfCall(call, row, token) for row, token in places]
    return found[:MAX_TWINS] + found[MAX_TWINS:][-MAX_TWINS:]
