"""Integer terms in a normal form.

A term is an integer plus integer multiples of atoms. An atom is a variable, an uninterpreted function of terms, one of
two terms (`If`), a term divided by a positive integer and rounded down (`Floor`), or a product of atoms of which
nothing is known. Equal expressions are one object. The code is independent of `logic`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, ClassVar, TypeVar

_known: dict[tuple[Any, ...], Any] = {}
_E = TypeVar("_E", bound="Expression")


class Expression:
    """A term, an atom or a formula."""

    fields: tuple[Any, ...]
    is_applied: ClassVar[bool] = False  # a function: (name, terms)

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
        own = frozenset({self.fields[0]}) if self.is_applied else frozenset()
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


def make(kind: type[_E], *fields: Any) -> _E:
    """The expression of a kind with these fields."""
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

    is_applied = True


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
                total = total + of_atom(make(Product, atoms)) * (f * g)
        return total


def _factors(atom: Atom) -> tuple[Atom, ...]:
    return atom.fields[0] if isinstance(atom, Product) else (atom,)


def linear(constant: int, summands: Mapping[Atom, int]) -> Term:
    """A term from an integer and factors of atoms."""
    kept = [(a, f) for a, f in summands.items() if f]
    return make(Term, constant, tuple(sorted(kept, key=lambda pair: pair[0].order)))


def integer(value: int) -> Term:
    """An integer as a term."""
    return make(Term, int(value), ())


def of_atom(atom: Atom) -> Term:
    """An atom as a term."""
    return make(Term, 0, ((atom, 1),))


def variable(name: str) -> Term:
    """A variable as a term."""
    return of_atom(make(Variable, name))


def apply(name: str, *arguments: Term) -> Term:
    """An uninterpreted integer function."""
    return of_atom(make(Apply, name, arguments))


def floor_of(term: Term, divisor: int) -> Term:
    """The quotient of a term and a positive integer, rounded down."""
    outside = {a: f // divisor for a, f in term.summands if f % divisor == 0}
    inside = {a: f for a, f in term.summands if f % divisor}
    quotient, rest = divmod(term.constant, divisor)
    if not inside:
        return linear(quotient, outside)
    return linear(quotient, outside) + of_atom(make(Floor, linear(rest, inside), divisor))


def remainder_of(term: Term, divisor: int) -> Term:
    """The remainder of a term and a positive integer: at least 0, less than the integer."""
    return term - floor_of(term, divisor) * divisor
