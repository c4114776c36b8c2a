"""Where the result of a pointwise operator is hidden, zero or unbounded, from where its operands are.

Machine-checked (proofs/symbolic/steps.v): product_step.
Machine-checked (proofs/symbolic/hidden_scores.v): minus_infinity_added, added_mask_hides.
Not machine-checked: ranges of values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.fx import Node

from orderproof.logic.terms import FALSE, TRUE, Formula, Term, conjunction, disjunction
from orderproof.number_limits import finite_scores_assumption, greatest_scale, largest_ordinary
from orderproof.theorems.facts.numbers import beyond_ordinary
from orderproof.theorems.facts.open_fact import Cases, OpenFact, Ranges
from orderproof.theorems.operators.pointwise.operands import CONVERTS, KEEPS, Operands, operands_of
from orderproof.theorems.walks.open_operation import OpenOperation
from orderproof.theorems.walks.operation import operator_of

_KEEPS_ZERO = {
    "neg", "relu", "tanh", "gelu", "silu", "abs", "sqrt", "square", "sin", "sign", "leaky_relu", "erf",
    "hardswish", "mish", "elu", "real", "conj", "_conj", "conj_physical", "resolve_conj", "nan_to_num", "round",
    "floor", "ceil", "trunc", "sgn", "atan",
}  # fmt: skip


_EXPONENTIAL = {"exp", "exp2"}  # of a masking value: it underflows to zero


_ORDINARY_BELOW = {"sigmoid", "softplus", "relu", "tanh"}  # ordinary at any number that is not NaN, nor high


_ZERO_IF_HIDDEN = {"sigmoid", "relu"}  # the sigmoid of a masking value underflows to zero


_DIVISIONS = {"divide", "true_divide", "floor_divide"}


_FINITE_AT_ZERO = {
    "sigmoid", "cos", "softplus", "add", "sub", "rsub", "hardsigmoid", "expm1", "log1p", "hardtanh", "log_sigmoid",
    "complex",
}  # fmt: skip


def ranges_of(call: OpenOperation, known: Sequence[Ranges], operands: Operands) -> Ranges:
    """The ranges of the result."""
    name = call.name
    if name in CONVERTS and not call.dtype.is_floating_point and not call.dtype.is_complex:
        return Ranges(zero=known[0].zero, unbounded=_anything(known))  # a large number wraps around
    if name in KEEPS or name in CONVERTS:
        return known[0]
    if call.dtype is torch.bool and name not in _COMBINED:
        return Ranges()
    own = [operands.fact(x).ranges() if isinstance(x, Node | int | float) else Ranges() for x in operands.arguments]
    combine = _COMBINED.get(name)
    if combine is not None and len(own) >= 2:
        return _combined(call, combine, own, operands)
    if name in _EXPONENTIAL:
        if own[0].hidden is not FALSE:
            call.context.assume(finite_scores_assumption())
        return Ranges(zero=own[0].hidden, unbounded=own[0].unbounded & ~own[0].low)
    if name in _ORDINARY_BELOW:
        return _of_numbers_below(call, own)
    unbounded = _anything(own) | beyond_ordinary(*call.node.kwargs.values())
    power = call.node.args[1] if name == "pow" else None
    if name in _KEEPS_ZERO or (isinstance(power, int | float) and power > 0):
        return Ranges(zero=own[0].zero, unbounded=unbounded)
    if name == "clamp" and not isinstance(operands.arguments[-1], Node):
        return _clamped(own[0], call.argument(1, "min"), call.argument(2, "max"), operands)
    if name not in _FINITE_AT_ZERO:
        divisors = own[:1] if name == "pow" else [*known, *(own[1:2] if name in _DIVISIONS else [])]
        unbounded = disjunction(unbounded, *(r.zero | r.tiny for r in divisors))
        inverted = call.node.args[:1] if name == "pow" else call.node.all_input_nodes  # any number to the power 0 is 1
        unbounded = disjunction(unbounded, *(_sum_of_zeros(call, x) for x in inverted))
    return Ranges(unbounded=unbounded)


def _of_numbers_below(call: OpenOperation, own: Sequence[Ranges]) -> Ranges:
    """The ranges of a function that is ordinary at any number that is not NaN, nor high."""
    unbounded = (own[0].unbounded & ~own[0].low) | _anything(own[1:])
    unbounded = unbounded | beyond_ordinary(*call.node.kwargs.values())
    if call.name == "softplus" and not _is_moderate(call.argument(1, "beta", 1)):
        unbounded = TRUE  # it rises with its argument only if beta is positive, and is divided by beta
    zero = own[0].zero if call.name in _KEEPS_ZERO else FALSE
    if call.name in _ZERO_IF_HIDDEN and own[0].hidden is not FALSE:
        call.context.assume(finite_scores_assumption())
        zero = zero | own[0].hidden
    return Ranges(zero=zero, unbounded=unbounded)


def _combined(
    call: OpenOperation, combine: Callable[[Ranges, Ranges], Ranges], own: Sequence[Ranges], operands: Operands
) -> Ranges:
    """The ranges of the result of an operator of two operands."""
    name = call.name
    scale = call.node.kwargs.get("alpha", 1)
    if name in ("add", "sub", "rsub") and (scale != 1 or len(own) > 2):
        return Ranges(unbounded=_anything(own) | beyond_ordinary(scale))
    masked = own[0].hidden is not FALSE or own[0].low is not FALSE
    if name in ("mul", "div") and masked and _is_moderate(operands.arguments[1]):
        if _remaining_share(call) * greatest_scale() < 1:
            return Ranges(zero=own[0].zero, unbounded=_anything(own[:1]))
        call.context.assume(f"{finite_scores_assumption()}, also after scaling by {operands.arguments[1]:g}")
        return own[0]
    if name == "div" and _is_at_least_one(operands.arguments[1]):
        return Ranges(zero=own[0].zero, unbounded=_anything(own[:1]))
    taken = {"sub": 1, "rsub": 0}.get(name)  # the operand that is subtracted: as large as a mask, it hides
    if taken is not None and (negative := _of_negative(operands.fact(operands.arguments[taken]))) is not None:
        own, combine = [own[1 - taken], negative], sum_ranges
    if name in _RELIES_ON_ASSUMPTION and any(r.hidden is not FALSE for r in own):
        call.context.assume(finite_scores_assumption())
    if name == "div":
        own = [own[0], replace(own[1], zero=own[1].zero | _sum_of_zeros(call, operands.arguments[1]))]
    return combine(own[0], own[1])


def _sum_of_zeros(call: OpenOperation, divisor: Any) -> Formula:
    """Where a divisor is a sum that may be one of zeros only."""
    where = call.context.may_be_of_zeros(divisor) if isinstance(divisor, Node) else FALSE
    if where is FALSE:
        return FALSE
    fact = OpenFact(call.fact(divisor).dims, call.dtype, same=where)
    return operands_of(replace(call, facts={**call.facts, divisor: fact})).fact(divisor).same


def _of_negative(fact: OpenFact) -> Ranges | None:
    """The ranges of a known number with the other sign; None if it is not known."""
    if not isinstance(fact.value, Cases):
        return None
    return replace(fact, value=Cases(tuple((condition, -number) for condition, number in fact.value.pairs))).ranges()


def _is_moderate(factor: Any) -> bool:
    """True for a positive number that leaves a masking value a masking value."""
    return isinstance(factor, int | float) and 1 / greatest_scale() <= factor <= greatest_scale()


def _remaining_share(call: OpenOperation) -> float:
    """The share of a masking value that is left after all scalings of a tensor, each of which is moderate."""
    shares: dict[Node, float] = {}

    def share(node: Node) -> float:
        if node not in shares:
            shares[node] = min((share(x) for x in node.all_input_nodes if is_scaled_further(x)), default=1.0)
            shares[node] *= min(1.0, _factor(node))
        return shares[node]

    def is_scaled_further(node: Node) -> bool:
        fact = call.facts.get(node)
        return isinstance(fact, OpenFact) and fact.value is None and not (fact.hidden is FALSE and fact.low is FALSE)

    return share(call.node)


def _factor(node: Node) -> float:
    """The number by which an operator scales its operand; 1 if it is no scaling."""
    number = node.args[1] if len(node.args) > 1 else None
    name = operator_of(node)
    if not isinstance(number, int | float) or name not in ("mul", "div"):
        return 1.0
    return float(number) if name == "mul" else 1 / number


def _is_at_least_one(divisor: Any) -> bool:
    """True for a number by which an ordinary number can be divided: it stays one."""
    return isinstance(divisor, int | float) and 1 <= abs(divisor) < math.inf


def _anything(ranges: Sequence[Ranges]) -> Formula:
    return disjunction(*(part for r in ranges for part in (r.hidden, r.unbounded)))


def _clamped(own: Ranges, low: Any, high: Any, operands: Operands) -> Ranges:
    """The greatest number wins where it is smaller than the least one."""
    if isinstance(low, Term) or isinstance(high, Term):
        return Ranges(unbounded=TRUE)
    if low is None:
        return Ranges(unbounded=_anything([own]) | (FALSE if high == math.inf else beyond_ordinary(high)))
    result = _larger(own, operands.fact(low).ranges())
    if high is None or high == math.inf:
        return result
    if not isinstance(high, int | float) or not abs(high) < largest_ordinary():
        return Ranges(unbounded=TRUE)
    return Ranges(result.hidden, result.zero if high >= 0 else FALSE, result.unbounded, result.low)


def sum_ranges(a: Ranges, b: Ranges) -> Ranges:
    """The ranges of a sum: what is as negative as a mask stays so next to an ordinary or any lower number."""
    hidden = disjunction(a.hidden & (b.hidden | b.at_most_ordinary), b.hidden & (a.hidden | a.at_most_ordinary))
    return Ranges(hidden, a.zero & b.zero, (a.unbounded | b.unbounded) & ~hidden, _low(a, b))


def either_of(a: Ranges, b: Ranges) -> Ranges:
    """The ranges of a number that is one of two, of which nothing says which."""
    hidden = a.hidden & b.hidden
    unbounded = disjunction(a.unbounded, b.unbounded, (a.hidden | b.hidden) & ~hidden)
    low = FALSE if unbounded is FALSE else a.at_most_ordinary & b.at_most_ordinary
    return Ranges(hidden, a.zero & b.zero, unbounded, low)


def _low(*ranges: Ranges) -> Formula:
    """Where all numbers are ordinary or lower, if one of them may be low."""
    if all(r.low is FALSE for r in ranges):
        return FALSE
    return conjunction(*(r.at_most_ordinary for r in ranges))


def _difference(a: Ranges, b: Ranges) -> Ranges:
    unbounded = disjunction(a.unbounded, b.unbounded, b.hidden)
    low = FALSE if a.low is FALSE else a.at_most_ordinary & b.finite
    return Ranges(a.hidden & ~unbounded, a.zero & b.zero, unbounded, low)


def _product(a: Ranges, b: Ranges) -> Ranges:
    zero = (a.zero & b.finite) | (b.zero & a.finite)
    return Ranges(zero=zero, unbounded=_anything([a, b]))


def _quotient(a: Ranges, b: Ranges) -> Ranges:
    return Ranges(zero=a.zero & b.finite & ~b.zero, unbounded=disjunction(_anything([a, b]), b.zero, b.tiny))


def _larger(a: Ranges, b: Ranges) -> Ranges:
    zero = disjunction(a.zero & b.zero, a.zero & b.hidden, b.zero & a.hidden)  # next to zero, a mask is less
    return Ranges(a.hidden & b.hidden, zero, a.unbounded | b.unbounded, _low(a, b))


def _smaller(a: Ranges, b: Ranges) -> Ranges:
    unbounded = a.unbounded | b.unbounded
    return Ranges((a.hidden | b.hidden) & ~unbounded, a.zero & b.zero, unbounded, _low(a, b))


_RELIES_ON_ASSUMPTION = {"add", "sub", "minimum", "min"}


def _both(a: Ranges, b: Ranges) -> Ranges:
    """Of booleans, or the bits of integers: zero where one of them is."""
    return Ranges(zero=a.zero | b.zero, unbounded=a.unbounded | b.unbounded)


_COMBINED: dict[str, Callable[[Ranges, Ranges], Ranges]] = {
    "add": sum_ranges, "sub": _difference, "rsub": lambda a, b: _difference(b, a), "mul": _product, "div": _quotient,
    "maximum": _larger, "max": _larger, "clamp_min": _larger, "minimum": _smaller, "min": _smaller,
    "__and__": _both, "bitwise_and": _both, "logical_and": _both,
}  # fmt: skip
