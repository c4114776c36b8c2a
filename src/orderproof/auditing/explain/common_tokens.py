"""The operator at which two recorded calls first differ in the tokens that both have, all of them compared.

One call has further tokens before or after the common ones, as a packed row has those of other documents. Both run the
same operators in the same order; the longer one may run further operators for its further tokens, as a loop over tokens
or documents does. From the last operator whose results differ, operands that differ are followed back to one whose
operands agree, or are of further tokens: there the two calls part. An index that differs and is corrected later is
never reached. `StepSearch` follows a single token, and any two calls.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from orderproof.auditing.explain.operator_steps import RecordedCall, Step
from orderproof.auditing.explain.token_parts import TokenOfCall
from orderproof.tolerances import FLOAT32_TOLERANCE

MASKING = 1e3  # scores beyond this magnitude are masked


class CommonTokensSearch:
    """The operators of a call and of a longer one, and which of them differ in the tokens that both have."""

    def __init__(self, one: TokenOfCall, other: TokenOfCall) -> None:
        self.sizes, self.offset = (one.call.tokens, other.call.tokens), other.token - one.token
        self.steps = _of_the_model(other.call)
        self.twins = _twins(_of_the_model(one.call), self.steps, last=self.offset > 0)

    def origin(self) -> Step | None:
        """The earliest operator that differs, has an effect on the last one, and has no cause of its own."""
        if not 0 <= self.offset <= self.sizes[1] - self.sizes[0]:
            return None
        last = next((step for step in reversed(self.steps) if self._differs(step)), None)
        waiting = [] if last is None else [last]
        seen, found = set(waiting), set[Step]()
        while waiting:
            step = waiting.pop()
            causes = [x for x in self._causes(step) if x in self.twins]
            if not causes and self._differs(step):
                found.add(step)
            waiting += [x for x in causes if x not in seen]
            seen.update(causes)
        return next((step for step in self.steps if step in found), None)

    def _differs(self, step: Step) -> bool:
        return step in self.twins and self._differ(self.twins[step].value, step.value, unknown=False)

    def _causes(self, step: Step) -> list[Step]:
        """The operands of an operator that differ; of parts that are joined, those of the common tokens."""
        ones, others = self.twins[step].operands, step.operands
        more = max(len(others) - len(ones), 0)
        pairs = zip(ones, others[min(self.offset, more) :], strict=False)
        return [x for one, x in pairs if self._differ(one.value, x.value, unknown=True)]

    def _differ(self, x: Tensor | None, y: Tensor | None, *, unknown: bool) -> bool:
        """True if the tensors differ for the common tokens; ``unknown`` if their sizes do not say."""
        if x is None or y is None or x.dim() != y.dim() or x.dtype != y.dtype:
            return unknown
        for axis, sizes in enumerate(zip(x.shape, y.shape, strict=True)):
            if sizes == self.sizes:
                y = y.narrow(axis, self.offset, self.sizes[0])
            elif sizes[0] != sizes[1]:
                return unknown
        if not x.is_floating_point() or not y.numel():
            return not torch.equal(x, y)
        usual = torch.where(y.abs() < MASKING, y, 0.0).abs().amax()
        least = torch.where(y.abs() < MASKING, usual, y.abs())  # a masked score says nothing of the others
        equal = (x == y) | (x.isnan() & y.isnan()) | ((x - y).abs() <= FLOAT32_TOLERANCE * least)
        return not bool(equal.all())


def _of_the_model(call: RecordedCall) -> list[Step]:
    """The operators that code of the model runs: not those that make its inputs."""
    return [step for step in call.steps if step.key.file]


def _twins(one: Sequence[Step], other: Sequence[Step], *, last: bool) -> dict[Step, Step]:
    """By an operator of the longer call, that of the other; of repeated ones the last are paired if ``last``.

    Empty if the calls do not run the same operators otherwise.
    """
    count, more = len(one), len(other) - len(one)
    if not count or more < 0:
        return {}
    same = [one[k].key.operator == other[k].key.operator for k in range(count)]
    same_at_end = [one[-1 - k].key.operator == other[-1 - k].key.operator for k in range(count)]
    begin = same.index(False) if False in same else count
    end = same_at_end.index(False) if False in same_at_end else count
    if begin + end < count:
        return {}
    cut = count - end if last else begin
    return {other[k if k < cut else k + more]: one[k] for k in range(count)}
