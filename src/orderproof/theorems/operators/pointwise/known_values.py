"""The value of the result of a pointwise operator, where those of all operands are known.

Machine-checked (proofs/symbolic/steps.v): pointwise_step.
Not machine-checked: values by cases, which torch computes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import torch
from torch.fx import Node
from torch.utils import _pytree as pytree

from orderproof.logic.terms import (
    FALSE,
    TRUE,
    Formula,
    Term,
    as_term,
    at_most,
    conditional,
    conjunction,
    less,
    maximum,
    minimum,
)
from orderproof.recording.open_sizes import OpaqueNumber
from orderproof.theorems.facts.integer_values import (
    as_integer,
    converted_value,
    integer_value,
    is_whole,
    known_literal,
    next_to_a_half,
    whole_number,
)
from orderproof.theorems.facts.numbers import INTEGERS, WHOLE
from orderproof.theorems.facts.open_fact import MAX_CASES, Cases, Number, Value, as_cases, merged_cases, size_of
from orderproof.theorems.operators.pointwise.operands import CONVERTS, KEEPS, Operands
from orderproof.theorems.walks.open_operation import OpenOperation
from orderproof.theorems.walks.overflow import fits

_ANDS, _ORS = {"__and__", "bitwise_and", "logical_and"}, {"__or__", "bitwise_or", "logical_or"}
_WITHOUT_VALUE = {"erfinv"}  # no mask is computed so, and the recheck computes no such number


def known_value(call: OpenOperation, operands: Operands) -> Value | None:
    """The value of the result, if the values of all operands are known, or one of them decides alone."""
    if (absorbed := _absorbed(call, operands)) is not None:
        return absorbed
    if any(fact.value is None for fact in operands.facts):
        return None
    if call.name in KEEPS:
        return operands.facts[0].value
    if call.name in ("clamp", "clip") and call.dtype in WHOLE:
        return _clamped(operands.facts[0].value, call.argument(1, "min"), call.argument(2, "max"), call.dtype)
    if call.name == "eq" and (whole := _is_whole_count(call, operands)) is not None:
        return whole
    known = [operands.fact(x).value if isinstance(x, Node) else _literal(x) for x in operands.arguments]
    if any(isinstance(x, Term) and as_cases(x) is None for x in known):
        known = next_to_a_half(call.name, [None if x is None else whole_number(x) for x in known])
    found: Value | None
    exact = [x for x in known if x is not None and not isinstance(x, Cases)]
    if len(exact) == len(known):
        if not _fit_the_operator(call, operands, exact):
            return None
        found = _rest_of_a_size(call, operands, exact) or _exact(call, exact)
        if found is not None:
            return found
    return _by_cases(call, operands)


def _exact(call: OpenOperation, values: Sequence[Term | Formula]) -> Term | Formula | None:
    """The value of an operator on integers and booleans."""
    if call.name in CONVERTS:
        return converted_value(values[0], call.dtype)
    if call.name == "masked_fill":
        return integer_value("where", [values[1], values[2], values[0]], call.dtype, {})
    return integer_value(call.name, values, call.dtype, call.node.kwargs)


def _clamped(value: Value | None, low: Any, high: Any, dtype: torch.dtype) -> Term | None:
    """An integer between two others, each of which may be missing, or a size."""
    least, greatest = (None if x is None else _bound(x, dtype) for x in (low, high))
    if not isinstance(value, Term) or (least is None) != (low is None) or (greatest is None) != (high is None):
        return None
    value = value if least is None else maximum(value, least)
    return value if greatest is None else minimum(value, greatest)


def _bound(number: Any, dtype: torch.dtype) -> Term | None:
    if isinstance(number, Term):
        return number if dtype in (torch.int64, torch.int32) else None
    return as_term(int(number)) if type(number) is int or is_whole(number) else None


def _rest_of_a_size(call: OpenOperation, operands: Operands, values: Sequence[Term | Formula]) -> Term | None:
    """The remainder of an integer and an open size, as of places in a row that is rolled: the size is left out once."""
    if call.name != "remainder" or len(values) != 2 or call.dtype not in INTEGERS:
        return None
    number, size = map(as_integer, values)
    bounds = at_most(1, size) & at_most(-size, number) & less(number, size * 2)
    if size.is_constant or not call.context.proves(bounds, operands.facts[0].sizes):
        return None
    return conditional(less(number, 0), number + size, conditional(less(number, size), number, number - size))


def _literal(value: Any) -> Value | None:
    """A number among the arguments as a value."""
    return Cases(((TRUE, value),)) if type(value) is float else known_literal(value)


def _absorbed(call: OpenOperation, operands: Operands) -> Formula | None:
    """False and x is false, and true or x is true, for booleans; None without such an operand."""
    deciding = FALSE if call.name in _ANDS else TRUE if call.name in _ORS else None
    if deciding is None or call.dtype is not torch.bool:
        return None
    return deciding if any(operands.fact(x).value is deciding for x in operands.arguments) else None


def _fit_the_operator(call: OpenOperation, operands: Operands, values: Sequence[Term | Formula]) -> bool:
    """True if no operand wraps around: torch converts numbers and tensors without dimensions to the common dtype."""
    if len(operands.arguments) != 2:
        return True
    first, second = (x.meta["val"] if isinstance(x, Node) else isinstance(x, bool) or 1 for x in operands.arguments)
    common = torch.result_type(first, second)
    sizes = operands.facts[0].sizes
    return common not in INTEGERS or all(fits(call.context, as_integer(x), sizes, common) for x in values)


def _is_whole_count(call: OpenOperation, operands: Operands) -> Formula | None:
    """The formula of `mask.sum() == mask.numel()`: every element is true."""
    first, second = operands.arguments
    count = call.context.counts.get(first.name) if isinstance(first, Node) else None
    if count is None or isinstance(second, Node) or operands.facts[0].sizes:
        return None
    return count.all_true if known_literal(second) is size_of(count.sizes) else None


def _by_cases(call: OpenOperation, operands: Operands) -> Value | None:
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
    if call.name in CONVERTS and call.dtype in INTEGERS:  # a mask of ones and zeros that was made in float32
        limits = torch.iinfo(call.dtype)  # beyond them the processor decides what a number becomes
        given = [number for one in cases if one is not None for _, number in one.pairs]
        if not all(math.isfinite(number) and limits.min <= number <= limits.max for number in given):
            return None
        *others, (_, last) = merged.pairs
        whole = as_term(int(last))
        for condition, integer in others:
            whole = conditional(condition, as_term(int(integer)), whole)
        return whole
    return merged if call.dtype.is_floating_point else None


def _computed(call: OpenOperation, operands: Operands, numbers: Sequence[Number]) -> Number:
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
