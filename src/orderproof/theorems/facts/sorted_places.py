"""The indices of sorted elements, and those that put them back: `x[order]`, and `y[order.argsort()]`.

Lemma. Let A have the same elements in both runs, n of them along an axis, and let p(i, j) be the index of the element
of row i that comes j-th when the row is sorted. Then

  1. p is the same function in both runs, and 0 <= p(i, j) < n. What is j-th is A[i, p(i, j)].
  2. If q sorts a row of numbers P[i, j] that are 0, ..., n - 1 in some order, smallest first, P[i, q(i, j)] = j.
     Indices that sort another tensor are such numbers.

Proof. 1. Torch sorts rows that are equal in the same way; p(i, .) is a permutation of a row. 2. The j-th smallest of
0, ..., n - 1 is j. Of indices outside of the tensor nothing is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orderproof.logic.rewriting import Substitution
from orderproof.logic.terms import TRUE, Formula, Term, apply, at_most, conjunction, equal, implication, less
from orderproof.theorems.facts.open_fact import axis_variable


@dataclass(frozen=True)
class SortedPlace:
    """The index of each element of a sorted row.

    Attributes:
        name: The function of the indices that is the index.
        axis: The axis along which rows are sorted.
        sizes: The sizes of all axes.
        numbers: What is sorted, if it is 0, 1, ... in some order, and the smallest comes first.

    """

    name: str
    axis: int
    sizes: tuple[Term, ...]
    numbers: Term | None = None

    def known(self, arguments: Sequence[Term], real: Term | None) -> Formula:
        """The formula of all that is known of the index at one place of a sorted row."""
        del real
        place, size = apply(self.name, *arguments), self.sizes[self.axis]
        inside = (f for k, n in zip(arguments, self.sizes, strict=True) for f in (at_most(0, k), less(k, n)))
        found = at_most(0, place) & less(place, size) & self._puts_back(arguments, place)
        return implication(conjunction(*inside), found)

    def _puts_back(self, arguments: Sequence[Term], place: Term) -> Formula:
        if self.numbers is None:
            return TRUE
        terms = {axis_variable(k): place if k == self.axis else term for k, term in enumerate(arguments)}
        return equal(Substitution(terms).term(self.numbers), arguments[self.axis])
