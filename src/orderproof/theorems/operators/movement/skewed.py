"""Two dimensions that are read as two of almost the same sizes: the shift that aligns relative positions.

An element (i, j) of a view with sizes [A, B] is the element i * B + j in memory. The tensor has sizes [C, D] there,
and A * B = C * D. Let B be k * D + r with integers k and r. Then i * B + j = (k * i) * D + (r * i + j), and the
element is (k * i + q, r * i + j - q * D), where q is r * i + j divided by D and rounded down. If q is one of a few
integers for all i and j, both indices are linear in each case. Where D is m * B, the element is (i / m, (i mod m) * B
+ j), and i mod m is one of m integers.

Not machine-checked: the arithmetic of positions.
"""

from __future__ import annotations

from orderproof.logic.terms import Term, as_term, at_most, conditional, equal, floor_division, less, remainder
from orderproof.theorems.facts.open_fact import Axes, index
from orderproof.theorems.walks.context import Context

MAX_QUOTIENT = 3


def skewed(own: Axes, new: Axes, context: Context) -> list[Term] | None:
    """The indices of axes, from those of a view in which two adjacent axes have other sizes; None for another view."""
    if len(own) != len(new):
        return None
    others = [d for d, (a, b) in enumerate(zip(own, new, strict=True)) if not context.equal_sizes(a, b)]
    if len(others) != 2 or others[1] != others[0] + 1:
        return None
    first, last = others
    terms = [index(k) for k in range(len(new))]
    found = _taken_apart(own[last], new[last], first, last) or _shifted(own[last], new, first, last, context)
    if found is None:
        return None
    terms[first], terms[last] = found
    return terms


def _taken_apart(width: Term, size: Term, first: int, last: int) -> tuple[Term, Term] | None:
    """The two indices where the old width is a multiple of the new one."""
    count, rest = _multiple(width, size) or (0, 1)
    if rest or count > MAX_QUOTIENT:
        return None
    part, inner = remainder(index(first), count), index(last) + size * (count - 1)
    for k in range(count - 2, -1, -1):
        inner = conditional(equal(part, k), index(last) + size * k, inner)
    return floor_division(index(first), count), inner


def _shifted(divisor: Term, new: Axes, first: int, last: int, context: Context) -> tuple[Term, Term] | None:
    """The two indices where the new width is almost a multiple of the old one."""
    found = _multiple(new[last], divisor)
    if found is None:
        return None
    factor, rest = found
    place = index(last) + index(first) * rest
    lowest = next(
        (q for q in range(0, -MAX_QUOTIENT - 1, -1) if context.proves(at_most(divisor * q, place), new)), None
    )
    highest = next((q for q in range(MAX_QUOTIENT + 1) if context.proves(less(place, divisor * (q + 1)), new)), None)
    if lowest is None or highest is None:
        return None
    quotient, inner = as_term(highest), place - divisor * highest
    for q in range(highest - 1, lowest - 1, -1):
        fits = less(place, divisor * (q + 1))
        quotient, inner = conditional(fits, as_term(q), quotient), conditional(fits, place - divisor * q, inner)
    return index(first) * factor + quotient, inner


def _multiple(size: Term, divisor: Term) -> tuple[int, int] | None:
    """The integers k and r with size = k * divisor + r, and k of at least 1; None without them."""
    if not divisor.summands:
        return None
    atom, own = divisor.summands[0]
    factor, uneven = divmod(dict(size.summands).get(atom, 0), own)
    rest = size - divisor * factor
    return None if uneven or factor < 1 or not rest.is_constant else (factor, rest.constant)
