"""Tensors at the index of the largest score of each row of another one, through pointwise operators.

Lemma (`largest_scores`). Where all visible scores satisfy a condition, the largest one does, if one is visible.

Machine-checked (proofs/rules/maximum_lemma.v): largest_is_visible.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import torch
from torch.fx import Node

from orderproof.logic.terms import FALSE, Formula, implication
from orderproof.number_limits import largest_ordinary
from orderproof.theorems.facts.frame import frame
from orderproof.theorems.facts.open_fact import NotCovered, OpenFact, as_cases
from orderproof.theorems.operators.pointwise.operands import CONVERTS
from orderproof.theorems.walks.open_operation import OpenOperation


class Level(Enum):
    """Kinds of knowledge of a tensor by the largest score of each row."""

    ORDINARY = "at its index there is an ordinary number"
    RANKED = "each element is a score of the row, chosen by its rank"
    PLACES = "its index is among these indices"
    CHOSEN = "each element is its index"
    BELOW = "no element is above it"


Known = Level | float | bool  # a number: the one at the index of the largest score
OF_EACH = (Level.RANKED, Level.PLACES, Level.CHOSEN, Level.BELOW)  # which say something of each element
EXACT = 16  # numbers up to this size have no rounding error in any dtype


@dataclass(frozen=True)
class Largest:
    """Knowledge of a tensor by the largest score of each row of another one.

    Attributes:
        scores: The scores.
        dim: Their dimension along which the rows run.
        dims: For each dimension of the tensor that of the scores; None for another one.
        known: What is known.
        origin: The node that has found the index, or ranked the scores; None for what holds at each largest score.

    """

    scores: Node
    dim: int
    dims: tuple[int | None, ...]
    known: Known
    origin: Node | None = None

    def place(self, dim: int) -> int | None:
        """The dimension of the tensor that is this one of the scores; None if there is none."""
        return self.dims.index(dim) if self.dims.count(dim) == 1 else None

    @property
    def labels(self) -> list[Any]:
        """The dimensions of the tensor that are those of the scores. Raises `NotCovered`."""
        found = [self.place(d) for d in range(1 + max([self.dim, *(d for d in self.dims if d is not None)]))]
        if any(place is None for d, place in enumerate(found) if d != self.dim):
            raise NotCovered("a dimension of the scores is left out")
        return found


def number_level(number: Any) -> Known | None:
    """The knowledge of a number: itself if it is exact in every dtype."""
    if isinstance(number, bool):
        return number
    if not isinstance(number, int | float) or not abs(number) < largest_ordinary():
        return None
    return float(number) if number == int(number) and abs(number) <= EXACT else Level.ORDINARY


def fact_level(fact: OpenFact) -> Known | None:
    """The knowledge of every element of a tensor."""
    cases = as_cases(fact.value)
    if cases is not None and len(cases.pairs) == 1:
        number = cases.pairs[0][1]
        return bool(number) if fact.dtype is torch.bool else number_level(number)
    ranges = fact.ranges()
    ordinary = ranges.hidden is FALSE and ranges.unbounded is FALSE and fact.dtype.is_floating_point
    return Level.ORDINARY if ordinary else None


def pointwise_level(call: OpenOperation, known: Mapping[Node, Largest]) -> Largest | None:
    """The result of a pointwise operator at the index of the largest score."""
    rank = len(call.shape)
    dims: list[int | None] = [None] * rank
    first = next(iter(known.values()))
    origins = [one.origin for one in known.values() if one.origin is not None]
    for one in known.values():
        if (one.scores, one.dim) != (first.scores, first.dim) or len(set(origins)) > 1:
            return None
        for d, own in enumerate(one.dims, start=rank - len(one.dims)):
            if own is not None and dims[d] not in (own, None):
                return None
            dims[d] = own if dims[d] is None else dims[d]
    whole = replace(first, dims=tuple(dims), origin=origins[0] if origins else None)
    if whole.place(first.dim) is None:
        return None
    arguments = call.node.args[: 1 if call.name in CONVERTS else None]
    levels = [_level(call, x, whole, known) for x in arguments]
    found = AT_LARGEST[call.name](call, levels) if not call.node.kwargs or call.name in CONVERTS else None
    return None if found is None else replace(whole, known=found)


def _level(call: OpenOperation, argument: Any, whole: Largest, known: Mapping[Node, Largest]) -> Known | None:
    """The knowledge of an argument at the index of the largest score."""
    if not isinstance(argument, Node):
        return number_level(argument)
    if argument in known:
        own = known[argument]
        aligned = [None] * (len(whole.dims) - len(own.dims)) + list(own.dims)
        is_level = own.known not in OF_EACH
        return own.known if is_level and aligned[whole.dims.index(whole.dim)] == whole.dim else None
    fact = call.fact(argument)
    if (found := fact_level(fact)) is not None:
        return found
    rank = len(whole.dims)
    scores, own_labels = call.fact(whole.scores), range(rank - len(fact.dims), rank)
    common = frame([(fact, own_labels), (scores, whole.labels)], range(rank))
    placed, visible = common.place(fact, own_labels), common.place(scores, whole.labels).ranges().finite
    tests: list[tuple[Formula, Known]] = []
    if isinstance(placed.value, Formula):
        tests = [(placed.value, True), (~placed.value, False)]
    elif fact.dtype.is_floating_point:
        tests = [(placed.ranges().finite, Level.ORDINARY)]
    sizes = placed.sizes
    return next((one for test, one in tests if call.context.proves(implication(visible, test), sizes)), None)


def is_ordinary(level: Known | None) -> bool:
    """True for an ordinary number at the index of the largest score."""
    return level is Level.ORDINARY or (isinstance(level, float) and abs(level) < largest_ordinary())


def _choice(condition: Known | None, first: Known | None, second: Known | None) -> Known | None:
    return (first if condition else second) if isinstance(condition, bool) else None


def _all_ordinary(call: OpenOperation, levels: Sequence[Known | None]) -> Known | None:
    return Level.ORDINARY if call.dtype.is_floating_point and all(map(is_ordinary, levels)) else None


def _scaled(call: OpenOperation, levels: Sequence[Known | None]) -> Known | None:
    """A quotient by a number that is not small."""
    divisor = call.node.args[1]
    large = isinstance(divisor, int | float) and 1 <= abs(divisor) < largest_ordinary()
    return Level.ORDINARY if large and is_ordinary(levels[0]) else None


def _both(call: OpenOperation, levels: Sequence[Known | None]) -> Known | None:
    if call.dtype is not torch.bool:
        return None
    return False if False in levels else True if all(x is True for x in levels) else None


def _either(call: OpenOperation, levels: Sequence[Known | None]) -> Known | None:
    if call.dtype is not torch.bool:
        return None
    return True if True in levels else False if all(x is False for x in levels) else None


def _negated(call: OpenOperation, levels: Sequence[Known | None]) -> Known | None:
    return (not levels[0]) if call.dtype is torch.bool and isinstance(levels[0], bool) else None


def _converted(call: OpenOperation, levels: Sequence[Known | None]) -> Known | None:
    (level,) = levels
    if call.dtype.is_floating_point:
        return float(level) if isinstance(level, bool) else level if is_ordinary(level) else None
    return bool(level) if call.dtype is torch.bool and isinstance(level, bool | float) else None


def _comparison(name: str) -> Callable[[OpenOperation, Sequence[Known | None]], Known | None]:
    def answer(call: OpenOperation, levels: Sequence[Known | None]) -> Known | None:
        del call
        numbers = all(isinstance(x, bool | float) for x in levels)
        return bool(getattr(operator, name)(*levels)) if numbers else None

    return answer


AT_LARGEST: dict[str, Callable[[OpenOperation, Sequence[Known | None]], Known | None]] = {
    "masked_fill": lambda _, x: _choice(x[1], x[2], x[0]),
    "where": lambda _, x: _choice(x[0], x[1], x[2]),
    **{name: _comparison(name) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    **dict.fromkeys(("add", "sub", "mul"), _all_ordinary), "div": _scaled,
    **dict.fromkeys(("logical_and", "bitwise_and", "__and__"), _both),
    **dict.fromkeys(("logical_or", "bitwise_or", "__or__"), _either),
    **dict.fromkeys(("logical_not", "bitwise_not"), _negated), **dict.fromkeys(CONVERTS, _converted),
}  # fmt: skip
