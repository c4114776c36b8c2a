"""Values: integers and booleans as terms and formulas, floating-point numbers by cases."""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

from orderproof_recheck.facts import (
    FLOATS,
    INTEGER_LIMITS,
    WHOLE,
    Cases,
    Number,
    Value,
    cases_of,
    joined_cases,
    whole_number,
)
from orderproof_recheck.logic.formulas import (
    FALSE,
    TRUE,
    Formula,
    at_most,
    equal,
    every,
    if_else,
    less,
    opposite,
    some,
)
from orderproof_recheck.logic.terms import If, Term, floor_of, integer, remainder_of
from orderproof_recheck.mask_sizes import ordinary_limit

MAX_COMBINATIONS = 256
CONVERSIONS = {"to", "_to_copy", "type_as"}
COPIES = frozenset({"clone", "contiguous", "detach", "alias", "lift_fresh", "lift_fresh_copy", "positive"})


def as_integer(value: Value) -> Term | None:
    """A boolean as 0 or 1."""
    if isinstance(value, Formula):
        return if_else(value, integer(1), integer(0))
    return value if isinstance(value, Term) else None


def as_boolean(value: Value) -> Formula | None:
    """An integer as true unless it is zero."""
    if isinstance(value, Term):
        return opposite(equal(value, 0))
    return value if isinstance(value, Formula) else None


_COMPARE: dict[str, Callable[[Term, Term], Formula]] = {
    "eq": equal, "ne": lambda a, b: opposite(equal(a, b)), "lt": less, "le": at_most,
    "gt": lambda a, b: less(b, a), "ge": lambda a, b: at_most(b, a),
}  # fmt: skip
_JOIN: dict[str, Callable[[Formula, Formula], Formula]] = {
    **dict.fromkeys(("__and__", "bitwise_and", "logical_and", "mul"), every),
    **dict.fromkeys(("__or__", "bitwise_or", "logical_or"), some),
    **dict.fromkeys(
        ("__xor__", "bitwise_xor", "logical_xor"),
        lambda a, b: some(every(a, opposite(b)), every(opposite(a), b)),
    ),
}
_ADD: dict[str, Callable[[Term, Term], Term]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "rsub": lambda a, b: b - a,
    "maximum": lambda a, b: if_else(at_most(a, b), b, a), "max": lambda a, b: if_else(at_most(a, b), b, a),
    "minimum": lambda a, b: if_else(at_most(a, b), a, b), "min": lambda a, b: if_else(at_most(a, b), a, b),
}  # fmt: skip
_OF_BITS: dict[str, Callable[[Formula, Formula], Formula]] = {
    **dict.fromkeys(("mul", "__and__", "bitwise_and"), every), **dict.fromkeys(("__or__", "bitwise_or"), some),
}  # fmt: skip


def value_of_operator(
    name: str, values: Sequence[Value], dtype: str, options: Mapping[str, Any], common: str | None = None
) -> Value | None:
    """The value of a pointwise operator from the values of its operands, if the tables here have it.

    `common`: The dtype to which torch converts two operands first.
    """
    whole = (
        [whole_number(v) for v in values]
        if any(isinstance(v, Term) and cases_of(v) is None for v in values)
        else values
    )
    whole = _next_to_a_half(name, whole)
    exact = [v for v in whole if not isinstance(v, Cases)]
    if len(exact) == len(values) and options.get("alpha", 1) == 1:
        found = _exact(name, exact, dtype, options)
        if found is not None:
            return found
    return _by_cases(name, values, dtype, options, common)


def _next_to_a_half(name: str, values: Sequence[Value]) -> Sequence[Value]:
    """An integer x is below k + 1/2 if it is at most k, and above if it is k + 1 or more: compared with an integer."""
    if len(values) != 2 or name not in ("lt", "le", "gt", "ge"):
        return values
    first, second = values
    if isinstance(first, Term) and (floor := _below_a_half(second)) is not None:
        return [first, integer(floor + 1 if name in ("lt", "ge") else floor)]
    if isinstance(second, Term) and (floor := _below_a_half(first)) is not None:
        return [integer(floor + 1 if name in ("gt", "le") else floor), second]
    return values


def _below_a_half(value: Value) -> int | None:
    """The integer below a number and a half, which is exact in any dtype; None for another value."""
    numbers = [number for _, number in value.pairs] if isinstance(value, Cases) else []
    if len(numbers) != 1 or not abs(numbers[0]) <= 64 or (numbers[0] - 0.5) % 1:
        return None
    return math.floor(numbers[0])


def _exact(name: str, values: Sequence[Value], dtype: str, options: Mapping[str, Any]) -> Value | None:
    if name in CONVERSIONS:
        if dtype == "bool":
            return as_boolean(values[0])
        is_term = dtype in INTEGER_LIMITS or (dtype in WHOLE and isinstance(values[0], Term))
        return as_integer(values[0]) if is_term else None
    terms = [t for v in values if (t := as_integer(v)) is not None]
    if name in _COMPARE and len(terms) == 2:
        return _COMPARE[name](terms[0], terms[1])
    if dtype == "bool":
        return _boolean(name, [f for v in values if (f := as_boolean(v)) is not None])
    return _integer(name, values, terms, options) if dtype in WHOLE else None


def _bit(term: Term) -> Formula | None:
    """Where an integer that is zero or one is one; None for another integer."""
    if term is integer(0) or term is integer(1):
        return TRUE if term.constant else FALSE
    atoms = [atom for atom, factor in term.summands if factor == 1 and isinstance(atom, If)]
    if len(atoms) != 1 or len(term.summands) != 1 or term.constant:
        return None
    condition, first, second = atoms[0].fields
    return condition if first is integer(1) and second is integer(0) else None


def _boolean(name: str, values: Sequence[Formula]) -> Formula | None:
    if name == "where" and len(values) == 3:
        return some(every(values[0], values[1]), every(opposite(values[0]), values[2]))
    if name in ("logical_not", "bitwise_not") and len(values) == 1:
        return opposite(values[0])
    return _JOIN[name](values[0], values[1]) if name in _JOIN and len(values) == 2 else None


def _integer(name: str, values: Sequence[Value], terms: Sequence[Term], options: Mapping[str, Any]) -> Term | None:
    if name == "where" and len(values) == 3:
        condition = as_boolean(values[0])
        return None if condition is None else if_else(condition, terms[1], terms[2])
    if len(terms) == 1:
        (only,) = terms
        return (
            only * -1
            if name == "neg"
            else if_else(at_most(only, only * -1), only * -1, only)
            if name == "abs"
            else None
        )
    if len(terms) != 2:
        return None
    first, second = terms
    if name in _OF_BITS and (a := _bit(first)) is not None and (b := _bit(second)) is not None:
        return if_else(_OF_BITS[name](a, b), integer(1), integer(0))
    if name in _ADD:
        return _ADD[name](first, second)
    if name == "mul":
        if first.is_integer or second.is_integer:
            return first.times(second)
        bits = [(bit, other) for one, other in ((first, second), (second, first)) if (bit := _bit(one)) is not None]
        return if_else(bits[0][0], bits[0][1], integer(0)) if bits else None
    if not second.is_integer or second.constant <= 0:
        return None
    if name == "floor_divide" or (name == "div" and options.get("rounding_mode") == "floor"):
        return floor_of(first, second.constant)
    return remainder_of(first, second.constant) if name == "remainder" else None


# ---------------------------------------------------------------------- by cases


def _by_cases(
    name: str, values: Sequence[Value], dtype: str, options: Mapping[str, Any], common: str | None
) -> Value | None:
    compute = _NUMBERS.get(name)
    cases = [cases_of(v) for v in values]
    if name in CONVERSIONS and dtype in INTEGER_LIMITS and cases[0] is not None:
        return _whole(cases[0], dtype)
    if compute is None or any(c is None for c in cases) or dtype in INTEGER_LIMITS:
        return None
    if math.prod(len(c.pairs) for c in cases if c is not None) > MAX_COMBINATIONS or set(options) - _OPTIONS:
        return None
    pairs: list[tuple[Formula, Number]] = []
    for chosen in product(*(c.pairs for c in cases if c is not None)):
        condition = every(*(c for c, _ in chosen))
        if condition is FALSE:
            continue
        try:
            number = compute(*(n if common not in FLOATS else rounded(float(n), common) for _, n in chosen))
        except (ArithmeticError, ValueError, TypeError):
            return None
        pairs.append((condition, bool(number) if dtype == "bool" else rounded(float(number), dtype)))
    found = joined_cases(pairs)
    if found is None or dtype == "bool":
        return None if found is None else found.where(bool)
    return found if dtype in FLOATS else None


def _whole(cases: Cases, dtype: str) -> Term | None:
    """Numbers that are cut to integers of a dtype; None if one of them has none."""
    low, high = INTEGER_LIMITS[dtype]
    if not all(math.isfinite(number) and low <= number <= high for _, number in cases.pairs):
        return None
    *others, (_, last) = cases.pairs
    found = integer(int(last))
    for condition, number in others:
        found = if_else(condition, integer(int(number)), found)
    return found


_OPTIONS = {"dtype", "device", "layout", "non_blocking", "copy", "memory_format", "pin_memory"}


def _quotient(a: float, b: float) -> float:
    return a / b


def _larger(a: float, b: float) -> float:
    """As torch has it: NaN if one of them is."""
    return math.nan if a != a or b != b else max(a, b)


def _smaller(a: float, b: float) -> float:
    return math.nan if a != a or b != b else min(a, b)


_NUMBERS: dict[str, Callable[..., Any]] = {
    "add": operator.add, "sub": operator.sub, "rsub": lambda a, b: b - a, "mul": operator.mul, "div": _quotient,
    "neg": operator.neg, "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le,
    "gt": operator.gt, "ge": operator.ge, "abs": abs, "maximum": _larger, "max": _larger, "minimum": _smaller,
    "min": _smaller,
    "where": lambda c, a, b: a if c else b, "logical_not": operator.not_,
    "__and__": lambda a, b: a and b, "logical_and": lambda a, b: bool(a) and bool(b),
    "logical_or": lambda a, b: bool(a) or bool(b), "__or__": lambda a, b: a or b, "bitwise_not": operator.not_,
    "bitwise_and": lambda a, b: a and b, "bitwise_or": lambda a, b: a or b,
    **dict.fromkeys(CONVERSIONS, lambda a: a), "square": lambda a: a * a, "relu": lambda a: max(a, 0.0),
    "exp": math.exp, "sqrt": math.sqrt, "reciprocal": lambda a: 1 / a,
    "log": lambda a: math.log(a) if a else -math.inf,
}  # fmt: skip


def is_ordinary(argument: object) -> bool:
    """False for a number that is as large as a mask, infinite or NaN."""
    return not isinstance(argument, int | float) or abs(argument) < ordinary_limit()


def rounded(number: float, dtype: str) -> float:
    """The number of a dtype that is nearest."""
    if dtype == "float64" or not math.isfinite(number):
        return number
    if dtype == "bfloat16":
        return _rounded_to_bfloat16(number)
    code = {"float32": "<f", "float16": "<e"}[dtype]
    try:
        return float(struct.unpack(code, struct.pack(code, number))[0])
    except OverflowError:
        return math.copysign(math.inf, number)


def _rounded_to_bfloat16(number: float) -> float:
    single = rounded(number, "float32")
    if not math.isfinite(single):
        return single
    (bits,) = struct.unpack("<I", struct.pack("<f", single))
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return float(struct.unpack("<f", struct.pack("<I", bits & 0xFFFFFFFF))[0])
