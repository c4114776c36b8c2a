"""Index maps: which element of an operand an element of the result is, or reads.

The index along a dimension is a number with digits, most significant first: each digit is a term and has a size, as
hours, minutes and seconds have. A dimension with one axis has one digit. A view only groups digits in another way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from orderproof_recheck.errors import CertificateError
from orderproof_recheck.facts import Axes, Fact, axis, product_of
from orderproof_recheck.logic.terms import Term, floor_of, integer, of_atom, remainder_of

Digits: TypeAlias = tuple[tuple[Term, Term], ...]  # (size, index) of each
Equal: TypeAlias = Callable[[Term, Term], bool]  # of two sizes, for all open sizes


class NoMap(CertificateError):
    """The digits do not fit the axes."""


def regrouped(digits: Digits, axes: Axes, equal: Equal) -> list[Term]:
    """The index along each axis, for an index with these digits. Raises `NoMap`."""
    rest, found = list(digits), []
    for size in reversed(axes):
        value, total = integer(0), integer(1)
        while not equal(total, size):
            if not rest:
                raise NoMap("the axes of a dimension do not fit")
            extent, place = rest.pop()
            grown = total.times(extent)
            if size.is_integer and not (grown.is_integer and grown.constant <= size.constant):
                needed, uneven = divmod(size.constant, total.constant)
                outer = None if uneven else _quotient(extent, needed)
                if outer is None:
                    raise NoMap("the axes of a dimension do not fit")
                value = value + remainder_of(place, needed) * total.constant
                rest.append((outer, floor_of(place, needed)))
                break
            if not total.is_integer:
                raise NoMap("the index of a merged dimension is not linear")
            value, total = value + place * total.constant, grown
        found.append(value)
    if any(not equal(size, integer(1)) for size, _ in rest):
        raise NoMap("the axes of a dimension do not fit")
    return found[::-1]


def _quotient(term: Term, divisor: int) -> Term | None:
    """A term divided by an integer; None if some coefficient is no multiple of it."""
    if divisor < 1 or any(n % divisor for n in (term.constant, *(factor for _, factor in term.summands))):
        return None
    found = integer(term.constant // divisor)
    for atom, factor in term.summands:
        found = found + of_atom(atom) * (factor // divisor)
    return found


def read(fact: Fact, dims: Sequence[Digits], equal: Equal) -> Fact:
    """The fact about the element of an operand at these indices, one for each dimension. Raises `NoMap`.

    A dimension of size one has only the index zero, whatever its digits say.
    """
    if len(dims) != len(fact.axes):
        raise NoMap("an operand has another number of dimensions")
    try:
        return fact.at(_terms(fact, dims, equal))
    except NoMap:
        if fact.value is None:
            raise
    plain = fact.without_value()
    return plain.at(_terms(plain, dims, equal))


def _terms(fact: Fact, dims: Sequence[Digits], equal: Equal) -> list[Term]:
    terms: list[Term] = []
    used = fact.variables
    for axes, digits in zip(fact.axes, dims, strict=True):
        if not equal(product_of(size for size, _ in digits), product_of(axes)):
            raise NoMap("a dimension of an operand has another size")
        own = {axis(k) for k in range(len(terms), len(terms) + len(axes))}
        if used.isdisjoint(own):
            terms += [integer(0)] * len(axes)  # the fact does not depend on this index
        else:
            terms += regrouped(digits, axes, equal)
    return terms


def read_flat(fact: Fact, digits: Digits, equal: Equal) -> Fact:
    """The fact about the element at a place in the order of memory, given by the digits of all dimensions."""
    try:
        return fact.at(_flat_terms(fact, digits, equal))
    except NoMap:
        if fact.value is None:
            raise
    plain = fact.without_value()
    return plain.at(_flat_terms(plain, digits, equal))


def _flat_terms(fact: Fact, digits: Digits, equal: Equal) -> list[Term]:
    if fact.variables.isdisjoint({axis(k) for k in range(len(fact.sizes))}):
        return [integer(0)] * len(fact.sizes)
    return regrouped(digits, fact.sizes, equal)
