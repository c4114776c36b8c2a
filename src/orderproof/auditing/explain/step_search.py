"""The operator at which two recorded calls of a model first differ in one token.

An operator of one call has a twin in the other: the same operator at the same line of the same module. Of their results
only what belongs to the token is compared. From the output the search follows the operands that differ. The operator
whose operands agree is the first one. An operator without a twin, at a line that only one of the calls runs, may be to
blame for a difference after it.
"""

from __future__ import annotations

from collections import defaultdict

import torch

from orderproof.auditing.explain.operator_steps import RecordedCall, Step, StepKey
from orderproof.auditing.explain.token_parts import TokenOfCall, differ
from orderproof.laws.mixing_kinds import ATTENTION, OTHER, POSITIONS, RECURRENCE, RUNNING_SUM, mixing_kind

_VIEWS = {
    "alias", "clone", "detach", "expand", "lift_fresh", "_reshape_alias", "select", "split", "squeeze", "t", "_to_copy",
    "transpose", "unbind", "unsqueeze", "_unsafe_view", "view",
}  # fmt: skip
_JOINS = {"cat", "copy_", "slice", "stack"}  # of the tokens of several calls: they have elements of their operands


class StepSearch:
    """The steps of two calls, and which of them differ in one token."""

    def __init__(self, one: TokenOfCall, other: TokenOfCall) -> None:
        self.one, self.other = one, other
        self._twins = step_twins(one, other)
        layouts = ((one, other), (one._replace(tokens_first=True), other._replace(tokens_first=True)))
        each = [{step: differ(twin.value, a, step.value, b) for step, twin in self._twins.items()} for a, b in layouts]
        self._differs = min(each, key=_contradictions)
        self._order = {step: k for k, step in enumerate(other.call.steps)}

    def origin(self) -> Step | None:
        """The step of the other call whose result differs from that of its twin, and whose operands do not.

        A step that only one of the calls has is named before the one that uses it. Calls at other positions differ in
        what they compute from them, and must agree from the scores of attention on.
        """
        if self._given_other_positions():
            differing = (step for step in self.other.call.steps if self._differs.get(step))
            return next((step for step in differing if mixing_kind(step.name) == ATTENTION), None)
        starts: list[Step] = []
        queue = self._last()
        seen = set(queue)
        while queue:
            step = queue.pop()
            causes, unknown = self._before(step)
            cause = None if self._agrees_before(step) else self._unknown_cause(unknown)
            starts += [] if causes else [cause or step]
            fresh = [cause for cause in causes if cause not in seen]
            seen.update(fresh)
            queue += fresh
        first = min(starts, key=self._order.__getitem__, default=None)
        if first is None:
            return None
        return self._only_in_the_one(first) or (_scores(first) if "softmax" in first.name else first)

    def first_of_positions(self) -> Step | None:
        """The first step that makes other numbers of other positions: a table that is read, or angles."""
        differing = (step for step in self.other.call.steps if self._differs.get(step))
        return next((step for step in differing if step.value is not None and step.value.is_floating_point()), None)

    def kind(self, step: Step) -> str:
        """The way in which a step mixes tokens; of a step that only lays them out, that of the next one which uses it.

        A line that runs once for each token of a call is a recurrence.
        """
        call = self.other.call if step in self._order else self.one.call
        while step.name in _VIEWS | _JOINS:
            user = next((later for later in call.steps[call.steps.index(step) :] if step in later.operands), None)
            if user is None:
                break
            step = user
        times, rest = divmod(sum(each.key == step.key for each in self.one.call.steps), self.one.call.tokens)
        if times and not rest and self.one.call.tokens > 1:
            return RECURRENCE
        kind, value = mixing_kind(step.name), step.value
        if value is None or value.is_floating_point() or value.is_complex() or kind not in (OTHER, RUNNING_SUM):
            return kind
        if value.dtype is torch.bool:
            return ATTENTION
        rows, tokens = call.rows, call.tokens
        counts_tokens = value.dim() <= 1 or (list(value.shape[:-1]) == [rows] and value.shape[-1] != rows * tokens)
        return POSITIONS if counts_tokens or kind == OTHER else kind

    def _given_other_positions(self) -> bool:
        one, other = self.one.positions, self.other.positions
        return one is not None and other is not None and not torch.equal(one, other)

    def _last(self) -> list[Step]:
        """The last step that differs; that of the output, if it is known, also if no step with a twin differs."""
        output = self.other.call.output
        differing = [step for step in self.other.call.steps if self._differs.get(step)]
        possible = differing or self.other.call.steps
        same = [s for s in possible if output is not None and s.value is not None and torch.equal(s.value, output)]
        return (same or differing)[-1:]

    def _before(self, step: Step) -> tuple[list[Step], list[Step]]:
        """The nearest steps before a step that differ, and the steps on the way that cannot be compared."""
        differing, unknown = [], []
        queue, seen = list(step.operands), set(step.operands)
        for here in queue:
            differs = self._differs.get(here)
            if differs is True:
                differing.append(here)
            elif differs is None:
                unknown.append(here)
                fresh = [operand for operand in here.operands if operand not in seen]
                seen.update(fresh)
                queue += fresh
        return differing, unknown

    def _agrees_before(self, step: Step) -> bool:
        """True if the operands of a step agree with those of its twin one by one, also those without a twin.

        So do the keys that a cache joins and those of one call, and the mask that the step applies is to blame.
        """
        twin = self._twins.get(step)
        if twin is None or len(twin.operands) != len(step.operands) or not step.operands:
            return False
        pairs = zip(twin.operands, step.operands, strict=True)
        return all(differ(a.value, self.one, b.value, self.other) is False for a, b in pairs)

    def _unknown_cause(self, unknown: list[Step]) -> Step | None:
        """Of steps that cannot be compared, the nearest first, the one to blame: better one that only this call has."""
        only_here = [step for step in unknown if step not in self._twins]
        return _first_cause(only_here, self.other.call) or _first_cause(unknown, self.other.call)

    def _only_in_the_one(self, step: Step) -> Step | None:
        """The nearest step that only the one call has, before the twin of a step."""
        if step not in self._twins:
            return None
        known, unknown = set(self._twins.values()), list[Step]()
        queue = [step for step in self._twins[step].operands if step not in known]
        for here in queue:
            unknown.append(here)
            queue += [step for step in here.operands if step not in known and step not in queue]
        return _first_cause(unknown, self.one.call)


def _contradictions(differs: dict[Step, bool | None]) -> int:
    """The number of views that differ where what they are a view of does not, or the other way round."""
    views = ((step, step.operands[0]) for step in differs if step.name in _VIEWS and len(step.operands) == 1)
    return sum(differs.get(viewed) is not None and differs[step] is not differs[viewed] for step, viewed in views)


def _first_cause(nearest_first: list[Step], call: RecordedCall) -> Step | None:
    """Of steps of a call the first that computes something, else the nearest that joins or cuts tokens."""
    computing = [step for step in nearest_first if step.name not in _VIEWS | _JOINS]
    joining = (step for step in nearest_first if step.name in _JOINS)
    return min(computing, key=call.steps.index) if computing else next(joining, None)


def _scores(softmax: Step) -> Step:
    """The operator that computes or masks the scores of a softmax: the scores up to the token are those of its twin."""
    step = softmax
    while step.operands and (step is softmax or step.name in _VIEWS | {"div", "mul"}):
        step = step.operands[0]
    return step


def step_twins(one: TokenOfCall, other: TokenOfCall) -> dict[Step, Step]:
    """The step of the one call for each step of the other that has one.

    A line that runs once for each document of a call is paired at the one of the same size; else a line that runs once
    for each token is paired at the token.
    """
    before, after = steps_by_key(one.call), steps_by_key(other.call)
    twins: dict[Step, Step] = {}
    for key in before.keys() & after.keys():
        first, second = before[key], after[key]
        if len(first) != len(second):
            first, second = _of_one_part(first, second) or (_at_token(first, one), _at_token(second, other))
        if len(first) == len(second):
            twins.update(zip(second, first, strict=True))
    return twins


def _of_one_part(first: list[Step], second: list[Step]) -> tuple[list[Step], list[Step]] | None:
    """All steps of the one call and those of a part of the other that have their shapes; None if no single part has."""
    count, rest = len(first), len(second) % len(first)
    parts = [second[k : k + count] for k in range(0, len(second), count)] if not rest else []
    fitting = [part for part in parts if _shapes(part) == _shapes(first)]
    return (first, fitting[0]) if len(fitting) == 1 else None


def _shapes(steps: list[Step]) -> list[torch.Size | None]:
    return [None if step.value is None else step.value.shape for step in steps]


def _at_token(steps: list[Step], token: TokenOfCall) -> list[Step]:
    each, rest = divmod(len(steps), token.call.tokens)
    return [] if rest else steps[token.token * each : (token.token + 1) * each]


def steps_by_key(call: RecordedCall) -> dict[StepKey, list[Step]]:
    """The steps of a call by their key, in order."""
    found: dict[StepKey, list[Step]] = defaultdict(list)
    for step in call.steps:
        found[step.key].append(step)
    return found
