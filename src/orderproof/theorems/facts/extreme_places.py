"""The index of the largest or smallest known number of each row: the first real token, the last one.

Lemma. Let A[i, j] be integers that are the same in both runs and known as a term, with j from 0 to n - 1. Let p(i) be
the index of the largest number of row i; of several that are largest, torch says, it is the first. Then

  1. p is the same function in both runs, and 0 <= p(i) < n.
  2. For each index w of the row, A[i, w] <= A[i, p(i)], and A[i, w] < A[i, p(i)] if w < p(i).
  3. The largest number is A[i, p(i)].

The same holds of the smallest number, with -A in place of A. So p is a new function of i. Wherever a formula applies
it, this is known besides, of these w: the real token that a statement names, counted from either end, the first one and
the last one of the row, and the one before p(i).
Proof. 1 and 2 say what the largest number and its first index are; A has the same numbers in both runs. For indices i
outside the tensor, A is a term all the same, and some p(i) fulfils 1 and 2: nothing is said of the model there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from orderproof.logic.rewriting import Substitution
from orderproof.logic.terms import (
    Apply,
    Expression,
    Formula,
    Holds,
    Term,
    apply,
    as_term,
    at_most,
    conjunction,
    flat,
    implication,
    less,
)
from orderproof.theorems.facts.open_fact import axis_variable

MOST_NESTED = 3  # places whose numbers depend on other places


class KnownPlace(Protocol):
    """An index of which something is known, as a function of other indices that has the name of its node."""

    def known(self, arguments: Sequence[Term], real: Term | None) -> Formula:
        """The formula of all that is known of the index at some arguments, given a token that counts as a real one."""


@dataclass(frozen=True)
class ExtremePlace:
    """The index of an extreme number of each row.

    Attributes:
        name: The function of the other indices that is the index.
        number: A number, over the indices of all axes.
        axis: The axis along which the numbers of a row are.
        others: The other axes, in order.
        size: How many numbers a row has.
        sign: 1 for the largest number, -1 for the smallest.

    """

    name: str
    number: Term
    axis: int
    others: tuple[int, ...]
    size: Term
    sign: int

    def at(self, arguments: Sequence[Term]) -> Term:
        """The index of the extreme number of a row."""
        return apply(self.name, *arguments)

    def number_at(self, arguments: Sequence[Term], place: Term) -> Term:
        """The number of a row at an index."""
        terms = {axis_variable(k): term for k, term in zip(self.others, arguments, strict=True)}
        return Substitution({**terms, axis_variable(self.axis): place}).term(self.number)

    def known(self, arguments: Sequence[Term], real: Term | None) -> Formula:
        """The formula of all that is known of the index of one row."""
        place = self.at(arguments)
        ends = (as_term(0), self.size - 1, place - 1)
        witnesses = ends if real is None else (real, self.size - 1 - real, *ends)
        extreme = self.number_at(arguments, place) * self.sign
        found = [at_most(0, place), less(place, self.size)]
        for one in witnesses:
            number = self.number_at(arguments, one) * self.sign
            first = implication(less(one, place), less(number, extreme))
            inside = conjunction(at_most(0, one), less(one, self.size))
            found.append(implication(inside, conjunction(at_most(number, extreme), first)))
        return conjunction(*found)


def known_of_places(
    formulas: Sequence[Expression], places: Mapping[str, KnownPlace], real: Term | None
) -> list[Formula]:
    """All that is known of places and rows in some formulas, given a token that is taken for a real one."""
    found: dict[Apply | Holds, Formula] = {}
    queue: Sequence[Expression] = formulas if places else ()
    for _ in range(MOST_NESTED):
        new = [atom for atom in dict.fromkeys(a for f in queue for a in _applied(f, places)) if atom not in found]
        for atom in new:
            found[atom] = places[atom.name].known(atom.parts[1], real)
        queue = [found[atom] for atom in new]
    return list(found.values())


def _applied(expression: Expression, places: Mapping[str, KnownPlace]) -> Iterable[Apply | Holds]:
    if expression.functions.isdisjoint(places):
        return
    if isinstance(expression, Apply | Holds) and expression.name in places:
        yield expression
    for part in flat(expression.parts):
        if isinstance(part, Expression):
            yield from _applied(part, places)
