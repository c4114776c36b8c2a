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

from functools import reduce
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.fx import Node

from orderproof.prover.fact import (
    EXACT,
    FLOAT16_LARGE,
    LARGE,
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
from orderproof.prover.move import STILL
from orderproof.prover.rule import Application, NothingFollows, dtype_of, rule

_ADD = {"add", "sub"}
_MULTIPLY = {"mul", "multiply"}
_DIVIDE = {"div", "true_divide"}
_AND = {"bitwise_and", "logical_and", "__and__"}
_OR = {"bitwise_or", "logical_or", "__or__"}
_COPY = {
    "clone",
    "_to_copy",
    "to",
    "type_as",
    "contiguous",
    "alias",
    "lift_fresh_copy",
    "detach",
    "positive",
    "dropout",
}
_ABSORBING = _ADD | _MULTIPLY | _AND | _OR | {"where", "masked_fill"}


def mask_like(known: Known, dtype: torch.dtype, *, share: float = 1.0) -> NDArray[np.bool_]:
    """Elements so negative (by a share of the limit) that they cannot survive a softmax beside an ordinary entry."""
    limit = share * (FLOAT16_LARGE if dtype is torch.float16 else LARGE)
    if known.value.dtype.kind != "f":
        return known.where(MASKED)
    masked: NDArray[np.bool_] = (known.status == MASKED) | ((known.status == EXACT) & (known.value <= -limit))
    return masked


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
    if not isinstance(a.node.meta["val"], Tensor):
        raise NothingFollows("an elementwise operator with several results has no lemma")
    rank = len(a.shape)
    operands = list(_operands(a, rank))
    moves = common_moves(a, operands)
    order = [str(d) for d in range(rank)]
    levels: list[Levels] = [align(settle(a, o, moves), o.labels, order) for o in operands]  # type: ignore[misc]
    out_moves = tuple(moves.get(label, STILL) for label in order)
    if name in _ABSORBING or any(o.fact.known is not None for o in operands) or _is_large(a, operands):
        return with_known(a.shape, out_moves, *_with_known(a, name, operands, levels, order))
    return Fact(a.shape, out_moves, highest(levels))


def _is_large(a: Application, operands: list[Operand]) -> bool:
    """Whether a constant or a literal here is as large as a mask."""
    if any(o.node is not None and o.node in a.constants and a.constants.is_large(o.node) for o in operands):
        return True
    return any(abs(x) >= FLOAT16_LARGE for x in _literals(a))


def _large_elements(a: Application, operands: list[Operand], knowns: list[Known]) -> NDArray[np.bool_]:
    """The elements at which a constant or a literal is as large as a mask; all of them where that is not known."""
    found = np.full((1,) * len(a.shape), any(abs(x) >= FLOAT16_LARGE for x in _literals(a)))
    for operand, known in zip(operands, knowns, strict=True):
        if known.where(EXACT).any():
            with np.errstate(invalid="ignore"):
                found = found | (known.where(EXACT) & ~(np.abs(known.value.astype(np.float64)) < FLOAT16_LARGE))
        elif operand.node is not None and operand.node in a.constants and a.constants.is_large(operand.node):
            found = np.ones_like(found)
    return found


def _literals(a: Application) -> list[float]:
    given = [*a.args, *a.node.kwargs.values()]
    return [float(x) for x in given if isinstance(x, int | float) and not isinstance(x, bool)]


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
    knowns = [_known(a, o, order, table=name in _MULTIPLY) for o in operands]
    level = highest(levels)
    if not any(k.status.any() for k in knowns) and not _is_large(a, operands):
        return level, None
    if name in ("where", "masked_fill"):
        _consult(a, operands, knowns)
        return _select(a, name, knowns, levels)
    status, bound = _bounds(a, name, operands, knowns)
    exact = reduce(np.logical_and, [k.status == EXACT for k in knowns])
    value: NDArray[Any] = bound
    if exact.any():
        found = _evaluate(a, operands, knowns)
        if found is None:
            exact = np.zeros_like(exact)
        else:
            value = np.where(exact, found, bound) if bound.any() else found
    status = np.where(exact, EXACT, status)
    decided, decision = _decided(a, name, knowns)
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


def _bounds(
    a: Application, name: str, operands: list[Operand], knowns: list[Known]
) -> tuple[NDArray[np.uint8], NDArray[Any]]:
    """Status and value of the elements not known exactly: a masked element carries an upper bound as its value.

    Ordinary + masked is masked (the assumption bounds what is ordinary); so is masked times a positive number,
    as long as the bound stays that of a mask. Anything else that meets a mask is unsure.
    """
    dtype = a.node.meta["val"].dtype
    dtypes = [dtype_of(o.node) if o.node is not None else torch.float32 for o in operands]
    masked = [mask_like(k, d) for k, d in zip(knowns, dtypes, strict=True)]
    unsure = reduce(np.logical_or, [k.status == UNSURE for k in knowns])
    any_masked = reduce(np.logical_or, masked)
    bound = np.zeros((1,) * len(a.shape))
    values = [np.where(k.status == UNKNOWN, 0.0, k.value.astype(np.float64)) for k in knowns]
    literals = [float(x) for x in a.args if isinstance(x, int | float) and not isinstance(x, bool)]
    large = _large_elements(a, operands, knowns) & dtype.is_floating_point
    if name in _DIVIDE and len(knowns) == 2:
        large = large | (knowns[1].where(EXACT) & (knowns[1].value == 0))
    keeps = np.zeros_like(any_masked)
    if name == "add" and a.node.kwargs.get("alpha", 1) == 1 and len(a.args) < 3:
        keeps, bound = any_masked, reduce(np.add, values) + sum(literals)
    elif name in _MULTIPLY | _DIVIDE and "rounding_mode" not in a.node.kwargs:
        keeps, bound = _scaled(a, name, knowns, masked, values, literals)
    elif name in _COPY:
        keeps, bound = any_masked, values[0]
    limit = FLOAT16_LARGE if dtype is torch.float16 else LARGE
    keeps = keeps & (bound <= -limit) & ~unsure & dtype.is_floating_point
    status = np.where(keeps, MASKED, np.where(any_masked | unsure | large, UNSURE, UNKNOWN))
    return status.astype(np.uint8), np.where(keeps, bound, 0.0)


def _scaled(
    a: Application,
    name: str,
    knowns: list[Known],
    masked: list[NDArray[np.bool_]],
    values: list[Any],
    literals: list[float],
) -> tuple[NDArray[np.bool_], NDArray[Any]]:
    """A masked operand times, or divided by, one positive number: which elements, and their bounds."""
    if len(knowns) == 1 and literals and isinstance(a.args[0], Node):
        place, factor = 0, np.asarray(literals[0])
        sure = np.asarray(literals[0] > 0)
    elif len(knowns) == 2 and (name in _DIVIDE or masked[0].any() != masked[1].any()):
        place = 0 if name in _DIVIDE or masked[0].any() else 1
        factor = values[1 - place]
        sure = (knowns[1 - place].status == EXACT) & (factor > 0)
    else:
        return np.zeros_like(masked[0]), np.zeros((1,) * len(a.shape))
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled = values[place] / factor if name in _DIVIDE else values[place] * factor
    return masked[place] & sure, np.nan_to_num(scaled, nan=0.0, posinf=0.0, neginf=-np.inf)


def _decided(a: Application, name: str, knowns: list[Known]) -> tuple[NDArray[np.bool_] | None, Any]:
    """Elements that one operand decides alone, and the value they take."""

    def one_is(test: Any) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = reduce(np.logical_or, [(k.status == EXACT) & test(k.value) for k in knowns])
        return found

    # Zero times infinity, and infinity minus infinity, are neither.
    infinite = reduce(np.logical_or, [(k.status >= MASKED) | _infinite(k) for k in knowns])
    positive = reduce(np.logical_or, [(k.status == UNSURE) | (_infinite(k) & ~(k.value == -np.inf)) for k in knowns])

    boolean = a.node.meta["val"].dtype is torch.bool
    if name in _MULTIPLY:
        return one_is(lambda v: v == 0) & ~infinite, 0
    if name == "add" and len(knowns) > 1 and a.node.kwargs.get("alpha", 1) == 1:
        return one_is(lambda v: v == -np.inf) & ~positive, -np.inf
    if name in _AND and boolean:
        return one_is(lambda v: v == 0), False
    if name in _OR and boolean:
        return one_is(lambda v: v != 0), True
    return None, None


def _infinite(known: Known) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = known.where(EXACT) & ~np.isfinite(known.value.astype(np.float64))
    return found


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
    risky = mask_like(yes, dtype) | mask_like(no, dtype) | (yes.status == UNSURE) | (no.status == UNSURE)
    status = np.where(sure, np.where(true, yes.status, no.status), np.where(risky, UNSURE, UNKNOWN))
    value = np.where(true, yes.value, no.value)
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
            value = torch.from_numpy(np.ascontiguousarray(k.value)).to(dtype_of(o.node))
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
