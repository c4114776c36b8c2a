"""The index of the greatest or least number of each row of a tensor of known integers.

Of several that are greatest, torch gives the first. So the index is in the row, no number of the row exceeds the one
there, and none before it reaches it. It is a new function of the other indices, named after its step. A row always has
such an index, whatever the numbers are; so what is said of the function is no contradiction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from orderproof_recheck.logic.formulas import Formula, Holds, at_most, every, less, some
from orderproof_recheck.logic.replacement import Replacement
from orderproof_recheck.logic.terms import Apply, Expression, Term, Variable, apply
from orderproof_recheck.whole_rows import WholeRow

ROUNDS = 3  # of places whose numbers are given by other places


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
        """All that holds of the index of one row, also by comparison with a real token from either end."""
        place = apply(self.node, *arguments)
        extreme = self.number_at(arguments, place) * self.sign
        parts = [at_most(0, place), less(place, self.size)]
        for other in [] if real is None else [real, self.size - 1 - real]:
            number = self.number_at(arguments, other) * self.sign
            outside = some(less(other, 0), at_most(self.size, other))
            later = some(at_most(place, other), less(number, extreme))
            parts += [some(outside, at_most(number, extreme)), some(outside, later)]
        return every(*parts)


def known_of_places(
    formulas: Sequence[Formula], places: Mapping[str, ExtremePlace | WholeRow], real: Term | None
) -> list[Formula]:
    """All that holds of the places and rows that some formulas contain."""
    found: dict[Apply | Holds, Formula] = {}
    latest: Sequence[Formula] = formulas if places else ()
    for _ in range(ROUNDS):
        new = dict.fromkeys(atom for formula in latest for atom in _applied(formula, places) if atom not in found)
        latest = [places[atom.fields[0]].known(atom.fields[1], real) for atom in new]
        found.update(zip(new, latest, strict=True))
    return list(found.values())


def _applied(expression: Expression, places: Mapping[str, ExtremePlace | WholeRow]) -> Iterable[Apply | Holds]:
    if isinstance(expression, Apply | Holds) and expression.fields[0] in places:
        yield expression
    for part in expression.inner:
        if not part.functions.isdisjoint(places):
            yield from _applied(part, places)
