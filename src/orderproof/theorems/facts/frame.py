"""Bring facts about several tensors to common indices: the frame of an operator.

The dimensions of the operands carry labels, as the letters of `einsum` do; dimensions with one label have one index.
Dimensions of size one are repeated. If one operand has a dimension of size 8 where another has axes of sizes 2 and 4,
the index i of the first is 4 * i0 + i1.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from orderproof.logic.terms import (
    Term,
    as_term,
    divided,
    floor_division,
    remainder,
)
from orderproof.theorems.facts.open_fact import Axes, NotCovered, OpenFact, index

Labels = Sequence[Hashable]
_SPLIT_ELSEWHERE = (
    "a dimension of open size is merged with another one, and then split at another place, for which there is no rule: "
    "keep them apart, or split them where they were merged"
)
EqualSizes = Callable[[Term, Term], bool]  # True if two sizes are equal for all open sizes


@dataclass(frozen=True)
class Frame:
    """Common indices of several operands: the axes of each label, those of the result first."""

    labels: tuple[Hashable, ...]
    axes: dict[Hashable, Axes]

    @property
    def dims(self) -> tuple[Axes, ...]:
        """The axes of all labels."""
        return tuple(self.axes[label] for label in self.labels)

    def first_axis(self, label: Hashable) -> int:
        """The number of the first axis of a label."""
        place = self.labels.index(label)
        return sum(len(self.axes[one]) for one in self.labels[:place])

    def indices(self, label: Hashable) -> list[Term]:
        """The indices of a label."""
        first = self.first_axis(label)
        return [index(first + k) for k in range(len(self.axes[label]))]

    def place(self, fact: OpenFact, labels: Labels) -> OpenFact:
        """The fact about an operand at the indices of the frame."""
        terms: list[Term] = []
        try:
            for dim, (axes, label) in enumerate(zip(fact.dims, labels, strict=True)):
                if axes:
                    terms += converted(axes, self.axes[label], self.indices(label), used=fact.uses(dim))
        except NotCovered:
            if fact.value is None:
                raise
            return self.place(fact.without_value(), labels)
        return fact.at(self.dims, terms)


def frame(operands: Sequence[tuple[OpenFact, Labels]], result: Labels) -> Frame:
    """The frame of operands with these labels; labels that are not in the result come last."""
    labels = tuple(dict.fromkeys([*result, *(label for _, own in operands for label in own)]))
    axes: dict[Hashable, Axes] = dict.fromkeys(labels, ())
    for fact, own in operands:
        for dim, label in enumerate(own):
            if fact.dims[dim]:
                axes[label] = refined(axes[label], fact.dims[dim]) if axes[label] else fact.dims[dim]
    return Frame(labels, axes)


def _identical(first: Term, second: Term) -> bool:
    return first is second


def refined(first: Axes, second: Axes, equal: EqualSizes = _identical) -> Axes:
    """The coarsest axes into which both can be taken apart. Raises `NotCovered`."""
    if first == second:
        return first
    left, right, result = list(first), list(second), []
    while left and right:
        a, b = left.pop(), right.pop()
        if equal(a, b):
            result.append(a if b.is_constant else b)
        elif a.is_constant and b.is_constant:
            small, large, rest = (a, b, right) if a.constant < b.constant else (b, a, left)
            if not small.constant or large.constant % small.constant:
                raise _split_elsewhere(first, second)
            result.append(small)
            rest.append(as_term(large.constant // small.constant))
        elif (found := _factors(a, left, b, equal) or _factors(b, right, a, equal)) is not None:
            result += found
        elif (
            a.is_constant and a.constant > 0 and (outer := divided(b, a.constant)) is not None
        ):  # as chunks, merged with the rows
            result.append(a)
            right.append(outer)
        elif b.is_constant and b.constant > 0 and (outer := divided(a, b.constant)) is not None:
            result.append(b)
            left.append(outer)
        else:
            raise _split_elsewhere(first, second)
    if left or right:
        raise _split_elsewhere(first, second)
    return tuple(reversed(result))


def _split_elsewhere(first: Axes, second: Axes) -> NotCovered:
    own, other = (" * ".join(map(str, axes)) or "1" for axes in (first, second))
    return NotCovered(
        f"a dimension of {own} elements is read as one of {other}, for which there is no rule: keep these dimensions "
        "apart, or split them where they were merged (`transpose` before `reshape`)"
    )


def _factors(last: Term, before: list[Term], product: Term, equal: EqualSizes) -> list[Term] | None:
    """The last axes whose sizes multiply to a product, removed from `before`; None if there are none."""
    factors, total = [last], last
    for size in reversed(before):
        grown = total.times(size)
        factors.append(size)
        total = grown
        if equal(total, product):
            del before[len(before) - len(factors) + 1 :]
            return factors
    return None


def converted(
    axes: Axes, target: Axes, indices: Sequence[Term], *, used: bool, equal: EqualSizes = _identical
) -> list[Term]:
    """The indices of axes, from the indices of axes of the same total size. Raises `NotCovered`."""
    if axes == target:
        return list(indices)
    if not used:
        return [as_term(0)] * len(axes)
    result: list[Term] = []
    rest = list(zip(target, indices, strict=True))
    for size in reversed(axes):
        total, value = as_term(1), as_term(0)
        while rest and not equal(total, size):
            extent, place = rest.pop()
            if not total.is_constant:
                raise NotCovered(_SPLIT_ELSEWHERE)
            step, grown = place.times(total), total.times(extent)
            needed = size.constant // total.constant if size.is_constant else 0  # of this axis
            outer = divided(extent, needed) if needed else None
            if outer is not None and not (grown.is_constant and grown.constant <= size.constant):
                value = value + remainder(place, needed) * total.constant
                rest.append((outer, floor_division(place, needed)))
                total = size
                break
            value, total = value + step, grown
        if not equal(total, size):
            raise NotCovered(_SPLIT_ELSEWHERE)
        result.append(value)
    return list(reversed(result))
