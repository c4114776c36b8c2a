"""The operator at which two calls of a model first differ for the tokens that both have.

Both calls run the same operators in the same order; one has further tokens before or after the common ones, and may
run further operators for them, as a loop over tokens or documents does. The search starts at the last operator whose
results differ, and follows operands that differ backwards to an operator whose operands agree, or have one of further
tokens: there the two calls part. An index that differs and is corrected later is never reached.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from orderproof.auditing.explain.source_name import source_name
from orderproof.recording.source import is_model_code
from orderproof.tolerances import FLOAT32_TOLERANCE

_OWN_CODE = tuple(str(Path(__file__).parents[2] / room) for room in ("models", "auditing"))  # which calls the model
MASKING = 1e3  # scores beyond this magnitude are masked
MAX_STEPS = 20_000  # operators of a call that is searched


@dataclass(eq=False)
class _Step:
    """One call of one operator: its name, the line of the model's code, its operands and results, and their values."""

    name: str
    source: str
    operands: list[Tensor]
    operand_values: list[Tensor]
    results: list[Tensor]
    values: list[Tensor]
    writes: bool


class OperatorTrace(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """The operators that code of a model runs in its block."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.steps: list[_Step] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operator and remember it."""
        operands = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
        before = [_copy(x) for x in operands]
        result = func(*args, **(kwargs or {}))
        source = _model_line()
        if source and len(self.steps) < MAX_STEPS:
            results = [x for x in tree_leaves(result) if isinstance(x, Tensor)]
            step = _Step(
                str(func), source, operands, before, results, [_copy(x) for x in results],
                func._schema.is_mutable,
            )  # fmt: skip
            self.steps.append(step)
        return result

    def producer(self, x: Tensor, before: int) -> int | None:
        """The last operator before one that made this tensor or wrote to its memory; None for an input."""
        storage = x.untyped_storage()._cdata
        for k in range(before - 1, -1, -1):
            step = self.steps[k]
            if any(y is x for y in step.results):
                return k
            if step.writes and any(y.untyped_storage()._cdata == storage for y in step.results):
                return k
        return None


def first_operator(alone: OperatorTrace, packed: OperatorTrace, tokens: int, more: int, offset: int) -> str:
    """The line at which the calls part, `file.py:12`; empty if they run other operators, or none of the model's.

    Args:
        alone: The call with the fewer tokens.
        packed: The call with more.
        tokens: The number of tokens of the first.
        more: That of the second.
        offset: The index in the second of the first common token.

    """
    names = [[step.name for step in trace.steps] for trace in (alone, packed)]
    twins = _twins(names[0], names[1], ends_with_common=offset > 0)
    comparison = _Comparison(alone, packed, twins, tokens, more, offset)
    last = next((k for k in reversed(twins) if comparison.differs_at(k)), None)
    return "" if last is None else comparison.origin(last)


def _twins(alone: Sequence[str], packed: Sequence[str], *, ends_with_common: bool) -> dict[int, int]:
    """By the place of an operator in the packed call, that of its twin in the other; those left out are in one run.

    Empty if the calls do not run the same operators otherwise. Of an operator that could stand for several, as in a
    loop, the last is taken if the common tokens are the last.
    """
    count, more = len(alone), len(packed) - len(alone)
    if not count or more < 0 or len(packed) >= MAX_STEPS:
        return {}
    begin = next((k for k in range(count) if alone[k] != packed[k]), count)
    end = next((k for k in range(count) if alone[count - 1 - k] != packed[-1 - k]), count)
    if begin + end < count:
        return {}
    cut = count - end if ends_with_common else begin
    return {**{k: k for k in range(cut)}, **{k + more: k for k in range(cut, count)}}


@dataclass(frozen=True)
class _Comparison:
    alone: OperatorTrace
    packed: OperatorTrace
    twins: Mapping[int, int]
    tokens: int
    more: int
    offset: int

    def origin(self, last: int) -> str:
        """The line of the earliest operator that differs, has an effect on this one, and has no cause of its own."""
        seen, waiting, found = {last}, [last], []
        while waiting:
            k = waiting.pop()
            inner = [j for j in self._producers(k) if j in self.twins]
            if not inner and self.differs_at(k):
                found.append(k)
            waiting += [j for j in inner if j not in seen]
            seen.update(inner)
        return self.packed.steps[min(found)].source if found else ""

    def differs_at(self, k: int) -> bool:
        """True if a result of an operator differs for the common tokens."""
        pairs = zip(self.alone.steps[self.twins[k]].values, self.packed.steps[k].values, strict=False)
        return any(self._differ(x, y) for x, y in pairs)

    def _producers(self, k: int) -> list[int]:
        """The operators that made those operands of an operator that differ."""
        one, other = self.alone.steps[self.twins[k]], self.packed.steps[k]
        more = max(len(other.operands) - len(one.operands), 0)  # parts that are joined, of further tokens
        common = slice(min(self.offset, more), None)
        triples = zip(one.operand_values, other.operand_values[common], other.operands[common], strict=False)
        found = [self.packed.producer(x, k) for a, b, x in triples if self._differ(a, b, unknown=True)]
        return [j for j in found if j is not None]

    def _differ(self, x: Tensor, y: Tensor, *, unknown: bool = False) -> bool:
        """True if the tensors differ for the common tokens; ``unknown`` if their sizes do not say."""
        if x.dim() != y.dim() or x.dtype != y.dtype:
            return unknown
        for axis, (size, other) in enumerate(zip(x.shape, y.shape, strict=True)):
            if (size, other) == (self.tokens, self.more):
                y = y.narrow(axis, self.offset, self.tokens)
            elif size != other:
                return unknown
        if not x.is_floating_point():
            return not torch.equal(x, y)
        equal = (x == y) | (x.isnan() & y.isnan())
        usual = torch.where(y.abs() < MASKING, y, 0.0).abs().amax() if y.numel() else y.new_zeros(())
        least = torch.where(y.abs() < MASKING, usual, y.abs())  # a masked score says nothing of the others
        return not bool((equal | ((x - y).abs() <= FLOAT32_TOLERANCE * least)).all())


def _copy(x: Tensor) -> Tensor:
    return x.detach().clone()


def _model_line() -> str:
    """The innermost line that is not torch's; empty if it is of this package, which makes inputs of the model."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(_OWN_CODE):
            return ""
        if is_model_code(name):
            return f"{source_name(name)}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def common_tokens(sizes: Sequence[int], at: Sequence[int]) -> tuple[int, int, int] | None:
    """The arguments of `first_operator` for the numbers of tokens of two calls and the places of one token in them."""
    offset = at[1] - at[0]
    return (sizes[0], sizes[1], offset) if 0 <= offset <= sizes[1] - sizes[0] else None
