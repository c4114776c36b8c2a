"""Indices that are computed from tokens, as far as is known of them in one run.

The index of an extreme number of a row is in the row. A running maximum is one of the numbers up to its place; torch
gives the index of it, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orderproof_recheck.logic.formulas import Formula, at_most, equal, every, less, some
from orderproof_recheck.logic.replacement import Replacement
from orderproof_recheck.logic.terms import Term, Variable, apply


@dataclass(frozen=True)
class IndexInRow:
    """The index of a number in a row of a size: a function of a run."""

    function: str
    size: Term

    def known(self, arguments: Sequence[Term], real: Term | None) -> Formula:
        """All that holds of the index of one row."""
        del real
        place = apply(self.function, *arguments)
        return every(at_most(0, place), less(place, self.size))


@dataclass(frozen=True)
class RunningExtreme:
    """The greatest number up to each index, or the least, or where it is.

    Attributes:
        function: The function of a run that is the number, or the index.
        row: The place of the index within a row among the arguments.
        numbers: The numbers, over the indices; None of the index.
        indices: The variables of these indices.

    """

    function: str
    row: int
    numbers: Term | None
    indices: tuple[Variable, ...]

    def known(self, arguments: Sequence[Term], real: Term | None) -> Formula:
        """All that holds of the number at some arguments."""
        del real
        found, own = apply(self.function, *arguments), arguments[self.row]
        if self.numbers is None:
            return some(less(own, 0), every(at_most(0, found), at_most(found, own)))
        place = apply(f"{self.function} at", *arguments)
        terms = [place if k == self.row else term for k, term in enumerate(arguments)]
        number = Replacement(dict(zip(self.indices, terms, strict=True))).term(self.numbers)
        return some(less(own, 0), every(at_most(0, place), at_most(place, own), equal(found, number)))
