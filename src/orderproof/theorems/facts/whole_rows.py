"""If all, or any, of the known booleans of each row are true.

Lemma. Let B[i, j] be booleans that are the same in both runs and known as a formula, with j from 0 to n - 1. Let a(i)
be true where all of row i are, and e(i) where any is: the same functions in both runs. For each index w of the row,
a(i) implies B[i, w], and B[i, w] implies e(i).

Wherever a formula applies such a function, this is known besides, of a few indices: the first and the last, those of
the row that are places along an axis as long as it, and a token that the statement takes for a real one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orderproof.logic.rewriting import Substitution
from orderproof.logic.terms import Formula, Term, as_term, at_most, conjunction, holds, implication, less
from orderproof.theorems.facts.open_fact import axis_variable


@dataclass(frozen=True)
class WholeRow:
    """If all, or any, of the booleans of each row are true.

    Attributes:
        name: The function of the other indices that says so.
        element: A boolean, over the indices of all axes.
        axis: The axis along which the booleans of a row are.
        others: The other axes, in order.
        own: The places among `others` of axes that are as long as a row.
        size: How many booleans a row has.
        is_all: All of them; else any.

    """

    name: str
    element: Formula
    axis: int
    others: tuple[int, ...]
    own: tuple[int, ...]
    size: Term
    is_all: bool

    def known(self, arguments: Sequence[Term], real: Term | None) -> Formula:
        """The formula of all that is known of one row."""
        terms = {axis_variable(k): term for k, term in zip(self.others, arguments, strict=True)}
        whole, found = holds(self.name, *arguments), []
        of_real = () if real is None else (real, self.size - 1 - real)
        for one in (*of_real, as_term(0), self.size - 1, *(arguments[k] for k in self.own)):
            element = Substitution({**terms, axis_variable(self.axis): one}).formula(self.element)
            inside = conjunction(at_most(0, one), less(one, self.size))
            says = implication(whole, element) if self.is_all else implication(element, whole)
            found.append(implication(inside, says))
        return conjunction(*found)
