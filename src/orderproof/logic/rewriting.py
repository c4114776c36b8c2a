"""Replace variables and functions of expressions, and compute their values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

from orderproof.logic.terms import (
    FALSE,
    TRUE,
    And,
    Apply,
    AtMostZero,
    Atom,
    Conditional,
    EqualsZero,
    Expression,
    FloorDivision,
    Formula,
    Holds,
    Not,
    Or,
    Product,
    Term,
    Variable,
    apply,
    as_term,
    at_most,
    conditional,
    conjunction,
    disjunction,
    equal,
    floor_division,
    holds,
    negation,
)


class Substitution:
    """Terms for variables or other atoms; each expression is rewritten once."""

    def __init__(self, terms: Mapping[Variable, Term] | Mapping[Atom, Term]) -> None:
        self.terms: dict[Atom, Term] = {v: t for v, t in terms.items() if as_term(v) is not t}
        self._variables: frozenset[Variable] = frozenset().union(*(atom.variables for atom in self.terms))
        self._done: dict[Expression, Any] = {}

    def term(self, term: Term) -> Term:
        """The term with the terms in place of the atoms."""
        if self._variables.isdisjoint(term.variables):
            return term
        if term not in self._done:
            total = as_term(term.constant)
            for atom, factor in term.summands:
                total = total + self._atom(atom) * factor
            self._done[term] = total
        return self._done[term]  # type: ignore[no-any-return]

    def _atom(self, atom: Atom) -> Term:
        if atom in self.terms:
            return self.terms[atom]
        match atom:
            case Variable():
                return as_term(atom)
            case Apply(parts=(name, arguments)):
                return apply(name, *map(self.term, arguments))
            case Conditional(parts=(condition, first, second)):
                return conditional(self.formula(condition), self.term(first), self.term(second))
            case FloorDivision(parts=(term, divisor)):
                return floor_division(self.term(term), divisor)
            case Product(parts=(factors,)):
                result = as_term(1)
                for factor in factors:
                    result = result.times(self._atom(factor))
                return result
        raise AssertionError(atom)

    def formula(self, formula: Formula) -> Formula:
        """The formula with the terms in place of the atoms."""
        if self._variables.isdisjoint(formula.variables):
            return formula
        if formula not in self._done:
            self._done[formula] = self._rewritten(formula)
        return self._done[formula]  # type: ignore[no-any-return]

    def _rewritten(self, formula: Formula) -> Formula:
        match formula:
            case AtMostZero(parts=(term,)):
                return at_most(self.term(term), 0)
            case EqualsZero(parts=(term,)):
                return equal(self.term(term), 0)
            case Holds(parts=(name, arguments)):
                return holds(name, *map(self.term, arguments))
            case Not(parts=(inner,)):
                return negation(self.formula(inner))
            case And(parts=(operands,)):
                return conjunction(*map(self.formula, operands))
            case Or(parts=(operands,)):
                return disjunction(*map(self.formula, operands))
        return formula


def with_function_true(formula: Formula, name: str) -> Formula:
    """The formula with `true` for every application of a boolean function outside of terms."""
    return _rebuilt(formula, lambda one: TRUE if isinstance(one, Holds) and one.name == name else one)


def with_upper_limit_met(formula: Formula, name: str) -> Formula:
    """The formula where each index is below the number that an integer function gives, wherever both are compared."""

    def replaced(one: Formula) -> Formula:
        if not isinstance(one, AtMostZero):
            return one
        (term,) = one.parts
        factors = [factor for atom, factor in term.summands if isinstance(atom, Apply) and atom.name == name]
        return one if not factors else FALSE if factors[0] > 0 else TRUE

    return _rebuilt(formula, replaced)


def with_function_zero(formula: Formula, name: str) -> Formula:
    """The formula with 0 for every summand of a comparison that applies an integer function."""

    def rest(term: Term) -> Term:
        found = as_term(term.constant)
        for atom, factor in term.summands:
            if not (isinstance(atom, Apply) and atom.name == name):
                found = found + as_term(atom) * factor
        return found

    def replaced(one: Formula) -> Formula:
        match one:
            case AtMostZero(parts=(term,)):
                return at_most(rest(term), 0)
            case EqualsZero(parts=(term,)):
                return equal(rest(term), 0)
        return one

    return _rebuilt(formula, replaced)


def _rebuilt(formula: Formula, replaced: Callable[[Formula], Formula]) -> Formula:
    """The formula with another one for each comparison, constant and function that it joins or negates."""
    match formula:
        case Not(parts=(inner,)):
            return negation(_rebuilt(inner, replaced))
        case And(parts=(operands,)):
            return conjunction(*(_rebuilt(f, replaced) for f in operands))
        case Or(parts=(operands,)):
            return disjunction(*(_rebuilt(f, replaced) for f in operands))
    return replaced(formula)


Functions = Mapping[str, Callable[..., int | bool]]


def evaluate(expression: Expression, values: Mapping[str, int], functions: Functions) -> int | bool:  # noqa: C901
    """The value of an expression: an integer of a term, a boolean of a formula."""

    def value(e: Expression) -> int | bool:
        match e:
            case Term():
                return e.constant + sum(int(value(a)) * f for a, f in e.summands)
            case Variable():
                return values[e.name]
            case Product(parts=(factors,)):
                return prod(int(value(factor)) for factor in factors)
            case Apply(parts=(name, arguments)) | Holds(parts=(name, arguments)):
                return functions[name](*map(value, arguments))
            case Conditional(parts=(condition, first, second)):
                return value(first if value(condition) else second)
            case FloorDivision(parts=(term, divisor)):
                return int(value(term)) // int(divisor)
            case AtMostZero(parts=(term,)):
                return value(term) <= 0
            case EqualsZero(parts=(term,)):
                return value(term) == 0
            case Not(parts=(inner,)):
                return not value(inner)
            case And(parts=(operands,)):
                return all(map(value, operands))
            case Or(parts=(operands,)):
                return any(map(value, operands))
        return e is TRUE

    return value(expression)
