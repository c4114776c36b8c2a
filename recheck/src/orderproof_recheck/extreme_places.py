"""The index of the greatest or least number of each row of a tensor of known integers, and those of sorted rows.

Of several that are greatest, torch gives the first. So the index is in the row, no number of the row exceeds the one
there, and none before it reaches it. It is a new function of the other indices, named after its step. A row always has
such an index, whatever the numbers are; so what is said of the function is no contradiction.

The indices that sort a row are those of the row in another order. Numbers that are 0, 1, ... in some order, smallest
first: the number at the j-th index is j.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from orderproof_recheck.logic.formulas import Formula, Holds, at_most, equal, every, less, some
from orderproof_recheck.logic.replacement import Replacement
from orderproof_recheck.logic.terms import Apply, Expression, Term, Variable, apply, integer

ROUNDS = 3  # of places whose numbers are given by other places


class KnownPlace(Protocol):
    """An index of which something is known: a function that is named after its step."""

    def known(self, arguments: Sequence[Term], real: Term | None) -> Formula:
        """All that holds of the index at some arguments."""


@dataclass(frozen=True)
class SortedPlace:
    """The index of each element of a sorted row.

    Attributes:
        node: The step, after which the function is named.
        row: The place of the index within a row among the arguments.
        sizes: The sizes of all axes.
        numbers: What is sorted, over the indices, if it is 0, 1, ... in some order and the smallest comes first.
        indices: The variables of these indices.

    """

    node: str
    row: int
    sizes: tuple[Term, ...]
    numbers: Term | None
    indices: tuple[Variable, ...]

    def known(self, arguments: Sequence[Term], real: Term | None) -> Formula:
        """All that holds of the index at one place of a sorted row."""
        del real
        place, size = apply(self.node, *arguments), self.sizes[self.row]
        outside = [f for k, n in zip(arguments, self.sizes, strict=True) for f in (less(k, 0), at_most(n, k))]
        parts = [at_most(0, place), less(place, size)]
        if self.numbers is not None:
            there = [place if k == self.row else term for k, term in enumerate(arguments)]
            number = Replacement(dict(zip(self.indices, there, strict=True))).term(self.numbers)
            parts.append(equal(number, arguments[self.row]))
        return every(*(some(*outside, part) for part in parts))


@dataclass(frozen=True)
class ExtremePlace:
    """The index of an extreme number of each row.

    Attributes:
        node: The step, after which the function is named.
        number: The numbers, over the indices of their tensor.
        row: The index within a row.
        others: The other indices.
        size: The number of elements of a row.
        sign: 1 if the greatest is looked for, -1 for the least.

    """

    node: str
    number: Term
    row: Variable
    others: tuple[Variable, ...]
    size: Term
    sign: int

    def number_at(self, arguments: Sequence[Term], place: Term) -> Term:
        """The number of a row at an index."""
        return Replacement({**dict(zip(self.others, arguments, strict=True)), self.row: place}).term(self.number)

    def known(self, arguments: Sequence[Term], real: Term | None) -> Formula:
        """All that holds of the index of one row: next to a real token from either end, the ends, the one before."""
        place = apply(self.node, *arguments)
        extreme = self.number_at(arguments, place) * self.sign
        parts = [at_most(0, place), less(place, self.size)]
        of_real = [] if real is None else [real, self.size - 1 - real]
        for other in [*of_real, integer(0), self.size - 1, place - 1]:
            number = self.number_at(arguments, other) * self.sign
            outside = some(less(other, 0), at_most(self.size, other))
            later = some(at_most(place, other), less(number, extreme))
            parts += [some(outside, at_most(number, extreme)), some(outside, later)]
        return every(*parts)


def known_of_places(formulas: Sequence[Formula], places: Mapping[str, KnownPlace], real: Term | None) -> list[Formula]:
    """All that holds of the places and rows that some formulas contain."""
    found: dict[Apply | Holds, Formula] = {}
    latest: Sequence[Formula] = formulas if places else ()
    for _ in range(ROUNDS):
        new = dict.fromkeys(atom for formula in latest for atom in _applied(formula, places) if atom not in found)
        latest = [places[atom.fields[0]].known(atom.fields[1], real) for atom in new]
        found.update(zip(new, latest, strict=True))
    return list(found.values())


def _applied(expression: Expression, places: Mapping[str, KnownPlace]) -> Iterable[Apply | Holds]:
    if isinstance(expression, Apply | Holds) and expression.fields[0] in places:
        yield expression
    for part in expression.inner:
        if not part.functions.isdisjoint(places):
            yield from _applied(part, places)
