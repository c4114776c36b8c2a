"""The least and the greatest number that an integer term may be.

Sizes and indices are less than 2^31. A function is any integer of int64, or less than 2^31 in size if it is one of
inputs and the certificate assumes that.
"""

from __future__ import annotations

from collections.abc import Container
from itertools import product

from orderproof_recheck.facts import Axes, index
from orderproof_recheck.logic.terms import Apply, Atom, Floor, If, Product, Term, of_atom

GREATEST_SIZE = (1 << 31) - 1
INT64 = (-(1 << 63), (1 << 63) - 1)
SMALL = (-GREATEST_SIZE, GREATEST_SIZE)
OF_A_RUN = "'"  # the end of the name of a function that may be another one in each run

Limit = tuple[int, int]


class Limits:
    """The limits of terms whose indices run over axes; functions with one of these names are small."""

    def __init__(self, axes: Axes, small: Container[str] = ()) -> None:
        self.small = small
        self.of_atoms: dict[Atom, Limit] = {}
        for k, size in enumerate(axes):
            self.of_atoms[index(k).summands[0][0]] = 0, max(0, self.limit(size)[1] - 1)

    def are_of_int64(self, term: Term) -> bool:
        """True if a term does not leave int64."""
        low, high = self.limit(term)
        return low >= INT64[0] and high <= INT64[1]

    def limit(self, term: Term) -> Limit:
        """The limits of a term."""
        low = high = term.constant
        for atom, factor in term.summands:
            if atom not in self.of_atoms:
                self.of_atoms[atom] = self._of_atom(atom)
            one, other = (factor * end for end in self.of_atoms[atom])
            low, high = low + min(one, other), high + max(one, other)
        return low, high

    def _of_atom(self, atom: Atom) -> Limit:
        if isinstance(atom, Apply):
            return SMALL if atom.fields[0].removesuffix(OF_A_RUN) in self.small else INT64
        if isinstance(atom, If):
            lows, highs = zip(*(self.limit(term) for term in atom.fields[1:]), strict=True)
            return min(lows), max(highs)
        if isinstance(atom, Floor):
            low, high = self.limit(atom.fields[0])
            return low // int(atom.fields[1]), high // int(atom.fields[1])
        if isinstance(atom, Product):
            found: Limit = (1, 1)
            for factor in atom.fields[0]:
                ends = [a * b for a, b in product(found, self.limit(of_atom(factor)))]
                found = min(ends), max(ends)
            return found
        return SMALL
