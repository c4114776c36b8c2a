"""Numbers that integer terms do not exceed in size.

Sizes and indices are less than 2^31. An uninterpreted function is any integer of its dtype, or less than 2^31 where
the certificate assumes it.
"""

from __future__ import annotations

from math import prod

from orderproof.prover.recheck.theorems.facts import Axes, index
from orderproof.prover.recheck.theorems.terms import Apply, Atom, Floor, If, Product, Term, of_atom

GREATEST_SIZE = (1 << 31) - 1


class Limits:
    """The limits of terms whose indices run over axes, where functions do not exceed `of_functions` in size."""

    def __init__(self, axes: Axes, of_functions: int) -> None:
        self.of_functions = of_functions
        self.of_atoms: dict[Atom, int] = {}
        for k, size in enumerate(axes):
            self.of_atoms[index(k).summands[0][0]] = max(1, self.limit(size))

    def limit(self, term: Term) -> int:
        """The limit of a term."""
        total = abs(term.constant)
        for atom, factor in term.summands:
            if atom not in self.of_atoms:
                self.of_atoms[atom] = self._of_atom(atom)
            total += abs(factor) * self.of_atoms[atom]
        return total

    def _of_atom(self, atom: Atom) -> int:
        if isinstance(atom, Apply):
            return self.of_functions
        if isinstance(atom, If):
            return max(self.limit(term) for term in atom.fields[1:])
        if isinstance(atom, Floor):
            return self.limit(atom.fields[0]) // int(atom.fields[1]) + 1
        if isinstance(atom, Product):
            return prod(self.limit(of_atom(factor)) for factor in atom.fields[0])
        return GREATEST_SIZE
