"""The value of an operator on integers and booleans whose values are known as terms and formulas.

A float may be known as an integer, too: a position that is converted. That it is exact is an assumption of each proof.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from orderproof.logic.terms import (
    FALSE,
    TRUE,
    Conditional,
    Formula,
    Term,
    as_term,
    at_most,
    conditional,
    conjunction,
    disjunction,
    equal,
    floor_division,
    less,
    maximum,
    minimum,
    negation,
    remainder,
)
from orderproof.number_limits import largest_ordinary
from orderproof.theorems.facts.numbers import INTEGERS, WHOLE
from orderproof.theorems.facts.open_fact import Cases, as_cases

Known = Term | Formula
MOST_AND_A_HALF = 64


def as_integer(value: Known) -> Term:
    """A boolean as 0 or 1."""
    return value if isinstance(value, Term) else conditional(value, as_term(1), as_term(0))


def as_boolean(value: Known) -> Formula:
    """An integer as true if it is not zero."""
    return value if isinstance(value, Formula) else negation(equal(value, 0))


def known_literal(value: Any) -> Known | None:
    """A Python number as a value; None if it is neither an integer nor a boolean."""
    if isinstance(value, bool):
        return TRUE if value else FALSE
    return value if isinstance(value, Term) else as_term(value) if isinstance(value, int) else None


def integer_value(name: str, operands: Sequence[Known], dtype: torch.dtype, options: dict[str, Any]) -> Known | None:
    """The value of an operator, or None if it is not a term or a formula.

    Args:
        name: The operator without namespace and overload.
        operands: Its operands, numbers included.
        dtype: The dtype of its result.
        options: Its keyword arguments.

    """
    if options.get("alpha", 1) != 1:
        return None
    if name in _COMPARISONS and len(operands) == 2:
        return _COMPARISONS[name](as_integer(operands[0]), as_integer(operands[1]))
    if dtype is torch.bool:
        return _boolean(name, operands)
    return _integer(name, operands, options) if dtype in WHOLE else None


def is_whole(number: object) -> bool:
    """True of a float that is an integer, and not as large as a mask."""
    return type(number) is float and number.is_integer() and abs(number) < largest_ordinary()


def whole_number(value: Known | Cases) -> Known | Cases:
    """A float by cases that are integers, none as large as a mask, as a term; another value as it is."""
    if not isinstance(value, Cases) or not all(is_whole(number) for _, number in value.pairs):
        return value
    *others, (_, last) = value.pairs
    found = as_term(int(last))
    for condition, number in others:
        found = conditional(condition, as_term(int(number)), found)
    return found


def converted_value(value: Known, dtype: torch.dtype) -> Known | None:
    """A value after a change of its dtype: that of an integer is kept as a float, too."""
    if dtype is torch.bool:
        return as_boolean(value)
    if dtype in INTEGERS:
        return as_integer(value)
    return value if dtype in WHOLE and isinstance(value, Term) and as_cases(value) is None else None


def next_to_a_half(name: str, operands: Sequence[Known | Cases | None]) -> list[Known | Cases | None]:
    """The operands of a comparison with an integer and a half, which is exact in any dtype, as one with an integer."""
    found = list(operands)
    for place, other in ((1, 0), (0, 1)) if len(found) == 2 and name in ("lt", "le", "gt", "ge") else ():
        half, whole = found[place], found[other]
        number = half.pairs[0][1] if isinstance(half, Cases) and len(half.pairs) == 1 else 0
        if isinstance(whole, Term) and abs(number) <= MOST_AND_A_HALF and number % 1 == 0.5:
            above = (name in ("lt", "ge")) == (place == 1)
            found[place] = as_term(math.floor(number) + above)
    return found


_COMPARISONS: dict[str, Callable[[Term, Term], Formula]] = {
    "eq": equal, "ne": lambda a, b: negation(equal(a, b)), "lt": less, "le": at_most,
    "gt": lambda a, b: less(b, a), "ge": lambda a, b: at_most(b, a),
}  # fmt: skip


# Of integers that are 0 or 1, as masks are.
_OF_BITS: dict[str, Callable[[Formula, Formula], Formula]] = {
    **dict.fromkeys(("mul", "__and__", "bitwise_and"), conjunction),
    **dict.fromkeys(("__or__", "bitwise_or"), disjunction),
}


def _bit(term: Term) -> Formula | None:
    """The condition under which an integer is one, if it is zero elsewhere."""
    match term.summands:
        case ():
            return {0: FALSE, 1: TRUE}.get(term.constant)
        case ((Conditional(parts=(condition, first, second)), 1),) if first is as_term(1) and second is as_term(0):
            return condition if term.constant == 0 else None
    return None


def _product(first: Term, second: Term) -> Term | None:
    """The product of two integers of which one is constant, or is 0 or 1."""
    if first.is_constant or second.is_constant:
        return first.times(second)
    for one, other in ((first, second), (second, first)):
        if (condition := _bit(one)) is not None:
            return conditional(condition, other, as_term(0))
    return None


def _boolean(name: str, operands: Sequence[Known]) -> Formula | None:
    if name == "where" and len(operands) == 3:
        condition, first, second = map(as_boolean, operands)
        return disjunction(conjunction(condition, first), conjunction(negation(condition), second))
    first, *rest = map(as_boolean, operands)
    if name in ("logical_not", "bitwise_not") and not rest:
        return negation(first)
    if len(rest) != 1:
        return None
    if name in ("__and__", "bitwise_and", "logical_and", "mul"):
        return conjunction(first, rest[0])
    if name in ("__or__", "bitwise_or", "logical_or"):
        return disjunction(first, rest[0])
    if name in ("__xor__", "bitwise_xor", "logical_xor"):
        return disjunction(conjunction(first, negation(rest[0])), conjunction(negation(first), rest[0]))
    return None


def _integer(name: str, operands: Sequence[Known], options: dict[str, Any]) -> Term | None:
    if name == "where" and len(operands) == 3:
        return conditional(as_boolean(operands[0]), as_integer(operands[1]), as_integer(operands[2]))
    terms = [as_integer(x) for x in operands]
    if len(terms) == 1:
        (only,) = terms
        return {"neg": -only, "abs": maximum(only, -only)}.get(name)
    if len(terms) != 2:
        return None
    first, second = terms
    if name in _OF_BITS and (a := _bit(first)) is not None and (b := _bit(second)) is not None:
        return as_integer(_OF_BITS[name](a, b))
    if name in ("add", "sub", "rsub"):
        return {"add": first + second, "sub": first - second, "rsub": second - first}[name]
    if name == "mul":
        return _product(first, second)
    if name in ("maximum", "max"):
        return maximum(first, second)
    if name in ("minimum", "min"):
        return minimum(first, second)
    if not second.is_constant or second.constant <= 0:
        return None
    if name == "floor_divide" or (name == "div" and options.get("rounding_mode") == "floor"):
        return floor_division(first, second.constant)
    return remainder(first, second.constant) if name == "remainder" else None
