"""Running sums of integers that are one number at an interval of indices, and another number elsewhere.

The sum over k = 0, ..., i of (c ? a : b), where c is true for low <= k <= high, is b (i + 1) + (a - b) n. Here n is the
number of these k up to i: max(0, min(i, high) - max(0, low) + 1).
"""

from __future__ import annotations

from functools import reduce

from orderproof.logic.terms import (
    And,
    AtMostZero,
    Conditional,
    EqualsZero,
    Formula,
    Term,
    as_term,
    at_most,
    conditional,
    conjunction,
    equal,
    maximum,
    minimum,
    negation,
)
from orderproof.theorems.facts.integer_values import whole_number
from orderproof.theorems.facts.open_fact import Cases, Value, axis_variable, index


def running_sum(value: Value | None, axis: int) -> Term | None:
    """The sum of a known integer up to each index of an axis; None if it has no simple form."""
    value = whole_number(value) if isinstance(value, Cases) else value
    if value is None or isinstance(value, Cases):
        return None
    if isinstance(value, Formula):
        value = conditional(value, as_term(1), as_term(0))
    if axis_variable(axis) not in value.variables:
        return (index(axis) + 1) * value.constant if value.is_constant else None
    match value.summands:
        case ((Conditional(parts=(condition, first, second)), factor),) if first.is_constant and second.is_constant:
            inside, outside = first.constant * factor + value.constant, second.constant * factor + value.constant
        case _:
            return None
    count = _count(condition, axis)
    if count is None and (count := _count(negation(condition), axis)) is not None:
        inside, outside = outside, inside
    return None if count is None else (index(axis) + 1) * outside + count * (inside - outside)


def _count(condition: Formula, axis: int) -> Term | None:
    """The number of indices up to each one at which a condition is true; None if these are no interval."""
    rest: list[Formula] = []
    lows, highs, points = [as_term(0)], [index(axis)], list[Term]()
    for part in condition.parts[0] if isinstance(condition, And) else (condition,):
        if axis_variable(axis) not in part.variables:
            rest.append(part)
            continue
        if not isinstance(part, AtMostZero | EqualsZero):
            return None
        bounds = {sign: index(axis) - part.parts[0] * sign for sign in (1, -1)}
        sign = next((sign for sign, bound in bounds.items() if axis_variable(axis) not in bound.variables), None)
        if sign is None:
            return None
        kind = points if isinstance(part, EqualsZero) else highs if sign == 1 else lows
        kind.append(bounds[sign])
    if points:  # at most one index
        inside = [at_most(low, points[0]) for low in lows] + [at_most(points[0], high) for high in highs]
        same = [equal(points[0], other) for other in points[1:]]
        return conditional(conjunction(*rest, *inside, *same), as_term(1), as_term(0))
    low, high = reduce(maximum, lows), reduce(minimum, highs)
    return conditional(conjunction(*rest), maximum(as_term(0), high - low + 1), as_term(0))
