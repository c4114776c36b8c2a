"""Indices that are computed from tokens, as far as is known of them in one run: no later place than that of the token.

Lemma. In each run, let p(i) be an index of which the values differ from run to run.
  1. The index of the largest of n numbers is one of 0, ..., n - 1.
  2. The running maximum of numbers A[j] up to j = i, or the minimum, is A[p(i)] for some index p(i) with
     0 <= p(i) <= i. Torch gives such an index besides.

Of indices outside of the tensor nothing is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orderproof.logic.rewriting import Substitution
from orderproof.logic.terms import Formula, Term, apply, at_most, conjunction, equal, implication, less
from orderproof.theorems.facts.open_fact import axis_variable


@dataclass(frozen=True)
class IndexInRow:
    """The index of an extreme number of a row.

    Attributes:
        name: The function of the indices that is the index.
        size: How many numbers a row has.

    """

    name: str
    size: Term

    def known(self, arguments: Sequence[Term], real: Term | None) -> Formula:
        """The formula of all that is known of the index of one row."""
        del real
        place = apply(self.name, *arguments)
        return at_most(0, place) & less(place, self.size)


@dataclass(frozen=True)
class RunningExtreme:
    """The extreme number up to each index, or where it is.

    Attributes:
        name: The function of the indices that is the number, or the index.
        axis: The axis along which it runs.
        numbers: A number, over the indices of all axes; None for the index.

    """

    name: str
    axis: int
    numbers: Term | None

    def known(self, arguments: Sequence[Term], real: Term | None) -> Formula:
        """The formula of all that is known of the number at some arguments."""
        del real
        found, own = apply(self.name, *arguments), arguments[self.axis]
        place = found if self.numbers is None else apply(f"{self.name} at", *arguments)
        parts = [at_most(0, place), at_most(place, own)]
        if self.numbers is not None:
            terms = {axis_variable(k): place if k == self.axis else term for k, term in enumerate(arguments)}
            parts.append(equal(found, Substitution(terms).term(self.numbers)))
        return implication(at_most(0, own), conjunction(*parts))
