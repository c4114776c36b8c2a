"""Integer terms and formulas over the indices of tensors.

A term is a linear combination of atoms with integer coefficients. A formula is built from comparisons of terms with
zero and from boolean functions. Neither contains a quantifier. The grammar, as it is printed:

    term     ::=  integer | variable | integer * atom | term + term
    atom     ::=  variable | function(term, ...) | (formula ? term : term) | floor(term / integer) | atom*atom
    formula  ::=  true | false | term <= 0 | term == 0 | function(term, ...) | !formula | formula & ... | formula | ...

Functions are uninterpreted: `mask(row, token)` is an arbitrary boolean for each row and token. Equal expressions are
the same object, so that comparing and hashing them costs nothing and results can be cached by expression.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from math import gcd
from operator import attrgetter
from typing import Any, Final, TypeVar

from orderproof.logic.ordering import MAX_NODES, Ordered, TooLarge

_interned: dict[tuple[Any, ...], Any] = {}
_E = TypeVar("_E", bound="Expression")


class Expression(Ordered):
    """A term, an atom or a formula. Equal expressions are the same object."""

    __match_args__ = ("parts",)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        """The text, or what only an equal expression has."""
        return self.text if self.size <= MAX_NODES else f"<{type(self).__name__} {self.digest.hex()}>"

    @cached_property
    def text(self) -> str:
        """The expression as it is printed. Small operands are ordered by it, so it is made once. Raises `TooLarge`."""
        if self.size > MAX_NODES:
            raise TooLarge(f"a condition or a size has more than {MAX_NODES:,} parts")
        return self._text()

    def _text(self) -> str:
        raise NotImplementedError

    @cached_property
    def variables(self) -> frozenset[Variable]:
        """The variables that occur."""
        found: set[Variable] = set()
        for part in flat(self.parts):
            if isinstance(part, Expression):
                found |= part.variables
        return frozenset(found)

    @cached_property
    def magnitude(self) -> int:
        """The largest absolute value of the integers that occur."""
        parts = (p for p in flat(self.parts) if isinstance(p, int | Expression))
        return max((abs(p) if isinstance(p, int) else p.magnitude for p in parts), default=0)

    @cached_property
    def products(self) -> tuple[Product, ...]:
        """The products that occur, each once."""
        own = (self,) if isinstance(self, Product) else ()
        inner = (product for p in flat(self.parts) if isinstance(p, Expression) for product in p.products)
        return tuple(dict.fromkeys((*own, *inner)))

    @cached_property
    def functions(self) -> frozenset[str]:
        """Names of the functions that occur."""
        own = {self.name} if isinstance(self, Apply | Holds) else set()
        return frozenset(own.union(*(p.functions for p in flat(self.parts) if isinstance(p, Expression))))


def flat(parts: Iterable[Any]) -> Iterable[Any]:
    """The parts of an expression, with those of tuples in place of the tuples."""
    for part in parts:
        if isinstance(part, tuple):
            yield from flat(part)
        else:
            yield part


def _intern(kind: type[_E], *parts: Any) -> _E:
    key = (kind, *parts)
    found: _E | None = _interned.get(key)
    if found is None:
        found = object.__new__(kind)
        found.set_parts(parts)
        _interned[key] = found
    return found


# ---------------------------------------------------------------------- atoms


class Atom(Expression):
    """An integer that is not a sum."""


class Variable(Atom):
    """An integer variable: an index, or a symbol of a statement."""

    @property
    def name(self) -> str:
        """The name."""
        return str(self.parts[0])

    @cached_property
    def variables(self) -> frozenset[Variable]:
        """Itself."""
        return frozenset({self})

    def _text(self) -> str:
        return self.name


class Product(Atom):
    """A product of atoms, such as batch * tokens: an integer of which nothing else is known."""

    def _text(self) -> str:
        return "*".join(map(str, self.parts[0]))


class Apply(Atom):
    """An uninterpreted integer function of terms."""

    @property
    def name(self) -> str:
        """The name of the function."""
        return str(self.parts[0])

    def _text(self) -> str:
        return f"{self.name}({', '.join(map(str, self.parts[1]))})"


class Conditional(Atom):
    """One of two terms."""

    def _text(self) -> str:
        condition, first, second = self.parts
        return f"({condition} ? {first} : {second})"


class FloorDivision(Atom):
    """A term divided by a positive integer, rounded down."""

    def _text(self) -> str:
        return f"floor(({self.parts[0]}) / {self.parts[1]})"


# ---------------------------------------------------------------------- terms


class Term(Expression):
    """A linear combination of atoms: a constant, and pairs of an atom and its coefficient."""

    @property
    def constant(self) -> int:
        """The constant summand."""
        return int(self.parts[0])

    @property
    def summands(self) -> tuple[tuple[Atom, int], ...]:
        """The atoms with their coefficients, none of which is zero."""
        summands: tuple[tuple[Atom, int], ...] = self.parts[1]
        return summands

    @property
    def is_constant(self) -> bool:
        """True if no atom occurs."""
        return not self.summands

    def __add__(self, other: Term | int) -> Term:
        other = as_term(other)
        if not other.summands:
            return _intern(Term, self.constant + other.constant, self.summands) if other.constant else self
        total = dict(self.summands)
        for atom, factor in other.summands:
            total[atom] = total.get(atom, 0) + factor
        return _term(self.constant + other.constant, total)

    def __mul__(self, factor: int) -> Term:
        if factor == 1:
            return self
        return _term(self.constant * factor, {atom: f * factor for atom, f in self.summands})

    def __neg__(self) -> Term:
        return self * -1

    def __sub__(self, other: Term | int) -> Term:
        return self + -as_term(other)

    def times(self, other: Term) -> Term:
        """The product of two terms."""
        if not other.summands:
            return self * other.constant
        total: dict[Atom, int] = {}
        result = self * other.constant + other * self.constant + -self.constant * other.constant
        for atom, factor in self.summands:
            for second, other_factor in other.summands:
                product = _intern(Product, tuple(sorted((*_factors(atom), *_factors(second)), key=attrgetter("order"))))
                total[product] = total.get(product, 0) + factor * other_factor
        return result + _term(0, total)

    def _text(self) -> str:
        parts = [str(a) if f == 1 else f"{f}*{a}" for a, f in self.summands]
        if self.constant or not parts:
            parts.append(str(self.constant))
        return " + ".join(parts).replace("+ -", "- ")


def _factors(atom: Atom) -> tuple[Atom, ...]:
    return atom.parts[0] if isinstance(atom, Product) else (atom,)


def _term(constant: int, summands: Mapping[Atom, int]) -> Term:
    kept = [(a, f) for a, f in summands.items() if f]
    if len(kept) > 1:
        kept.sort(key=lambda pair: pair[0].order)
    return _intern(Term, constant, tuple(kept))


def without_common_factors(first: Term, second: Term) -> tuple[Term, Term, Term]:
    """Two terms divided by the atoms that are factors of every summand of both, and the product of these atoms."""
    common = as_term(1)
    if first.constant or second.constant or not second.summands:
        return first, second, common
    for atom in _factors(second.summands[0][0]):
        if all(atom in _factors(a) for term in (first, second) for a, _ in term.summands):
            first, second = (_without_factor(term, atom) for term in (first, second))
            common = common.times(as_term(atom))
            if first.constant or second.constant:
                break
    if second.is_constant and second.constant < 0:
        return -first, -second, -common
    return first, second, common


def divided(term: Term, divisor: int) -> Term | None:
    """A term divided by a positive integer; None if its coefficients are not multiples of it."""
    if any(n % divisor for n in (term.constant, *(factor for _, factor in term.summands))):
        return None
    return _term(term.constant // divisor, {atom: factor // divisor for atom, factor in term.summands})


def product(factors: Iterable[Term]) -> Term:
    """The product of terms."""
    result = as_term(1)
    for factor in factors:
        result = result.times(factor)
    return result


def constant_quotient(dividend: Term, divisor: Term) -> int | None:
    """The integer by which a divisor that is not constant is multiplied in a dividend; None if there is none."""
    if not divisor.summands:
        return None
    atom, factor = divisor.summands[0]
    found = dict(dividend.summands).get(atom, 0) // factor
    return found if (dividend - divisor * found) is as_term(0) else None


def _without_factor(term: Term, atom: Atom) -> Term:
    total = as_term(0)
    for product, coefficient in term.summands:
        rest = list(_factors(product))
        rest.remove(atom)
        one = as_term(coefficient)
        for factor in rest:
            one = one.times(as_term(factor))
        total = total + one
    return total


def as_term(value: Term | Atom | int) -> Term:
    """The term of an integer or an atom."""
    if isinstance(value, Term):
        return value
    return _term(0, {value: 1}) if isinstance(value, Atom) else _term(int(value), {})


def variable(name: str) -> Term:
    """A variable as a term."""
    return as_term(_intern(Variable, name))


def apply(name: str, *arguments: Term) -> Term:
    """An uninterpreted integer function of terms."""
    return as_term(_intern(Apply, name, arguments))


def conditional(condition: Formula, first: Term, second: Term) -> Term:
    """The first term where the condition is true, the second elsewhere."""
    if condition is TRUE or first is second:
        return first
    return second if condition is FALSE else as_term(_intern(Conditional, condition, first, second))


def floor_division(term: Term, divisor: int) -> Term:
    """The term divided by a positive integer, rounded down."""
    outside = {a: f // divisor for a, f in term.summands if f % divisor == 0}
    inside = {a: f for a, f in term.summands if f % divisor}
    quotient, rest = divmod(term.constant, divisor)
    if not inside:
        return _term(quotient, outside)
    return _term(quotient, outside) + as_term(_intern(FloorDivision, _term(rest, inside), divisor))


def remainder(term: Term, divisor: int) -> Term:
    """The remainder of a term and a positive integer, which is not negative."""
    return term - floor_division(term, divisor) * divisor


def minimum(first: Term, second: Term) -> Term:
    """The smaller of two terms."""
    return conditional(at_most(first, second), first, second)


def maximum(first: Term, second: Term) -> Term:
    """The larger of two terms."""
    return conditional(at_most(first, second), second, first)


# ---------------------------------------------------------------------- formulas


class Formula(Expression):
    """A statement about indices, without quantifiers."""

    def __and__(self, other: Formula) -> Formula:
        return conjunction(self, other)

    def __or__(self, other: Formula) -> Formula:
        return disjunction(self, other)

    def __invert__(self) -> Formula:
        return negation(self)


class Constant(Formula):
    """True or false."""

    def _text(self) -> str:
        return str(self.parts[0]).lower()


class AtMostZero(Formula):
    """A term is at most zero."""

    def _text(self) -> str:
        return f"{self.parts[0]} <= 0"


class EqualsZero(Formula):
    """A term is zero."""

    def _text(self) -> str:
        return f"{self.parts[0]} == 0"


class Holds(Formula):
    """An uninterpreted boolean function of terms."""

    @property
    def name(self) -> str:
        """The name of the function."""
        return str(self.parts[0])

    def _text(self) -> str:
        return f"{self.name}({', '.join(map(str, self.parts[1]))})"


class Not(Formula):
    """The negation of a formula."""

    def _text(self) -> str:
        return f"!({self.parts[0]})"


class And(Formula):
    """The conjunction of formulas."""

    def _text(self) -> str:
        return "(" + " & ".join(map(str, self.parts[0])) + ")"


class Or(Formula):
    """The disjunction of formulas."""

    def _text(self) -> str:
        return "(" + " | ".join(map(str, self.parts[0])) + ")"


TRUE: Final[Formula] = _intern(Constant, True)
FALSE: Final[Formula] = _intern(Constant, False)


def holds(name: str, *arguments: Term) -> Formula:
    """An uninterpreted boolean function of terms."""
    return _intern(Holds, name, arguments)


def _divided(term: Term) -> tuple[int, Term]:
    """The greatest common divisor of the coefficients, and the term without its constant divided by it."""
    divisor = gcd(*(abs(f) for _, f in term.summands))
    return divisor, _term(0, {a: f // divisor for a, f in term.summands})


MAX_CASES = 3  # conditionals within each other that a comparison is split by


def _by_cases(term: Term, compare: Callable[[Term, int], Formula]) -> Formula | None:
    """The comparison of a term with zero, if the term is one conditional of constants, or of such conditionals."""
    if len(term.summands) != 1 or not isinstance(term.summands[0][0], Conditional):
        return None
    factor, (condition, first, second) = term.summands[0][1], term.summands[0][0].parts
    if not (_is_of_constants(first) and _is_of_constants(second)):
        return None
    return disjunction(
        conjunction(condition, compare(first * factor + term.constant, 0)),
        conjunction(negation(condition), compare(second * factor + term.constant, 0)),
    )


def _is_of_constants(term: Term, depth: int = MAX_CASES) -> bool:
    """True for a constant, and for a conditional of such terms, as the values of a mask that is joined to another."""
    if term.is_constant:
        return True
    if not depth or len(term.summands) != 1 or not isinstance(term.summands[0][0], Conditional):
        return False
    return all(_is_of_constants(branch, depth - 1) for branch in term.summands[0][0].parts[1:])


def at_most(first: Term | int, second: Term | int) -> Formula:
    """First <= second."""
    term = as_term(first) - second
    if term.is_constant:
        return TRUE if term.constant <= 0 else FALSE
    if (by_cases := _by_cases(term, at_most)) is not None:
        return by_cases
    divisor, rest = _divided(term)
    return _intern(AtMostZero, rest + -((-term.constant) // divisor))


def less(first: Term | int, second: Term | int) -> Formula:
    """First < second."""
    return at_most(as_term(first) + 1, second)


def equal(first: Term | int, second: Term | int) -> Formula:
    """First == second."""
    term = as_term(first) - second
    if term.is_constant:
        return TRUE if term.constant == 0 else FALSE
    if (by_cases := _by_cases(term, equal)) is not None:
        return by_cases
    divisor, rest = _divided(term)
    if term.constant % divisor:
        return FALSE
    if rest.summands[0][1] < 0:
        divisor, rest = -divisor, -rest
    return _intern(EqualsZero, rest + term.constant // divisor)


def negation(formula: Formula) -> Formula:
    """The negation; of a comparison <=, the opposite comparison."""
    found = _negations.get(formula)
    if found is None:
        found = _negated(formula)
        _negations[formula], _negations[found] = found, formula
    return found


_negations: dict[Formula, Formula] = {}


def _negated(formula: Formula) -> Formula:
    match formula:
        case Constant():
            return FALSE if formula is TRUE else TRUE
        case Not(parts=(inner,)):
            return inner  # type: ignore[no-any-return]
        case AtMostZero(parts=(term,)):
            return at_most(-term + 1, 0)
        case And(parts=(operands,)):
            return disjunction(*map(negation, operands))
        case Or(parts=(operands,)):
            return conjunction(*map(negation, operands))
    return _intern(Not, formula)


def conjunction(*formulas: Formula) -> Formula:
    """All of the formulas."""
    return _joined(And, TRUE, FALSE, formulas)


def disjunction(*formulas: Formula) -> Formula:
    """At least one of the formulas."""
    return _joined(Or, FALSE, TRUE, formulas)


def _joined(kind: type[And | Or], neutral: Formula, absorbing: Formula, formulas: Iterable[Formula]) -> Formula:
    operands: dict[Formula, None] = {}
    for formula in formulas:
        for one in formula.parts[0] if isinstance(formula, kind) else (formula,):
            if one is absorbing or negation(one) in operands:
                return absorbing
            if one is not neutral:
                operands[one] = None
    if len(operands) < 2:
        return next(iter(operands), neutral)
    return _intern(kind, tuple(sorted(operands, key=attrgetter("order"))))


def implication(premise: Formula, conclusion: Formula) -> Formula:
    """The conclusion, if the premise is true."""
    return disjunction(negation(premise), conclusion)
