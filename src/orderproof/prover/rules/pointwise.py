"""Pointwise operators: what moves alike in the operands moves alike in the result.

Lemma (pointwise_equivariant). Let C[e] = h(A[e], B[e], ...) elementwise, with broadcasting.
  1. If A'[m(e)] = A[e] and B'[m(e)] = B[e] for the same move m, then C'[m(e)] = C[e].
  2. A constant satisfies the premise wherever its values do: B[m(e)] = B[e].
  3. An operand that moves otherwise: nothing follows. A = [1, 2], B = [1, 2] still, swap A: A + B is
     [2, 4], then [3, 3].
  4. An element that one operand alone decides depends on that operand alone: 0 x, -inf + x, False and x,
     True or x, and the branch that `where` does not take.
Proof. 1: C'[m(e)] = h(A'[m(e)], B'[m(e)]) = h(A[e], B[e]). 2 is 1. 4: h is constant in the other operands.
Arithmetic: exact in floating point too; case 4 needs finite x.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.fx import Node

from orderproof.prover.fact import (
    EXACT,
    LOW,
    MASKED,
    NEVER,
    UNKNOWN,
    UNSURE,
    Fact,
    Known,
    Levels,
    with_known,
)
from orderproof.prover.labelled import Labels, Operand, align, common_moves, highest, refined, settle
from orderproof.prover.masking import (
    ABSORBING,
    MULTIPLY,
    bounds,
    decided_by_one,
    is_huge,
    is_large,
    mask_like,
    not_high,
)
from orderproof.prover.move import STILL
from orderproof.prover.rule import Application, NothingFollows, dtype_of, rule

PLACES = (torch.int32, torch.int64)  # that hold every place of a line


@rule(
    "pointwise_equivariant",
    "<pointwise>",
    "_to_copy",
    "to",
    "type_as",
    "contiguous",
    "alias",
    "lift_fresh_copy",
    "detach",
    "masked_fill",
    "where",
    "dropout",
    "feature_dropout",
    "alpha_dropout",
    "__and__",
    "__or__",
    "__xor__",
    "multiply",
    "softplus",
    "silu",
    "gelu",
    "log_sigmoid",
    "square",
    "relu",
    "_prelu_kernel",
    "tril",
    "triu",
)
def pointwise(a: Application) -> Fact:
    """The fact about an elementwise operator's result."""
    name = a.target.split(".")[1]
    if name in ("tril", "triu"):
        return _triangle(a, name)
    if name in ("_to_copy", "to") and dtype_of(a.node) in PLACES and dtype_of(a.args[0]) in PLACES:
        return replace(_combined(a, name), among=a.fact(a.args[0]).among)
    return _combined(a, name)


def _combined(a: Application, name: str) -> Fact:
    if not isinstance(a.node.meta["val"], Tensor):
        raise NothingFollows("an elementwise operator with several results has no lemma")
    rank = len(a.shape)
    operands = list(_operands(a, rank))
    moves = common_moves(a, operands)
    order = [str(d) for d in range(rank)]
    levels: list[Levels] = [align(settle(a, o, moves), o.labels, order) for o in operands]  # type: ignore[misc]
    out_moves = tuple(moves.get(label, STILL) for label in order)
    if name in ABSORBING or any(o.fact.known is not None for o in operands) or is_large(a, operands):
        return with_known(a.shape, out_moves, *_with_known(a, name, operands, levels, order))
    return Fact(a.shape, out_moves, highest(levels))


def _operands(a: Application, rank: int) -> Any:
    named: list[tuple[int | str, Any]] = [*enumerate(a.args), *a.node.kwargs.items()]
    if a.target.startswith(("aten.type_as", "aten.to.other")):
        named = named[:1]  # the other tensor lends its type, not its values
    for place, argument in named:
        if isinstance(argument, Node):
            fact = refined(a, argument) if a.node in a.constants else a.fact(argument)
            yield Operand(fact, broadcast_labels(fact.shape, rank), argument, place)


def broadcast_labels(shape: tuple[int, ...], rank: int) -> Labels:
    """Labels of an operand that broadcasts against a result of this rank: '' where it has size 1."""
    shift = rank - len(shape)
    return tuple(str(d + shift) if size > 1 else "" for d, size in enumerate(shape))


def _with_known(
    a: Application, name: str, operands: list[Operand], levels: list[Levels], order: list[str]
) -> tuple[Levels, Known | None]:
    """Levels and known elements of the result, using what is known of the operands' values."""
    knowns = [_known(a, o, order, table=name in MULTIPLY) for o in operands]
    level = highest(levels)
    if not any(k.status.any() for k in knowns) and not is_large(a, operands):
        return level, None
    if name in ("where", "masked_fill"):
        _consult(a, operands, knowns)
        return _select(a, name, knowns, levels)
    status, bound = bounds(a, name, operands, knowns)
    exact = reduce(np.logical_and, [k.status == EXACT for k in knowns])
    value: NDArray[Any] = bound
    if exact.any():
        found = _evaluate(a, operands, knowns)
        if found is None:
            exact = np.zeros_like(exact)
        else:
            value = np.where(exact, found, bound) if bound.any() else found
    status = np.where(exact, EXACT, status)
    decided, decision = decided_by_one(a, name, knowns)
    if decided is not None:
        status = np.where(decided, EXACT, status)
        value = np.where(decided, decision, value)
    if not status.any():
        return level, None
    _consult(a, operands, knowns)
    return level, Known(status.astype(np.uint8), value)


def _consult(a: Application, operands: list[Operand], knowns: list[Known]) -> None:
    """Note which stored values the result's known elements rest on."""
    for operand, known in zip(operands, knowns, strict=True):
        if known.status.any() and operand.node is not None and operand.node in a.constants:
            a.constants.consult(operand.node)


def _known(a: Application, operand: Operand, order: list[str], *, table: bool = False) -> Known:
    known = operand.fact.known
    usable = operand.node is not None and operand.node in a.constants
    if known is None and operand.node is not None and usable and (not table or a.constants.is_mask(operand.node)):
        array = a.constants.array(operand.node)
        if array is not None:
            known = Known(np.full((1,) * array.ndim, EXACT, dtype=np.uint8), array)
    if known is None:
        one = (1,) * len(order)
        return Known(np.zeros(one, dtype=np.uint8), np.zeros(one))
    labels = operand.labels
    return Known(align(known.status, labels, order), align(known.value, labels, order))  # type: ignore[arg-type]


def _select(a: Application, name: str, knowns: list[Known], levels: list[Levels]) -> tuple[Levels, Known | None]:
    """`where` and `masked_fill`: where the condition is known, only the branch it takes matters."""
    rank = len(a.shape)
    branches = _branches(a, name, knowns, levels, rank)
    if branches is None:
        return highest(levels), None
    (condition, condition_level), (yes, yes_level), (no, no_level) = branches
    sure = condition.status == EXACT
    true = condition.value != 0
    branch = np.where(true, yes_level, no_level)
    level = np.where(sure, highest([condition_level, branch]), highest([condition_level, yes_level, no_level]))
    dtype = a.node.meta["val"].dtype
    risky = reduce(np.logical_or, [(k.status >= MASKED) | is_huge(k, dtype) for k in (yes, no)])
    nowhere_high = not_high(yes) & not_high(no) & dtype.is_floating_point
    either = np.where(risky, np.where(nowhere_high, LOW, UNSURE), UNKNOWN)
    masked, high = reduce(np.logical_and, [mask_like(k, dtype) for k in (yes, no)]), np.maximum(yes.value, no.value)
    masked = masked & dtype.is_floating_point
    either = np.where(masked, MASKED, either)  # whichever it is
    status = np.where(sure, np.where(true, yes.status, no.status), either)
    value = np.where(sure, np.where(true, yes.value, no.value), np.where(masked, high, np.zeros_like(yes.value)))
    return level, Known(status.astype(np.uint8), value)


def _branches(a: Application, name: str, knowns: list[Known], levels: list[Levels], rank: int) -> Any:
    tensors = iter(zip(knowns, levels, strict=True))
    dtype = a.node.meta["val"].dtype
    parts = [next(tensors) if isinstance(x, Node) else _literal(x, rank, dtype) for x in a.args[:3]]
    if len(parts) != 3:
        return None
    if name == "masked_fill":
        x, condition, fill = parts
        return condition, fill, x
    return tuple(parts)


def _literal(x: Any, rank: int, dtype: torch.dtype) -> tuple[Known, Levels]:
    one = (1,) * rank
    known = Known(np.full(one, EXACT, dtype=np.uint8), np.full(one, torch.tensor(x, dtype=dtype).item()))
    return known, np.full(one, NEVER, dtype=np.int64)


def _evaluate(a: Application, operands: list[Operand], knowns: list[Known]) -> NDArray[Any] | None:
    """The operator itself, on the operands' known values."""
    values = {}
    for o, k in zip(operands, knowns, strict=True):
        if o.node is not None:
            value = torch.from_numpy(np.array(k.value)).to(dtype_of(o.node))
            values[o.node] = value.reshape(()) if not o.fact.shape else value  # rank 0 promotes types less
    for node in a.node.all_input_nodes:  # a tensor that lends only its type
        values.setdefault(node, torch.zeros((), dtype=dtype_of(node)))
    kwargs = {k: torch.device("cpu") if k == "device" else v for k, v in a.node.kwargs.items()}
    try:
        with torch.no_grad():
            result = a.node.target(  # type: ignore[operator]
                *torch.fx.map_arg(a.args, values.__getitem__), **torch.fx.map_arg(kwargs, values.__getitem__)
            )
    except (RuntimeError, TypeError):
        return None
    if not isinstance(result, Tensor) or result.dtype is not a.node.meta["val"].dtype:
        return None
    return (result.float() if result.dtype is torch.bfloat16 else result).numpy()


def _triangle(a: Application, name: str) -> Fact:
    """`tril` and `triu` multiply by a constant triangle: what it cuts off is exactly zero."""
    source = a.args[0]
    fact = a.fact(source)
    ones = torch.ones(a.shape[-2:], dtype=torch.bool)
    diagonal = int(a.argument(1, "diagonal", 0))
    keep = (ones.tril(diagonal) if name == "tril" else ones.triu(diagonal)).numpy()
    rank = len(a.shape)
    triangle = Fact(
        keep.shape,
        (STILL, STILL),
        np.full((1, 1), NEVER, dtype=np.int64),
        Known(np.full((1, 1), EXACT, np.uint8), keep),
    )
    order = [str(d) for d in range(rank)]
    operands = [
        Operand(fact, broadcast_labels(fact.shape, rank), source, 0),
        Operand(triangle, broadcast_labels(keep.shape, rank), None, "triangle"),
    ]
    moves = common_moves(a, operands)
    first, second = (align(settle(a, o, moves), o.labels, order) for o in operands)
    shaped = keep.reshape((1,) * (rank - 2) + keep.shape)
    level = highest([first, second])  # type: ignore[list-item]
    known = fact.known
    status = known.status if known is not None else np.zeros((1,) * rank, dtype=np.uint8)
    value = known.value if known is not None else np.zeros((1,) * rank)
    status = np.where(shaped, status, EXACT).astype(np.uint8)
    value = np.where(shaped, value, 0)
    out_moves = tuple(moves.get(label, STILL) for label in order)
    return with_known(a.shape, out_moves, level, Known(status, value))
