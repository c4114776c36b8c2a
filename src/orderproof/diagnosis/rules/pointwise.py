"""Pointwise operators: operands that move in the same way give a result that moves in that way.

Lemma (pointwise_equivariant). Let C[e] = h(A[e], B[e], ...) elementwise, with broadcasting.
  1. If A'[m(e)] = A[e] and B'[m(e)] = B[e] for the same move m, then C'[m(e)] = C[e].
  2. A constant satisfies the premise wherever its values do: B[m(e)] = B[e].
  3. If the operands move differently, C is not determined. A = [1, 2] with its ends exchanged and B = [1, 2]
     unchanged: A + B is [2, 4], then [3, 3].
  4. An element that one operand alone decides depends on that operand alone: 0 x, 0 / x, -inf + x, False and x,
     True or x, and the branch that `where` does not take.
  5. An integer equals itself: x == x is true and x < x false, whatever x is.
Proof. 1: C'[m(e)] = h(A'[m(e)], B'[m(e)]) = h(A[e], B[e]). 2 is 1. 4: h is constant in the other operands. 5:
elementary.
Arithmetic: exact in floating point too; case 4 needs finite x, and a divisor x that is not 0.
Machine-checked (proofs/rules/pointwise_lemma.v): pointwise_equivariant, pointwise_constant, pointwise_not_determined,
pointwise_decided.
Not machine-checked: the ranges of values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.fx import Node

from orderproof.diagnosis.domain.axis_labels import align_to_labels, broadcast_labels, join
from orderproof.diagnosis.domain.fact import NEVER, DependenceArray, Fact, constant_dependence, fact_with_ranges
from orderproof.diagnosis.domain.move import STILL
from orderproof.diagnosis.domain.values import ValueRanges
from orderproof.diagnosis.equal_entries import OF_EQUAL, compared_with_itself
from orderproof.diagnosis.operands import Operand, elementwise_dependence, with_uniform_axes_of_constant
from orderproof.diagnosis.rule import OperatorCall, RuleNotApplicable, dtype_of, rule
from orderproof.diagnosis.value_transfer import (
    MULTIPLY,
    OPERATORS_WITH_ABSORBING_VALUES,
    absorbs_all,
    has_large_constant,
    has_large_number,
    select,
    transfer_values,
)

INDEX_DTYPES = (torch.int32, torch.int64)  # wide enough for every position of a row


@rule(
    "pointwise_equivariant", "<pointwise>", "_to_copy", "to", "type_as", "contiguous", "alias",
    "lift_fresh_copy", "detach", "masked_fill", "where", "dropout", "feature_dropout", "alpha_dropout",
    "__and__", "__or__", "__xor__", "multiply", "softplus", "silu", "gelu", "log_sigmoid", "square", "relu",
    "_prelu_kernel", "tril", "triu", "real", "imag", "conj", "_conj", "resolve_conj", "resolve_neg", "polar",
    "complex",
)  # fmt: skip
def pointwise(call: OperatorCall) -> Fact:
    """The fact about an elementwise operator's result."""
    name = call.target.split(".")[1]
    if name in ("tril", "triu"):
        return _tril_triu(call, name)
    result = _elementwise_fact(call, name)
    if name in OF_EQUAL and (same := compared_with_itself(call.node)) is not None:
        ranges = (result.ranges or ValueRanges.ordinary(len(call.shape))).with_exact(same, OF_EQUAL[name])
        return fact_with_ranges(call.shape, result.moves, result.dependence, ranges)
    if name in ("_to_copy", "to") and dtype_of(call.node) in INDEX_DTYPES and dtype_of(call.args[0]) in INDEX_DTYPES:
        return replace(result, index_coverage=call.fact(call.args[0]).index_coverage)
    return result


def _elementwise_fact(call: OperatorCall, name: str) -> Fact:
    if not isinstance(call.node.meta["val"], Tensor):
        raise RuleNotApplicable("an elementwise operator with several results has no lemma")
    operands = list(_broadcast_operands(call, len(call.shape)))
    moves, dependences = elementwise_dependence(call, operands, len(call.shape))
    if (
        name in OPERATORS_WITH_ABSORBING_VALUES
        or any(o.fact.ranges is not None for o in operands)
        or has_large_constant(call, name, operands)
    ):
        return fact_with_ranges(call.shape, moves, *_dependence_and_ranges(call, name, operands, dependences))
    return Fact(call.shape, moves, join(dependences))


def _broadcast_operands(call: OperatorCall, rank: int) -> Iterator[Operand]:
    named: list[tuple[int | str, Any]] = [*enumerate(call.args), *call.node.kwargs.items()]
    if call.target.startswith(("aten.type_as", "aten.to.other")):
        named = named[:1]  # of the other tensor only the dtype is used
    for key, argument in named:
        if isinstance(argument, Node):
            fact = with_uniform_axes_of_constant(call, argument) if call.node in call.constants else call.fact(argument)
            yield Operand(fact, broadcast_labels(fact.shape, rank), argument, key)


def _dependence_and_ranges(
    call: OperatorCall, name: str, operands: list[Operand], dependences: list[DependenceArray]
) -> tuple[DependenceArray, ValueRanges | None]:
    """Dependence and value ranges of the result, from the value ranges of the operands."""
    ranges = [_operand_ranges(call, o, table=name in MULTIPLY) for o in operands]
    dependence = join(dependences)
    if all(r.is_ordinary for r in ranges) and not (has_large_number(call, name) or absorbs_all(call, name)):
        return dependence, None
    if name in ("where", "masked_fill"):
        _mark_used(call, operands, ranges)
        return _where(call, name, ranges, dependences)
    result = transfer_values(call, name, operands, ranges)
    exact = reduce(np.logical_and, [r.exact for r in ranges])
    if exact.any():
        value = _evaluate(call, operands, ranges)
        if value is not None:
            result = ValueRanges.of_constant(value) if exact.all() else result.with_exact(exact, value)
    if result.is_ordinary:
        return dependence, None
    _mark_used(call, operands, ranges)
    return dependence, result


def _mark_used(call: OperatorCall, operands: list[Operand], ranges: list[ValueRanges]) -> None:
    """Record the stored values that the ranges of the result depend on."""
    for operand, one in zip(operands, ranges, strict=True):
        if operand.node is not None and operand.node in call.constants and not one.is_ordinary:
            call.constants.mark_used(operand.node)


def _operand_ranges(call: OperatorCall, operand: Operand, *, table: bool = False) -> ValueRanges:
    """The value ranges of an operand, aligned to the result; of a `table` of factors only whether it is large."""
    ranges, node, rank = operand.fact.ranges, operand.node, len(call.shape)
    if ranges is None and node is not None and node in call.constants:
        if not table or call.constants.is_multiplicative_mask(node):
            array = call.constants.array(node)
            ranges = None if array is None else ValueRanges.of_constant(array)
        elif call.constants.has_masking_magnitude(node):
            return ValueRanges.unbounded(rank)
    if ranges is None:
        return ValueRanges.ordinary(rank)
    return ranges.map(lambda x: align_to_labels(x, operand.labels, [str(d) for d in range(rank)]))


def _where(
    call: OperatorCall, name: str, ranges: list[ValueRanges], dependences: list[DependenceArray]
) -> tuple[DependenceArray, ValueRanges | None]:
    """`where` and `masked_fill`: if the condition is exact, only the branch it takes matters."""
    branches = _branches(call, name, ranges, dependences)
    if branches is None:
        return join(dependences), None
    (condition, condition_dependence), (yes, yes_dependence), (no, no_dependence) = branches
    branch = np.where(condition.low != 0, yes_dependence, no_dependence)
    either_branch = join([condition_dependence, yes_dependence, no_dependence])
    dependence = np.where(condition.exact, join([condition_dependence, branch]), either_branch)
    return dependence, select(condition, yes, no, call.node.meta["val"].dtype)


def _branches(call: OperatorCall, name: str, ranges: list[ValueRanges], dependences: list[DependenceArray]) -> Any:
    """Condition, value if true, value if false, each with its dependence; None for a call without branches."""
    tensors = iter(zip(ranges, dependences, strict=True))
    dtype = call.node.meta["val"].dtype
    parts = [next(tensors) if isinstance(x, Node) else _literal(x, len(call.shape), dtype) for x in call.args[:3]]
    if len(parts) != 3:
        return None
    if name == "masked_fill":
        x, condition, fill = parts
        return condition, fill, x
    return tuple(parts)


def _literal(x: Any, rank: int, dtype: torch.dtype) -> tuple[ValueRanges, DependenceArray]:
    ranges = ValueRanges.of_constant(np.full((1,) * rank, torch.tensor(x, dtype=dtype).item()))
    return ranges, constant_dependence(rank, NEVER)


def _evaluate(call: OperatorCall, operands: list[Operand], ranges: list[ValueRanges]) -> NDArray[Any] | None:
    """The operator on the operands' exact values; None if torch refuses them or returns another dtype."""
    values = {}
    for o, r in zip(operands, ranges, strict=True):
        if o.node is not None:
            known = r.low if r.low is r.high else np.where(r.exact, r.low, 0)
            value = torch.from_numpy(np.array(known)).to(dtype_of(o.node))
            values[o.node] = value.reshape(()) if not o.fact.shape else value  # rank 0 promotes dtypes less
    for node in call.node.all_input_nodes:  # tensors of which only the dtype is used
        values.setdefault(node, torch.zeros((), dtype=dtype_of(node)))
    kwargs = {k: torch.device("cpu") if k == "device" else v for k, v in call.node.kwargs.items()}
    try:
        with torch.no_grad():
            result = call.node.target(  # type: ignore[operator]
                *torch.fx.map_arg(call.args, values.__getitem__), **torch.fx.map_arg(kwargs, values.__getitem__)
            )
    except (RuntimeError, TypeError):  # on broadcast shapes or on the CPU torch may refuse: the value is not known
        return None
    if not isinstance(result, Tensor) or result.dtype is not call.node.meta["val"].dtype:
        return None
    return (result.float() if result.dtype is torch.bfloat16 else result).numpy()


def _tril_triu(call: OperatorCall, name: str) -> Fact:
    """`tril` and `triu` multiply by a constant triangle: what is outside is exactly zero."""
    source, rank = call.args[0], len(call.shape)
    fact = call.fact(source)
    ones = torch.ones(call.shape[-2:], dtype=torch.bool)
    diagonal = int(call.argument(1, "diagonal", 0))
    keep = (ones.tril(diagonal) if name == "tril" else ones.triu(diagonal)).numpy()
    triangle = Fact(keep.shape, (STILL, STILL), constant_dependence(2, NEVER), ValueRanges.of_constant(keep))
    operands = [
        Operand(fact, broadcast_labels(fact.shape, rank), source, 0),
        Operand(triangle, broadcast_labels(keep.shape, rank), None, "triangle"),
    ]
    moves, dependences = elementwise_dependence(call, operands, rank)
    shaped = keep.reshape((1,) * (rank - 2) + keep.shape)
    ranges = (fact.ranges or ValueRanges.ordinary(rank)).with_exact(~shaped, 0)
    return fact_with_ranges(call.shape, moves, join(dependences), ranges)
