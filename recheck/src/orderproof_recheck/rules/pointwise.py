"""Operators that compute an element of the result from one element of each operand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from orderproof_recheck.dtypes import promoted
from orderproof_recheck.facts import (
    FLOATS,
    INTEGER_LIMITS,
    Cases,
    Fact,
    Predicates,
    Value,
    index,
    is_whole,
    predicates_of,
    product_of,
)
from orderproof_recheck.logic.formulas import (
    FALSE,
    TRUE,
    Formula,
    at_most,
    every,
    holds,
    if_else,
    implies,
    less,
    opposite,
    some,
)
from orderproof_recheck.logic.notation import require
from orderproof_recheck.logic.terms import Term, apply, integer
from orderproof_recheck.mask_sizes import finite_scores, mask_limit, max_scale, ordinary_limit
from orderproof_recheck.operator import READS, Operator, operators
from orderproof_recheck.rules.movement import broadcast_element, size_of
from orderproof_recheck.rules.numbers import CONVERSIONS, as_integer, is_ordinary, value_of_operator
from orderproof_recheck.rules.pieces import number_fact
from orderproof_recheck.rules.products import added
from orderproof_recheck.rules.running import sum_before
from orderproof_recheck.steps import Derived, Step

ZERO_TO_ZERO = frozenset({
    "neg", "relu", "tanh", "gelu", "silu", "abs", "sqrt", "square", "sin", "sign", "leaky_relu", "erf", "hardswish",
    "mish", "elu", "real", "conj", "_conj", "conj_physical", "resolve_conj", "nan_to_num", "round", "floor", "ceil",
    "trunc", "sgn", "atan",
})  # fmt: skip
EXPONENTIAL = frozenset({"exp", "exp2"})
ORDINARY_BELOW = frozenset({"sigmoid", "softplus", "relu", "tanh"})  # of a number that is not NaN, nor high
ZERO_IF_HIDDEN = frozenset({"sigmoid", "relu"})  # the sigmoid of a masking value underflows to zero
ANDS = frozenset({"__and__", "bitwise_and", "logical_and"})  # of booleans, or the bits of integers
ORS = frozenset({"__or__", "bitwise_or", "logical_or"})
FINITE_AT_ZERO = frozenset({
    "sigmoid", "cos", "softplus", "hardsigmoid", "expm1", "log1p", "hardtanh", "log_sigmoid", "complex",
})  # fmt: skip
COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})
OTHERS = frozenset({
    "pow", "rsqrt", "log", "log2", "reciprocal", "eq", "ne", "lt", "le", "gt", "ge",
    "remainder", "floor_divide", "fmod", "logical_not", "bitwise_not", "__and__", "__or__", "__xor__",
    "bitwise_and", "bitwise_or", "bitwise_xor", "logical_and", "logical_or", "logical_xor", "isnan", "isinf", "atan2",
    "polar", "complex", "imag", "selu", "celu", "prelu", "_prelu_kernel", "erfc", "logit", "asin", "erfinv",
    "acos", "tan", "sinh", "cosh", "asinh", "acosh", "atanh", "sinc", "log10", "frac", "angle", "hypot", "fmax",
    "fmin", "copysign", "heaviside", "softshrink", "hardshrink", "threshold", "lgamma", "digamma", "logaddexp",
    "logaddexp2", "xlogy", "signbit", "isfinite", "isposinf", "isneginf", "deg2rad", "rad2deg", "relu6",
})  # fmt: skip

TWO_OPERANDS = frozenset({
    "add", "sub", "subtract", "rsub", "multiply", "mul", "div", "divide", "maximum", "minimum", "max", "min",
})  # fmt: skip


def pointwise(step: Step) -> list[Derived]:
    """The result from the elements of the operands, which are broadcast to it."""
    arguments = [x for x in step.arguments() if x is not None]
    arguments = arguments[:1] if step.name in CONVERSIONS else arguments
    if step.name in ("clamp", "clip", "clamp_min", "clamp_max"):
        return [_clamped(step)]
    elements = [element_of(step, x) for x in arguments]
    require(step.name in CONVERSIONS or any(isinstance(x, Fact) for x in arguments), "no operand is a tensor")
    _check_shape(step, [x for x in arguments if isinstance(x, Fact)])
    if step.name == "masked_fill":
        elements = [elements[1], elements[2], elements[0]]
    if step.name == "eq" and (whole := _is_whole_count(step, arguments)) is not None:
        return [Derived.of_value(whole, "bool")]
    name = "where" if step.name == "masked_fill" else step.name
    values = [x.value for x in elements]
    deciding = FALSE if step.name in ANDS else TRUE if step.name in ORS else None
    if step.claim.dtype == "bool" and deciding is not None and any(v is deciding for v in values):
        return [Derived.of_value(deciding, "bool")]
    value: Value | None = None
    common = promoted([1 if isinstance(x, Term) else x for x in arguments]) if len(arguments) == 2 else None
    if all(v is not None and not _wraps(v, common) for v in values):
        value = value_of_operator(name, [v for v in values if v is not None], step.claim.dtype, step.kwargs, common)
        value = _rest_of_a_size(step, values) if value is None else value
    if value is not None:
        _check_operands(step, arguments, elements)
        return [Derived.of_value(value, step.claim.dtype)]
    if name == "where" and (partly := _partly_known(step, *elements)) is not None:
        return [Derived.of_value(partly, step.claim.dtype)]
    if name == "where":
        step.endless = _endless_choice(*elements)
        return [_chosen(*elements)]
    if name == "sub" and (before := sum_before(step)) is not None:
        return [before]
    return [_of_elements(step, arguments, elements)]


def _of_elements(step: Step, arguments: Sequence[Any], elements: Sequence[Fact]) -> Derived:
    """The result of a function that is not known by value."""
    name = step.name
    if name == "add" and not step.kwargs:  # -inf and any other number give -inf or NaN
        step.endless = some(*map(_is_endless, elements))
    if is_lowered(step) and step.fact(0).axes == step.claim.axes:
        step.lowered = elements[0].zero
    found = _ranges(step, arguments, elements)
    if name == "nan_to_num" and step.argument(1, "nan") in (None, 0) and step.fact(0).axes == step.claim.axes:
        zero = step.fact(0).zero_or_nan
        ordinary = some(found.ordinary, zero)
        return Derived(replace(found, same=elements[0].same, zero=some(found.zero, zero), ordinary=ordinary))
    if name == "relu":
        found = _with_zero(found, step.fact(0).lowered)
        return Derived(replace(found, same=some(elements[0].same, found.zero)))
    same = some(every(*(x.same for x in elements)), _endless(step, elements))
    return Derived(replace(found, same=same))


def _rest_of_a_size(step: Step, values: Sequence[Value | None]) -> Term | None:
    """The remainder of an integer and an open size; None if the size may have to be left out more than once."""
    if step.name != "remainder" or len(values) != 2 or step.claim.dtype not in INTEGER_LIMITS:
        return None
    number, size = (as_integer(v) for v in values if v is not None)
    if number is None or size is None or size.is_integer:
        return None
    bounds = every(at_most(1, size), at_most(size * -1, number), less(number, size * 2))
    if not step.holds(bounds, step.claim.sizes):
        return None
    return if_else(less(number, 0), number + size, if_else(less(number, size), number, number - size))


def _negative(value: Cases) -> Cases:
    return Cases(tuple((condition, -number) for condition, number in value.pairs))


def _endless(step: Step, elements: Sequence[Fact]) -> Formula:
    """Where a sum is -inf, as one of its two summands is, and the other is no NaN and not +inf."""
    if step.name != "add" or step.kwargs or len(elements) != 2:
        return FALSE
    found = FALSE
    for one, other in (elements, elements[::-1]):
        if isinstance(one.value, Cases):
            found = some(found, every(one.value.where(lambda v: v == -math.inf), other.at_most_ordinary))
    return found


def _is_endless(element: Fact) -> Formula:
    return element.value.where(lambda v: v == -math.inf) if isinstance(element.value, Cases) else FALSE


def _endless_choice(condition: Fact, first: Fact, second: Fact) -> Formula:
    """Where the operand that a condition chooses is -inf."""
    if not isinstance(condition.value, Formula):
        return FALSE
    chosen = every(condition.value, _is_endless(first))
    return some(chosen, every(opposite(condition.value), _is_endless(second)))


def element_of(step: Step, argument: Any) -> Fact:
    """The fact about the element of an argument that is broadcast to the result."""
    if isinstance(argument, Fact):
        return broadcast_element(step, argument)
    if isinstance(argument, Term):
        return Fact((), "int64", Predicates(), argument)
    if isinstance(argument, bool):
        return number_fact(argument, "bool")
    if isinstance(argument, int):
        return number_fact(argument, "int64")
    if isinstance(argument, float):
        return Fact((), "float64", number_fact(argument, "float32").predicates, Cases(((TRUE, argument),)))
    return Fact((), "float64", Predicates(ordinary=TRUE))  # a number that is computed from sizes: the same in both runs


def _wraps(value: Value, dtype: str | None) -> bool:
    """True of an integer that is no number of a dtype: what becomes of it is not followed."""
    term = as_integer(value)
    if dtype not in INTEGER_LIMITS or term is None or not term.is_integer:
        return False
    low, high = INTEGER_LIMITS[dtype]
    return not low <= term.constant <= high


def _check_operands(step: Step, arguments: Sequence[Any], elements: Sequence[Fact]) -> None:
    """No operand wraps around: torch converts numbers and tensors without dimensions to the common dtype."""
    common = promoted([1 if isinstance(x, Term) else x for x in arguments])
    for element in elements if len(arguments) == 2 and common in INTEGER_LIMITS else ():
        value = as_integer(element.value) if element.value is not None else None
        if value is not None:
            step.check_limits(value, str(common), step.claim.sizes)


def _check_shape(step: Step, operands: Sequence[Fact]) -> None:
    """Each dimension of the result has the size of an operand."""
    rank = len(step.shape)
    require(rank == max((len(f.axes) for f in operands), default=0), "its result has another number of dimensions")
    for d, size in enumerate(step.shape):
        places = [(f, d - rank + len(f.axes)) for f in operands]
        own = [size_of(f, place) for f, place in places if place >= 0]
        require(any(step.equal(x, size) for x in own), "its result has another shape")


def _is_whole_count(step: Step, arguments: Sequence[Any]) -> Formula | None:
    """`mask.sum() == mask.numel()`: every element is true."""
    first = arguments[0]
    if not isinstance(first, Fact) or not isinstance(first.value, Term) or step.shape:
        return None
    for name, count in step.setting.counts.items():
        if first.value is apply(name) and not isinstance(arguments[1], Fact):
            total = product_of(count.sizes)
            if isinstance(arguments[1], Term | int) and step.term(arguments[1]) is total:
                return holds(f"all of {name}")
    return None


def _partly_known(step: Step, condition: Fact, first: Fact, second: Fact) -> Term | None:
    """The claimed value of integers of which one choice is known, and the others are a new function of the indices."""
    claim, test = step.claim, condition.value
    taken = step.node in step.setting.functions or step.setting.loop_indices
    if claim.dtype not in INTEGER_LIMITS or not isinstance(test, Formula) or taken:
        return None
    new, value = apply(step.node, *(index(k) for k in range(len(claim.sizes)))), None
    if isinstance(first.value, Term) and second.value is None:
        value = if_else(test, first.value, new)
    elif isinstance(second.value, Term) and first.value is None:
        value = if_else(test, new, second.value)
    if value is None or claim.value is not value:
        return None
    known = _chosen(condition, first, second).predicates
    step.need(every(known.same, known.ordinary), "its value is not the same in both runs", claim.sizes)
    step.setting.functions.add(step.node)
    return value


def _chosen(condition: Fact, first: Fact, second: Fact) -> Derived:
    """The first operand where a condition is true, the second elsewhere."""
    if isinstance(condition.value, Formula):
        test, other = condition.value, opposite(condition.value)

        def pick(a: Formula, b: Formula) -> Formula:
            return some(every(test, a), every(other, b))

        return Derived(
            Predicates(
                same=every(implies(test, first.same), implies(other, second.same)),
                zero=pick(first.zero, second.zero),
                hidden=pick(first.hidden, second.hidden),
                ordinary=every(implies(test, first.ordinary), implies(other, second.ordinary)),
                low=every(implies(test, first.at_most_ordinary), implies(other, second.at_most_ordinary)),
            )
        )
    zero = every(first.zero, second.zero)
    return Derived(
        Predicates(
            same=every(condition.same, first.same, second.same), zero=zero, hidden=every(first.hidden, second.hidden),
            ordinary=every(first.ordinary, second.ordinary), low=every(first.at_most_ordinary, second.at_most_ordinary),
        )
    )  # fmt: skip


def _clamped(step: Step) -> Derived:
    """Between two numbers, each of which may be missing."""
    fact = broadcast_element(step, step.fact(0))
    low, high = step.argument(1, "min"), step.argument(2, "max")
    if step.name == "clamp_max":
        low, high = None, step.argument(1, "max")
    bounds = [x for x in (low, high) if x is not None]
    if any(isinstance(x, Fact) for x in bounds):
        return _clamped_by_tensors(step, [step.fact(0), *(x for x in bounds if isinstance(x, Fact))])
    of_sizes = step.claim.dtype in ("int64", "int32")
    terms = {
        x: x if isinstance(x, Term) else integer(int(x))
        for x in bounds
        if type(x) is int or is_whole(x) or (of_sizes and isinstance(x, Term))
    }
    if all(x in terms for x in bounds) and isinstance(fact.value, Term):
        value: Value | None = fact.value
        for name, bound in (("maximum", low), ("minimum", high)):
            if bound is not None and value is not None:
                value = value_of_operator(name, [value, terms[bound]], step.claim.dtype, {})
        if value is not None:
            return Derived.of_value(value, step.claim.dtype)
    inside = all(_is_small(x, sign) for x, sign in ((low, 1), (high, -1)))
    zero, ordinary = FALSE, fact.ordinary if inside else FALSE
    if inside and isinstance(low, int | float) and is_ordinary(low):  # of any lower number, the bound
        ordinary = fact.at_most_ordinary
        not_above = low == 0 and (high is None or (isinstance(high, int | float) and high >= 0))
        zero = some(fact.zero, fact.hidden) if not_above else FALSE
    is_mask = isinstance(low, int | float) and low <= -mask_limit(step.claim.dtype)
    hidden = fact.hidden if is_mask and inside and not isinstance(high, Term) else FALSE
    found = Predicates(same=fact.same, zero=zero, hidden=hidden, ordinary=ordinary)
    if low == 0 and (high is None or (isinstance(high, int | float) and high >= 0)):
        lowered = step.fact(0).lowered
        found = replace(_with_zero(found, lowered), same=some(found.same, lowered))
    return Derived(found)


def _with_zero(found: Predicates, zero: Formula) -> Predicates:
    """The predicates of a number that is also zero elsewhere."""
    return replace(found, zero=some(found.zero, zero), ordinary=some(found.ordinary, zero))


def is_lowered(step: Step) -> bool:
    """True if a number that is not negative is subtracted from a tensor of floats."""
    if step.name not in ("add", "sub") or step.kwargs or len(step.args) != 2 or step.claim.dtype not in FLOATS:
        return False
    number = step.args[1]
    return isinstance(number, int | float) and 0 <= (number if step.name == "sub" else -number) < math.inf


def _is_small(bound: Any, sign: int) -> bool:
    """True if a bound from below (sign 1), or from above (-1), leaves an ordinary number ordinary."""
    if isinstance(bound, Term):
        return False
    return bound is None or (isinstance(bound, int | float) and bound * sign < ordinary_limit())


def _clamped_by_tensors(step: Step, operands: Sequence[Fact]) -> Derived:
    _check_shape(step, operands)
    elements = [broadcast_element(step, x) for x in operands]
    same, ordinary = every(*(x.same for x in elements)), every(*(x.ordinary for x in elements))
    return Derived(Predicates(same=same, ordinary=ordinary))


def _ranges(step: Step, arguments: Sequence[Any], elements: Sequence[Fact]) -> Predicates:
    """Where the result is zero, hidden and ordinary."""
    name, first = step.name, elements[0]
    scaled = all(map(is_ordinary, step.kwargs.values()))
    ordinary = every(*(x.ordinary for x in elements)) if scaled else FALSE
    if name in CONVERSIONS:
        if step.claim.dtype not in FLOATS and not step.claim.dtype.startswith("complex"):
            return Predicates(zero=first.zero, ordinary=ordinary)
        return Predicates(zero=first.zero, hidden=first.hidden, ordinary=ordinary, low=first.predicates.low)
    if step.claim.dtype == "bool" and name not in ANDS:
        return Predicates()
    if name in (
        "add",
        "sub",
        "subtract",
        "rsub",
        "multiply",
        "mul",
        "div",
        "divide",
        "maximum",
        "minimum",
        "max",
        "min",
    ):
        require(len(elements) == 2 and step.kwargs.get("alpha", 1) == 1, "a scaled operand")
        return _combined(step, arguments, elements)
    if name in ANDS:
        return Predicates(zero=some(*(x.zero for x in elements)), ordinary=ordinary)
    if name in EXPONENTIAL:  # of a masking value, it underflows to zero
        if first.hidden is not FALSE:
            step.assume(finite_scores())
        return Predicates(zero=first.hidden, ordinary=first.at_most_ordinary)
    if name in ORDINARY_BELOW:
        return _of_numbers_below(step, elements, scaled=scaled)
    if name in ZERO_TO_ZERO:
        return Predicates(zero=first.zero, ordinary=ordinary)
    if name == "pow" and isinstance(arguments[1], int | float) and arguments[1] > 0:
        return Predicates(zero=first.zero, ordinary=ordinary)
    return Predicates(ordinary=every(ordinary, *_divisors(name, arguments, elements)))


def _of_numbers_below(step: Step, elements: Sequence[Fact], *, scaled: bool) -> Predicates:
    """A function that is ordinary at any number that is not NaN, nor high."""
    name, first = step.name, elements[0]
    if name == "softplus":  # it rises with its argument only if beta is positive, and is divided by beta
        scaled = scaled and _is_moderate(step.argument(1, "beta", 1))
    ordinary = every(first.at_most_ordinary, *(x.ordinary for x in elements[1:])) if scaled else FALSE
    zero = first.zero if name in ZERO_TO_ZERO else FALSE
    if name in ZERO_IF_HIDDEN and first.hidden is not FALSE:
        step.assume(finite_scores())
        zero = some(zero, first.hidden)
    return Predicates(zero=zero, ordinary=ordinary)


def _not_zero(fact: Fact) -> Formula:
    """Where an element is not known to be zero."""
    return every(opposite(fact.zero), fact.zeros_known)


def _divisors(name: str, arguments: Sequence[Any], elements: Sequence[Fact]) -> list[Formula]:
    """Where no operand has a value near which the result is no ordinary number."""
    if name in FINITE_AT_ZERO or name in COMPARISONS:
        return []
    if name == "pow":  # any number to the power of zero is one
        return [(_not_zero if isinstance(arguments[0], Fact) else _can_divide)(elements[0])]
    if name == "floor_divide":
        return [_can_divide(elements[1]), *map(_not_zero, elements)]
    return [_not_zero(x) for x in elements]


def _can_divide(fact: Fact) -> Formula:
    """Where an element is not known to be zero, or so small that its inverse is no ordinary number."""
    if isinstance(fact.value, Cases):
        return fact.value.where(lambda number: abs(number) > 1 / ordinary_limit())
    return _not_zero(fact)


def _is_moderate(factor: Any) -> bool:
    """True for a positive number that leaves a masking value a masking value."""
    return isinstance(factor, int | float) and 1 / max_scale() <= factor <= max_scale()


def _combined(step: Step, arguments: Sequence[Any], elements: Sequence[Fact]) -> Predicates:
    name, (a, b) = step.name, elements
    ordinary = every(a.ordinary, b.ordinary)
    if name == "add":
        return added(step, a.predicates, b.predicates)
    if name in ("sub", "subtract", "rsub"):
        a, b = (b, a) if name == "rsub" else (a, b)
        if isinstance(b.value, Cases):  # as large as a mask, it hides
            return added(step, a.predicates, predicates_of(_negative(b.value), b.dtype))
        hidden = every(a.hidden, b.ordinary)
        if hidden is not FALSE:
            step.assume(finite_scores())
        low = every(a.at_most_ordinary, b.ordinary)
        return Predicates(zero=every(a.zero, b.zero), hidden=hidden, ordinary=ordinary, low=low)
    if name in ("mul", "div", "multiply", "divide"):
        factor = arguments[1]
        masked = a.hidden is not FALSE or a.predicates.low is not FALSE
        if masked and _is_moderate(factor):
            step.scaled = min(1.0, factor if name in ("mul", "multiply") else 1 / factor)
            require(step.remaining_share * max_scale() >= 1, "masking values are scaled several times")
            step.assume(f"{finite_scores()}, also after scaling by {factor:g}")
            return a.predicates
        if name in ("div", "divide") and isinstance(factor, int | float) and 1 <= abs(factor) < math.inf:
            return Predicates(zero=a.zero, ordinary=a.ordinary)
        if name in ("div", "divide"):
            divided = every(b.ordinary, _not_zero(b))
            return Predicates(zero=every(a.zero, divided), ordinary=every(ordinary, _can_divide(b)))
        return Predicates(zero=some(every(a.zero, b.ordinary), every(b.zero, a.ordinary)), ordinary=ordinary)
    low = every(a.at_most_ordinary, b.at_most_ordinary)
    if name in ("maximum", "max"):
        ordinary = some(every(a.ordinary, some(b.ordinary, b.hidden)), every(b.ordinary, a.hidden))
        hidden = every(a.hidden, b.hidden)
        zero = some(every(a.zero, some(b.zero, b.hidden)), every(b.zero, a.hidden))
        return Predicates(zero=zero, hidden=hidden, ordinary=ordinary, low=low)
    hidden = some(every(a.hidden, some(b.hidden, b.ordinary)), every(b.hidden, some(a.hidden, a.ordinary)))
    if hidden is not FALSE:
        step.assume(finite_scores())
    return Predicates(zero=every(a.zero, b.zero), hidden=hidden, ordinary=ordinary, low=low)


_NAMES = frozenset({
    *ZERO_TO_ZERO, *EXPONENTIAL, *FINITE_AT_ZERO, *OTHERS, *CONVERSIONS, *TWO_OPERANDS - {"max", "min"}, "where",
    "masked_fill", "clamp", "clip", "clamp_min", "clamp_max",
})  # fmt: skip
_MAY_WRAP = frozenset({"pow", "mul", "multiply", "square", "exp2"})
_WITH_WEIGHTS = frozenset({"prelu", "_prelu_kernel"})  # which weight is used depends on the index

POINTWISE: dict[str, Operator] = {
    **operators(_NAMES - _MAY_WRAP - _WITH_WEIGHTS, pointwise, READS),
    **operators(_MAY_WRAP, pointwise, READS, may_wrap=True),
    **operators(_WITH_WEIGHTS, pointwise),
}
