"""Terms in place of atoms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orderproof_recheck.logic.formulas import (
    AtMostZero,
    Every,
    Formula,
    Holds,
    IsZero,
    Not,
    Some,
    at_most_zero,
    every,
    holds,
    if_else,
    is_zero,
    opposite,
    some,
)
from orderproof_recheck.logic.terms import (
    Apply,
    Atom,
    Expression,
    Floor,
    If,
    Product,
    Term,
    apply,
    floor_of,
    integer,
    of_atom,
)


class Replacement:
    """Terms in place of atoms, everywhere in an expression."""

    def __init__(self, terms: Mapping[Atom, Term]) -> None:
        self.terms = terms
        self._done: dict[Expression, Any] = {}

    def term(self, term: Term) -> Term:
        """The term with the replacements."""
        if term not in self._done:
            total = integer(term.constant)
            for atom, factor in term.summands:
                total = total + self._atom(atom) * factor
            self._done[term] = total
        return self._done[term]  # type: ignore[no-any-return]

    def _atom(self, atom: Atom) -> Term:
        if atom in self.terms:
            return self.terms[atom]
        match atom:
            case Apply(fields=(name, arguments)):
                return apply(name, *map(self.term, arguments))
            case If(fields=(condition, first, second)):
                return if_else(self.formula(condition), self.term(first), self.term(second))
            case Floor(fields=(term, divisor)):
                return floor_of(self.term(term), divisor)
            case Product(fields=(factors,)):
                result = integer(1)
                for factor in factors:
                    result = result.times(self._atom(factor))
                return result
        return of_atom(atom)

    def formula(self, formula: Formula) -> Formula:
        """The formula with the replacements."""
        if formula not in self._done:
            self._done[formula] = self._replaced(formula)
        return self._done[formula]  # type: ignore[no-any-return]

    def _replaced(self, formula: Formula) -> Formula:
        match formula:
            case AtMostZero(fields=(term,)):
                return at_most_zero(self.term(term))
            case IsZero(fields=(term,)):
                return is_zero(self.term(term))
            case Holds(fields=(name, arguments)):
                return holds(name, *map(self.term, arguments))
            case Not(fields=(inner,)):
                return opposite(self.formula(inner))
            case Every(fields=(parts,)):
                return every(*map(self.formula, parts))
            case Some(fields=(parts,)):
                return some(*map(self.formula, parts))
        return formula
