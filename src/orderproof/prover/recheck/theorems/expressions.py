"""Integer terms and formulas without quantifiers, in a normal form.

A term is an integer plus integer multiples of atoms. An atom is a variable, an uninterpreted function of terms, one of
two terms (`If`), a term divided by a positive integer and rounded down (`Floor`), or a product of atoms of which
nothing is known. A formula compares a term with zero, applies an uninterpreted boolean function, or joins formulas.
Equal expressions are one object. The code is independent of `prover/logic`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from math import gcd
from typing import Any, Final, TypeVar

_known: dict[tuple[Any, ...], Any] = {}
_E = TypeVar("_E", bound="Expression")


class Expression:
    """A term, an atom or a formula."""

    fields: tuple[Any, ...]

    @cached_property
    def order(self) -> str:
        """The key by which parts are sorted."""
        return f"{type(self).__name__}({_order(self.fields)})"

    @cached_property
    def inner(self) -> tuple[Expression, ...]:
        """The expressions directly inside."""
        return tuple(_expressions(self.fields))

    @cached_property
    def variables(self) -> frozenset[Variable]:
        """The variables that occur."""
        own = frozenset({self}) if isinstance(self, Variable) else frozenset()
        return own.union(*(part.variables for part in self.inner))

    @cached_property
    def functions(self) -> frozenset[str]:
        """The names of the functions that occur."""
        own = frozenset({self.fields[0]}) if isinstance(self, Apply | Holds) else frozenset()
        return own.union(*(part.functions for part in self.inner))

    @cached_property
    def largest_integer(self) -> int:
        """The largest absolute value of an integer that occurs."""
        own = [abs(x) for x in _integers(self.fields)]
        return max([*own, *(part.largest_integer for part in self.inner)], default=0)


def _order(field: Any) -> str:
    if isinstance(field, Expression):
        return field.order
    return f"({','.join(map(_order, field))})" if isinstance(field, tuple) else str(field)


def _expressions(field: Any) -> Iterable[Expression]:
    if isinstance(field, Expression):
        yield field
    elif isinstance(field, tuple):
        for part in field:
            yield from _expressions(part)


def _integers(field: Any) -> Iterable[int]:
    if isinstance(field, tuple):
        for part in field:
            yield from _integers(part)
    elif isinstance(field, int):
        yield int(field)


def _make(kind: type[_E], *fields: Any) -> _E:
    key = (kind, *fields)
    if key not in _known:
        made = object.__new__(kind)
        made.fields = fields
        _known[key] = made
    found: _E = _known[key]
    return found


class Atom(Expression):
    """An integer that is not a sum."""


class Variable(Atom):
    """A variable: (name)."""


class Apply(Atom):
    """An uninterpreted integer function: (name, terms)."""


class If(Atom):
    """One of two terms: (formula, term, term)."""


class Floor(Atom):
    """A quotient rounded down: (term, positive integer)."""


class Product(Atom):
    """A product of several atoms: (atoms)."""


class Term(Expression):
    """A linear combination: (integer, ((atom, factor), ...))."""

    @property
    def constant(self) -> int:
        """The integer."""
        return int(self.fields[0])

    @property
    def summands(self) -> tuple[tuple[Atom, int], ...]:
        """The atoms and their factors, which are not zero."""
        found: tuple[tuple[Atom, int], ...] = self.fields[1]
        return found

    @property
    def is_integer(self) -> bool:
        """True if the term is one integer."""
        return not self.fields[1]

    def __add__(self, other: Term | int) -> Term:
        other = integer(other) if isinstance(other, int) else other
        total = dict(self.summands)
        for atom, factor in other.summands:
            total[atom] = total.get(atom, 0) + factor
        return linear(self.constant + other.constant, total)

    def __mul__(self, factor: int) -> Term:
        return linear(self.constant * factor, {a: f * factor for a, f in self.summands})

    def __sub__(self, other: Term | int) -> Term:
        return self + (-other if isinstance(other, int) else other * -1)

    def times(self, other: Term) -> Term:
        """The product; products of atoms are atoms."""
        total = self * other.constant + other * self.constant - self.constant * other.constant
        for first, f in self.summands:
            for second, g in other.summands:
                atoms = tuple(sorted((*_factors(first), *_factors(second)), key=lambda a: a.order))
                total = total + of_atom(_make(Product, atoms)) * (f * g)
        return total


def _factors(atom: Atom) -> tuple[Atom, ...]:
    return atom.fields[0] if isinstance(atom, Product) else (atom,)


def linear(constant: int, summands: Mapping[Atom, int]) -> Term:
    """A term from an integer and factors of atoms."""
    kept = [(a, f) for a, f in summands.items() if f]
    return _make(Term, constant, tuple(sorted(kept, key=lambda pair: pair[0].order)))


def integer(value: int) -> Term:
    """An integer as a term."""
    return _make(Term, int(value), ())


def of_atom(atom: Atom) -> Term:
    """An atom as a term."""
    return _make(Term, 0, ((atom, 1),))


def variable(name: str) -> Term:
    """A variable as a term."""
    return of_atom(_make(Variable, name))


def apply(name: str, *arguments: Term) -> Term:
    """An uninterpreted integer function."""
    return of_atom(_make(Apply, name, arguments))


def if_else(condition: Formula, first: Term, second: Term) -> Term:
    """The first term where the condition is true, the second elsewhere."""
    if condition is TRUE or first is second:
        return first
    return second if condition is FALSE else of_atom(_make(If, condition, first, second))


def floor_of(term: Term, divisor: int) -> Term:
    """The quotient of a term and a positive integer, rounded down."""
    outside = {a: f // divisor for a, f in term.summands if f % divisor == 0}
    inside = {a: f for a, f in term.summands if f % divisor}
    quotient, rest = divmod(term.constant, divisor)
    if not inside:
        return linear(quotient, outside)
    return linear(quotient, outside) + of_atom(_make(Floor, linear(rest, inside), divisor))


def remainder_of(term: Term, divisor: int) -> Term:
    """The remainder of a term and a positive integer: at least 0, less than the integer."""
    return term - floor_of(term, divisor) * divisor


class Formula(Expression):
    """A statement about integers."""

    def __and__(self, other: Formula) -> Formula:
        return every(self, other)

    def __or__(self, other: Formula) -> Formula:
        return some(self, other)

    def __invert__(self) -> Formula:
        return opposite(self)


class Truth(Formula):
    """True or false: (bool)."""


class AtMostZero(Formula):
    """A term is at most zero: (term)."""


class IsZero(Formula):
    """A term is zero: (term)."""


class Holds(Formula):
    """An uninterpreted boolean function: (name, terms)."""


class Not(Formula):
    """The opposite of `IsZero` or `Holds`: (formula)."""


class Every(Formula):
    """All formulas hold: (formulas)."""


class Some(Formula):
    """At least one formula holds: (formulas)."""


TRUE: Final[Formula] = _make(Truth, True)
FALSE: Final[Formula] = _make(Truth, False)


def holds(name: str, *arguments: Term) -> Formula:
    """An uninterpreted boolean function."""
    return _make(Holds, name, arguments)


def _split_cases(term: Term, compare: Callable[[Term], Formula]) -> Formula | None:
    """The comparison of an `If` of two integers, as the cases of its condition."""
    if len(term.summands) != 1 or not isinstance(term.summands[0][0], If):
        return None
    (atom, factor) = term.summands[0]
    condition, first, second = atom.fields
    if not (first.is_integer and second.is_integer):
        return None
    yes, no = compare(first * factor + term.constant), compare(second * factor + term.constant)
    return some(every(condition, yes), every(opposite(condition), no))


def at_most(first: Term | int, second: Term | int) -> Formula:
    """First <= second."""
    return _at_most_zero((integer(first) if isinstance(first, int) else first) - second)


def _at_most_zero(term: Term) -> Formula:
    if term.is_integer:
        return TRUE if term.constant <= 0 else FALSE
    if (cases := _split_cases(term, _at_most_zero)) is not None:
        return cases
    divisor = gcd(*(f for _, f in term.summands))
    return _make(AtMostZero, linear(-(-term.constant // divisor), {a: f // divisor for a, f in term.summands}))


def less(first: Term | int, second: Term | int) -> Formula:
    """First < second."""
    return at_most((integer(first) if isinstance(first, int) else first) + 1, second)


def equal(first: Term | int, second: Term | int) -> Formula:
    """First = second."""
    return _is_zero((integer(first) if isinstance(first, int) else first) - second)


def _is_zero(term: Term) -> Formula:
    if term.is_integer:
        return TRUE if term.constant == 0 else FALSE
    if (cases := _split_cases(term, _is_zero)) is not None:
        return cases
    divisor = gcd(*(f for _, f in term.summands))
    if term.constant % divisor:
        return FALSE
    if term.summands[0][1] < 0:
        divisor = -divisor
    return _make(IsZero, linear(term.constant // divisor, {a: f // divisor for a, f in term.summands}))


def opposite(formula: Formula) -> Formula:
    """The negation."""
    if formula not in _opposites:
        found = _opposite(formula)
        _opposites[formula], _opposites[found] = found, formula
    return _opposites[formula]


_opposites: dict[Formula, Formula] = {}


def _opposite(formula: Formula) -> Formula:
    match formula:
        case Truth():
            return FALSE if formula is TRUE else TRUE
        case AtMostZero(fields=(term,)):
            return _at_most_zero(term * -1 + 1)
        case Not(fields=(inner,)):
            return inner  # type: ignore[no-any-return]
        case Every(fields=(parts,)):
            return some(*map(opposite, parts))
        case Some(fields=(parts,)):
            return every(*map(opposite, parts))
    return _make(Not, formula)


def every(*formulas: Formula) -> Formula:
    """All of the formulas."""
    return _joined(Every, TRUE, FALSE, formulas)


def some(*formulas: Formula) -> Formula:
    """At least one of the formulas."""
    return _joined(Some, FALSE, TRUE, formulas)


def _joined(kind: type[Every | Some], neutral: Formula, absorbing: Formula, formulas: Iterable[Formula]) -> Formula:
    parts: dict[Formula, None] = {}
    for formula in formulas:
        for one in formula.fields[0] if isinstance(formula, kind) else (formula,):
            if one is absorbing or opposite(one) in parts:
                return absorbing
            if one is not neutral:
                parts[one] = None
    if len(parts) < 2:
        return next(iter(parts), neutral)
    return _make(kind, tuple(sorted(parts, key=lambda f: f.order)))


def implies(premise: Formula, conclusion: Formula) -> Formula:
    """The conclusion holds where the premise does."""
    return some(opposite(premise), conclusion)


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
                return _at_most_zero(self.term(term))
            case IsZero(fields=(term,)):
                return _is_zero(self.term(term))
            case Holds(fields=(name, arguments)):
                return holds(name, *map(self.term, arguments))
            case Not(fields=(inner,)):
                return opposite(self.formula(inner))
            case Every(fields=(parts,)):
                return every(*map(self.formula, parts))
            case Some(fields=(parts,)):
                return some(*map(self.formula, parts))
        return formula
