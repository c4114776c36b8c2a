"""Index maps: which element of an operand an element of the result is, or reads.

The index along a dimension is a number with digits, most significant first: each digit is a term and has a size, as
hours, minutes and seconds have. A dimension with one axis has one digit. A view only groups digits in another way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from orderproof_recheck.errors import CertificateError
from orderproof_recheck.facts import Axes, Fact, axis, product_of
from orderproof_recheck.logic.formulas import Formula, at_most, if_else, less
from orderproof_recheck.logic.formulas import equal as equal_to
from orderproof_recheck.logic.terms import Term, floor_of, integer, of_atom, remainder_of

Digits: TypeAlias = tuple[tuple[Term, Term], ...]  # (size, index) of each
FEW = 3  # multiples of a size within which a place is looked for

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


def shifted(axes: Axes, digits: Digits, equal: Equal, always: Callable[[Formula], bool]) -> list[Term] | None:
    """The index along each axis where two neighbouring ones of sizes C * D are read as A * B, and B is k * D + r.

    The place in memory is i * B + j = (k * i) * D + (r * i + j), of which the last sum is divided by D with remainder:
    the quotient has to be one of a few integers. Where D is k * B, it is i / k with the rest (i mod k) * B + j.
    `always` says if a formula holds for all indices of the result. None for other axes.
    """
    unequal = [d for d, ((size, _), own) in enumerate(zip(digits, axes, strict=False)) if not equal(size, own)]
    if len(digits) != len(axes) or len(unequal) != 2 or unequal[1] - unequal[0] != 1:
        return None
    (_, i), (width, j) = (digits[d] for d in unequal)
    own = axes[unequal[1]]
    places = [index for _, index in digits]
    for k in range(2, FEW + 1):
        if equal(own, width * k):  # i rows of B are i / k rows of D, and some more
            left = j + width * (k - 1)
            for s in range(k - 1):
                left = if_else(equal_to(remainder_of(i, k), integer(s)), j + width * s, left)
            places[unequal[0]], places[unequal[1]] = floor_of(i, k), left
            return places
    for k in range(1, FEW + 1):
        rest = width - own * k
        if rest.is_integer:
            break
    else:
        return None
    inside = j + i * rest.constant
    quotients = list(range(-FEW, FEW + 1))
    if not (always(at_most(own * quotients[0], inside)) and always(less(inside, own * (quotients[-1] + 1)))):
        return None
    quotients = [
        q for q in quotients if not always(less(inside, own * q)) and not always(at_most(own * (q + 1), inside))
    ]
    quotient = integer(quotients[-1])
    for q in quotients[-2::-1]:
        quotient = if_else(less(inside, own * (q + 1)), integer(q), quotient)
    left = inside - own * quotients[-1]
    for q in quotients[-2::-1]:
        left = if_else(less(inside, own * (q + 1)), inside - own * q, left)
    places[unequal[0]], places[unequal[1]] = i * k + quotient, left
    return places
