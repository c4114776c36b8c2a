"""The operator at which the runs of a measured comparison first differ: its module and its source line.

The first token whose outputs differ is found in the outputs of both runs by its values. The two calls that gave them
are recorded operator by operator. An operator of one call has a twin in the other: the same operator at the same line
of the same module. Of their results only what belongs to the token is compared: its row, its place among the tokens of
its call, and the keys up to it. From the output the search follows the operands that differ. The operator whose
operands agree is the place. A line that only one of the calls runs has no twin: the search looks through it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from torch import Tensor, nn

from orderproof.auditing.explain.entries import Frame, frame_at
from orderproof.auditing.explain.operator_steps import CallRecorder, RecordedCall, Step, StepKey
from orderproof.auditing.explain.source_name import is_own_file
from orderproof.auditing.explain.token_parts import TokenOfCall, differ
from orderproof.laws.measured import CachedCalls, Comparison
from orderproof.laws.mixing_kinds import RECURRENCE, mixing_kind

MAX_TOKENS = 4096  # of the outputs of a call that is searched
FIRST_SHARE = 1e-2  # of the largest difference: a token that differs by more is the first that differs
_LAYOUTS = {
    "alias", "cat", "clone", "copy_", "detach", "expand", "_reshape_alias", "select", "slice", "split", "squeeze",
    "stack", "t", "_to_copy", "transpose", "unbind", "unsqueeze", "_unsafe_view", "view",
}  # fmt: skip


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
    seen = _run(comparison, calls, length, CallRecorder())
    if seen is None:
        return None
    recorder, expected, actual = seen
    one, other = _find(recorder, expected, last=False), _find(recorder, actual, last=True)
    if one is None or other is None or one == other:
        return None
    watched = sorted({recorder.calls.index(token.call) for token in (one, other)})
    again = _run(comparison, calls, length, CallRecorder(watched))
    if again is None or len(again[0].calls) != len(recorder.calls):
        return None
    pair = [token._replace(call=again[0].calls[recorder.calls.index(token.call)]) for token in (one, other)]
    found = _origin(pair[0], pair[1])
    if found is None:
        return None
    frame = frame_at(found.key.file, found.key.line) if found.key.file else Frame()
    return Place(found.key.module, frame, _kind(found, pair[0].call))


def _kind(step: Step, call: RecordedCall) -> str:
    """The kind of an operator; a line that runs once for each token of a call is a recurrence."""
    times, rest = divmod(sum(each.key == step.key for each in call.steps), call.tokens)
    return RECURRENCE if times and not rest and call.tokens > 1 else mixing_kind(step.name)


def _run(
    comparison: Comparison, calls: CachedCalls, length: int, recorder: CallRecorder
) -> tuple[CallRecorder, Tensor, Tensor] | None:
    """The recorder after the comparison, and the vectors of the first token that differs; None if it cannot be run."""
    fresh = calls.as_before_the_first_call(own=True)  # it is given hooks
    if fresh is None or not isinstance(fresh.adapter.module, nn.Module):
        return None
    watched = recorder.watch(fresh.adapter)
    try:
        expected, actual = comparison.run(fresh.for_adapter(watched).at_length(length))[:2]
    except Exception:  # noqa: BLE001 - third-party code: watching may change how it runs
        return None
    if expected.shape != actual.shape or expected.dim() < 2 or not expected.is_floating_point():
        return None
    sizes = (expected - actual).abs().flatten(0, -2).amax(-1)
    first = int((sizes > FIRST_SHARE * sizes.max()).nonzero()[0]) if bool(sizes.max() > 0) else 0
    return recorder, expected.flatten(0, -2)[first], actual.flatten(0, -2)[first]


def _find(recorder: CallRecorder, vector: Tensor, *, last: bool) -> TokenOfCall | None:
    """The token whose output is this vector, in the first or the last call that has it."""
    for call in reversed(recorder.calls) if last else recorder.calls:
        output = call.output
        if output is None or output.shape[-1] != vector.shape[-1] or output.shape[:2].numel() > MAX_TOKENS:
            continue
        places = (output == vector).all(-1).nonzero()
        if len(places):
            return TokenOfCall(call, int(places[0][0]), int(places[0][1]))
    return None


def _origin(one: TokenOfCall, other: TokenOfCall) -> Step | None:
    """The step of the other call whose result differs from that of its twin, and whose operands do not."""
    twins = _twins(one, other)
    compared = {step: differ(twin.value, one, step.value, other) for step, twin in twins.items()}
    order = {step: k for k, step in enumerate(other.call.steps)}
    differing = [step for step in other.call.steps if compared.get(step)]
    starts: list[Step] = []
    queue, seen = differing[-1:], set(differing[-1:])
    while queue:
        step = queue.pop()
        causes, unknown = _causes(step, compared)
        starts += [] if causes else [min(unknown, key=order.__getitem__, default=step)]
        fresh = [cause for cause in causes if cause not in seen]
        seen.update(fresh)
        queue += fresh
    first = min(starts, key=order.__getitem__, default=None)
    return _scores(first) if first is not None and "softmax" in first.name else first


def _scores(softmax: Step) -> Step:
    """The operator that computes or masks the scores of a softmax: the scores up to the token are those of its twin."""
    step = softmax
    while step.operands and (step is softmax or step.name in _LAYOUTS | {"div", "mul"}):
        step = step.operands[0]
    return step


def _causes(step: Step, compared: dict[Step, bool | None]) -> tuple[list[Step], list[Step]]:
    """The nearest steps before a step that differ, and the steps without a twin on the way that compute something."""
    differing, unknown = [], []
    queue, seen = list(step.operands), set(step.operands)
    while queue:
        here = queue.pop()
        agrees = compared.get(here)
        if agrees is True:
            differing.append(here)
        elif agrees is None:
            unknown += [here] if here.name not in _LAYOUTS else []
            fresh = [operand for operand in here.operands if operand not in seen]
            seen.update(fresh)
            queue += fresh
    return differing, unknown


def _twins(one: TokenOfCall, other: TokenOfCall) -> dict[Step, Step]:
    """The step of the one call for each step of the other that has one.

    A line that runs once for each token of a call is paired at the token.
    """
    before, after = _by_key(one.call), _by_key(other.call)
    twins: dict[Step, Step] = {}
    for key in before.keys() & after.keys():
        first, second = before[key], after[key]
        if len(first) != len(second):
            first, second = _at_token(first, one), _at_token(second, other)
        if len(first) == len(second):
            twins.update(zip(second, first, strict=True))
    return twins


def _at_token(steps: list[Step], token: TokenOfCall) -> list[Step]:
    each, rest = divmod(len(steps), token.call.tokens)
    return [] if rest else steps[token.token * each : (token.token + 1) * each]


def _by_key(call: RecordedCall) -> dict[StepKey, list[Step]]:
    found: dict[StepKey, list[Step]] = defaultdict(list)
    for step in call.steps:
        found[step.key].append(step)
    return found
