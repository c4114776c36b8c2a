"""Operators that compute each element of their result from one element of each operand.

The result agrees in both runs where all operands do. A product agrees, too, where a factor is zero and the other
finite; `where` agrees where the chosen operand does.

Machine-checked (proofs/symbolic/steps.v): pointwise_step, product_step, where_step.
Not machine-checked: values by cases, which torch computes, and ranges of values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
from torch.fx import Node
from torch.utils import _pytree as pytree

from orderproof.diagnosis.domain.values import FINITE_SCORES_ASSUMPTION, ORDINARY_LIMIT
from orderproof.logic.terms import FALSE, TRUE, Formula, Term, as_term, conjunction, disjunction, implication
from orderproof.recording.open_sizes import OpaqueNumber
from orderproof.theorems.facts.frame import frame
from orderproof.theorems.facts.integer_values import as_integer, converted, integer_value, known_literal
from orderproof.theorems.facts.open_fact import (
    MAX_CASES,
    Cases,
    Number,
    OpenFact,
    Ranges,
    Value,
    as_cases,
    merged_cases,
    size_of,
)
from orderproof.theorems.walks.open_operation import INTEGERS, Application, beyond_ordinary, open_rule
from orderproof.theorems.walks.operation import operator_of
from orderproof.theorems.walks.overflow import fits

MAX_SCALE = 64.0  # of scores after the mask was added: the square root of a head's width
_KEEPS = {"clone", "contiguous", "detach", "alias", "lift_fresh", "lift_fresh_copy", "positive"}
_CONVERTS = {"to", "_to_copy", "type_as"}
_KEEPS_ZERO = {
    "neg", "relu", "tanh", "gelu", "silu", "abs", "sqrt", "square", "sin", "sign", "leaky_relu", "erf",
    "hardswish", "mish", "elu", "real", "conj",
}  # fmt: skip
_EXPONENTIAL = {"exp", "exp2"}  # of a masking value: it underflows to zero
_ORDINARY_BELOW = {"sigmoid", "softplus", "relu", "tanh"}  # ordinary at any number that is not NaN, nor high
_WITHOUT_VALUE = {"erfinv"}  # no mask is computed so, and the recheck computes no such number
_DIVISIONS = {"divide", "true_divide", "floor_divide"}
_FINITE_AT_ZERO = {
    "sigmoid", "cos", "softplus", "add", "sub", "rsub", "hardsigmoid", "expm1", "log1p", "hardtanh", "log_sigmoid",
}  # fmt: skip


@open_rule(
    "<pointwise>", "to", "_to_copy", "type_as", "contiguous", "lift_fresh", "real", "imag", "alias", "detach", "clone",
    "__and__", "__or__", "__xor__", "softplus", "polar", "prelu", "_prelu_kernel", "log_sigmoid", "multiply", "divide",
    "subtract", "where", "masked_fill", "clamp", "clip",
)  # fmt: skip
def pointwise(call: Application) -> OpenFact:
    """The fact about the result of a pointwise operator."""
    operands = _operands(call)
    value = _value(call, operands)
    dims = operands.facts[0].dims if operands.facts else ()  # `vmap` makes a tensor of a number
    if value is not None:
        return OpenFact(dims, call.dtype, value=value)
    if call.name in ("where", "masked_fill"):
        return _selection(call, operands)
    same = conjunction(*(fact.same for fact in operands.facts))
    ranges = _ranges(call, [fact.ranges() for fact in operands.facts], operands)
    return OpenFact(
        dims, call.dtype, disjunction(same, ranges.zero), None, ranges.hidden, ranges.zero, ranges.unbounded,
        ranges.low,
    )  # fmt: skip


@dataclass(frozen=True)
class _Operands:
    """The tensors of a pointwise operator at the indices of the result, and all of its arguments in order."""

    nodes: tuple[Node, ...]
    facts: tuple[OpenFact, ...]
    arguments: tuple[Any, ...]  # a node or a number

    def fact(self, argument: Any) -> OpenFact:
        """The fact about an argument; that of a constant for a number."""
        if isinstance(argument, Node):
            return self.facts[self.nodes.index(argument)]
        known = known_literal(argument)
        value: Value = known if known is not None else Cases(((TRUE, float(argument)),))
        return OpenFact(self.facts[0].dims, torch.float32, value=value)


def _operands(call: Application) -> _Operands:
    arguments = tuple(x for x in call.node.args if x is not None)
    if call.name in _CONVERTS:
        arguments = arguments[:1]
    nodes = tuple(dict.fromkeys(x for x in arguments if isinstance(x, Node)))
    rank = len(call.shape)
    facts = [call.fact(node) for node in nodes]
    labels = [range(rank - len(fact.dims), rank) for fact in facts]
    common = frame(list(zip(facts, labels, strict=True)), range(rank))
    return _Operands(nodes, tuple(common.place(f, own) for f, own in zip(facts, labels, strict=True)), arguments)


def _value(call: Application, operands: _Operands) -> Value | None:
    """The value of the result, if the values of all operands are known."""
    if any(fact.value is None for fact in operands.facts):
        return None
    if call.name in _KEEPS:
        return operands.facts[0].value
    if call.name == "eq" and (whole := _is_whole_count(call, operands)) is not None:
        return whole
    known = [operands.fact(x).value if isinstance(x, Node) else known_literal(x) for x in operands.arguments]
    found: Value | None
    exact = [x for x in known if x is not None and not isinstance(x, Cases)]
    if len(exact) == len(known):
        if not _fit_the_operator(call, operands, exact):
            return None
        if call.name in _CONVERTS:
            found = converted(exact[0], call.dtype)
        elif call.name == "masked_fill":
            found = integer_value("where", [exact[1], exact[2], exact[0]], call.dtype, {})
        else:
            found = integer_value(call.name, exact, call.dtype, call.node.kwargs)
        if found is not None:
            return found
    return _by_cases(call, operands)


def _fit_the_operator(call: Application, operands: _Operands, values: Sequence[Term | Formula]) -> bool:
    """True if no operand wraps around: torch converts numbers and tensors without dimensions to the common dtype."""
    if len(operands.arguments) != 2:
        return True
    first, second = (x.meta["val"] if isinstance(x, Node) else isinstance(x, bool) or 1 for x in operands.arguments)
    common = torch.result_type(first, second)
    sizes = operands.facts[0].sizes
    return common not in INTEGERS or all(fits(call.context, as_integer(x), sizes, common) for x in values)


def _is_whole_count(call: Application, operands: _Operands) -> Formula | None:
    """The formula of `mask.sum() == mask.numel()`: every element is true."""
    first, second = operands.arguments
    count = call.context.counts.get(first.name) if isinstance(first, Node) else None
    if count is None or isinstance(second, Node) or operands.facts[0].sizes:
        return None
    return count.all_true if known_literal(second) is size_of(count.sizes) else None


def _by_cases(call: Application, operands: _Operands) -> Value | None:
    """The value of the result by cases: torch computes it in each."""
    if call.name in _WITHOUT_VALUE:
        return None
    cases = [as_cases(fact.value) for fact in operands.facts]
    leaves = pytree.tree_leaves((call.node.args, call.node.kwargs))
    if any(x is None for x in cases) or any(isinstance(x, Term | OpaqueNumber) for x in leaves):
        return None
    total = 1
    for one in cases:
        total *= len(one.pairs) if one is not None else 1
    if total > MAX_CASES**2:
        return None
    pairs: list[tuple[Formula, Number]] = []
    for chosen in product(*(one.pairs for one in cases if one is not None)):
        condition = conjunction(*(c for c, _ in chosen))
        if condition is not FALSE:
            pairs.append((condition, _computed(call, operands, [n for _, n in chosen])))
    merged = merged_cases(pairs)
    if merged is None or call.dtype.is_complex:
        return None
    if call.dtype is torch.bool:
        return merged.where(bool)
    if call.name in _CONVERTS and call.dtype in INTEGERS and len(merged.pairs) == 1:
        return as_term(int(merged.pairs[0][1]))  # a mask of ones that was made in float32
    return merged if call.dtype.is_floating_point else None


def _computed(call: Application, operands: _Operands, numbers: Sequence[Number]) -> Number:
    """The result of the operator on tensors of one element each.

    An operand without dimensions keeps none: the others decide the dtype in which torch computes.
    """
    scalars = {
        node: torch.full([1] * node.meta["val"].dim(), number, dtype=fact.dtype)
        for node, fact, number in zip(operands.nodes, operands.facts, numbers, strict=True)
    }
    arguments, options = pytree.tree_map_only(Node, scalars.__getitem__, (call.node.args, dict(call.node.kwargs)))
    options.pop("device", None)
    arguments = [torch.device("cpu") if isinstance(x, torch.device) else x for x in arguments]
    result: torch.Tensor = call.node.target(*arguments, **options)  # type: ignore[operator]
    found: Number = result.item()
    return found


def _selection(call: Application, operands: _Operands) -> OpenFact:
    """`where` and `masked_fill`: the operand that the condition chooses."""
    first, second, third = (operands.fact(x) for x in operands.arguments)
    condition, chosen, other = (second, third, first) if call.name == "masked_fill" else (first, second, third)
    a, b = chosen.ranges(), other.ranges()
    dims = operands.facts[0].dims
    if isinstance(condition.value, Formula):
        test = condition.value

        def pick(x: Formula, y: Formula) -> Formula:
            return disjunction(conjunction(test, x), conjunction(~test, y))

        same = conjunction(implication(test, chosen.same), implication(~test, other.same))
        return OpenFact(
            dims, call.dtype, same, None, pick(a.hidden, b.hidden), pick(a.zero, b.zero),
            pick(a.unbounded, b.unbounded), pick(a.low, b.low),
        )  # fmt: skip
    hidden, zero = a.hidden & b.hidden, a.zero & b.zero
    unbounded = disjunction(a.unbounded, b.unbounded, (a.hidden | b.hidden) & ~hidden)
    same = conjunction(condition.same, chosen.same, other.same)
    low = FALSE if unbounded is FALSE else a.at_most_ordinary & b.at_most_ordinary
    return OpenFact(dims, call.dtype, same | zero, None, hidden, zero, unbounded, low)


def _ranges(call: Application, known: Sequence[Ranges], operands: _Operands) -> Ranges:
    """The ranges of the result."""
    name = call.name
    if name in _CONVERTS and not call.dtype.is_floating_point and not call.dtype.is_complex:
        return Ranges(zero=known[0].zero, unbounded=_anything(known))  # a large number wraps around
    if name in _KEEPS or name in _CONVERTS:
        return known[0]
    own = [operands.fact(x).ranges() if isinstance(x, Node | int | float) else Ranges() for x in operands.arguments]
    combine = _COMBINED.get(name)
    if combine is not None and len(own) >= 2:
        return _combined(call, combine, own, operands)
    if name in _EXPONENTIAL:
        if own[0].hidden is not FALSE:
            call.context.assume(FINITE_SCORES_ASSUMPTION)
        return Ranges(zero=own[0].hidden, unbounded=own[0].unbounded & ~own[0].low)
    if name in _ORDINARY_BELOW:
        unbounded = (own[0].unbounded & ~own[0].low) | _anything(own[1:])
        unbounded = unbounded | beyond_ordinary(*call.node.kwargs.values())
        if name == "softplus" and not _is_moderate(call.argument(1, "beta", 1)):
            unbounded = TRUE  # it rises with its argument only if beta is positive, and is divided by beta
        return Ranges(zero=own[0].zero if name in _KEEPS_ZERO else FALSE, unbounded=unbounded)
    unbounded = _anything(own) | beyond_ordinary(*call.node.kwargs.values())
    power = call.node.args[1] if name == "pow" else None
    if name in _KEEPS_ZERO or (isinstance(power, int | float) and power > 0):
        return Ranges(zero=own[0].zero, unbounded=unbounded)
    if name == "clamp" and not isinstance(operands.arguments[-1], Node):
        return _clamped(own[0], call.argument(1, "min"), call.argument(2, "max"), operands)
    if name not in _FINITE_AT_ZERO:
        divisors = own[1:2] if name in _DIVISIONS else own[:1] if name == "pow" else []
        unbounded = disjunction(unbounded, *(r.zero | r.tiny for r in (*known, *divisors)))
    return Ranges(unbounded=unbounded)


def _combined(
    call: Application, combine: Callable[[Ranges, Ranges], Ranges], own: Sequence[Ranges], operands: _Operands
) -> Ranges:
    """The ranges of the result of an operator of two operands."""
    name = call.name
    scale = call.node.kwargs.get("alpha", 1)
    if name in ("add", "sub", "rsub") and (scale != 1 or len(own) > 2):
        return Ranges(unbounded=_anything(own) | beyond_ordinary(scale))
    masked = own[0].hidden is not FALSE or own[0].low is not FALSE
    if name in ("mul", "div") and masked and _is_moderate(operands.arguments[1]):
        if _remaining_share(call) * MAX_SCALE < 1:
            return Ranges(zero=own[0].zero, unbounded=_anything(own[:1]))
        call.context.assume(f"{FINITE_SCORES_ASSUMPTION}, also after scaling by {operands.arguments[1]:g}")
        return own[0]
    if name == "div" and _is_at_least_one(operands.arguments[1]):
        return Ranges(zero=own[0].zero, unbounded=_anything(own[:1]))
    if name in _RELIES_ON_ASSUMPTION and any(r.hidden is not FALSE for r in own):
        call.context.assume(FINITE_SCORES_ASSUMPTION)
    return combine(own[0], own[1])


def _is_moderate(factor: Any) -> bool:
    """True for a positive number that leaves a masking value a masking value."""
    return isinstance(factor, int | float) and 1 / MAX_SCALE <= factor <= MAX_SCALE


def _remaining_share(call: Application) -> float:
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


def _clamped(own: Ranges, low: Any, high: Any, operands: _Operands) -> Ranges:
    """The greatest number wins where it is smaller than the least one."""
    if isinstance(low, Term) or isinstance(high, Term):
        return Ranges(unbounded=TRUE)
    if low is None:
        return Ranges(unbounded=_anything([own]) | (FALSE if high == math.inf else beyond_ordinary(high)))
    result = _larger(own, operands.fact(low).ranges())
    if high is None or high == math.inf:
        return result
    if not isinstance(high, int | float) or not abs(high) < ORDINARY_LIMIT:
        return Ranges(unbounded=TRUE)
    return Ranges(result.hidden, result.zero if high >= 0 else FALSE, result.unbounded, result.low)


def sum_ranges(a: Ranges, b: Ranges) -> Ranges:
    """The ranges of a sum."""
    unbounded = a.unbounded | b.unbounded
    return Ranges((a.hidden | b.hidden) & ~unbounded, a.zero & b.zero, unbounded, _low(a, b))


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
    return Ranges(a.hidden & b.hidden, a.zero & b.zero, a.unbounded | b.unbounded, _low(a, b))


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
