"""What becomes of masks: elements so negative, or infinite, that they decide what they meet.

An element of a tensor may be known (exactly, or as masked with an upper bound as its value), unsure, or
ordinary. This module says how that passes through elementwise arithmetic: ordinary + masked is masked, 0 x is
0 unless x may be infinite, and what meets a number as large as a mask without being one is unsure.
"""

from __future__ import annotations

from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch.fx import Node

from orderproof.prover.fact import EXACT, FLOAT16_LARGE, LARGE, LOW, MASKED, UNKNOWN, UNSURE, Known
from orderproof.prover.labelled import Operand
from orderproof.prover.rule import Application, dtype_of

ADD = {"add", "sub"}
MULTIPLY = {"mul", "multiply"}
DIVIDE = {"div", "true_divide"}
WHOLE = ADD | MULTIPLY | {"rsub"}  # where whole numbers become as large as a mask
EXPONENTIAL = {"exp", "exp2"}
TAMING = EXPONENTIAL | {"sigmoid", "relu", "softplus", "expm1", "elu"}  # bounded below: no mask comes through
AND = {"bitwise_and", "logical_and", "__and__"}
OR = {"bitwise_or", "logical_or", "__or__"}
LARGER = {"max", "maximum"}
COPY = {
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
BOUNDED = "scores of visible tokens are finite and small beside the masking value (finite mask, not -inf)"
ABSORBING = ADD | MULTIPLY | AND | OR | {"where", "masked_fill"}


def mask_like(known: Known, dtype: torch.dtype, *, share: float = 1.0) -> NDArray[np.bool_]:
    """Elements so negative (by a share of the limit) that they cannot survive a softmax beside an ordinary entry."""
    limit = share * (FLOAT16_LARGE if dtype is torch.float16 else LARGE)
    if known.value.dtype.kind != "f":
        return known.where(MASKED)
    masked: NDArray[np.bool_] = (known.status == MASKED) | ((known.status == EXACT) & (known.value <= -limit))
    return masked


class Lines(NamedTuple):
    """What is seen of lines along some dimensions."""

    ordinary: NDArray[np.bool_]  # entries above every mask
    alive: NDArray[np.bool_]  # lines that hold an ordinary entry and are not spoilt
    gone: NDArray[np.bool_]  # entries masked in a line that is alive
    finite: NDArray[np.bool_]  # entries that are no known infinity
    spoilt: NDArray[np.bool_]  # lines with an entry that is, or may be, +inf or no number


def lines_of(known: Known, dtype: torch.dtype, dims: int | tuple[int, ...]) -> Lines:
    """Which lines have a visible entry, and what is masked in them."""
    masked = mask_like(known, dtype)
    finite = (known.status != EXACT) | np.isfinite(known.value.astype(np.float64))
    # So far above every mask that the gap alone makes the masked entries vanish.
    ordinary = (known.status == UNKNOWN) | (known.where(EXACT) & finite & ~mask_like(known, dtype, share=0.1))
    infinite = known.where(EXACT) & ~finite & ~(known.value == -np.inf)
    spoilt = (infinite | (known.status == UNSURE)).any(axis=dims, keepdims=True)
    alive = ordinary.any(axis=dims, keepdims=True) & ~spoilt
    return Lines(ordinary, alive, masked & alive, finite, spoilt)


def is_large(a: Application, operands: list[Operand]) -> bool:
    """Whether a constant or a literal here is as large as a mask."""
    if any(o.node is not None and o.node in a.constants and a.constants.is_large(o.node) for o in operands):
        return True
    if a.target.split(".")[1] in DIVIDE and _small(_divisor(a)).any():
        return True
    return any(abs(x) >= FLOAT16_LARGE for x in literals_of(a))


def _divisor(a: Application) -> Any:
    """What a division divides by; 1 where that is not known."""
    divisor = a.args[1]
    if isinstance(divisor, Node):
        divisor = a.constants.array(divisor) if divisor in a.constants else None
    return 1.0 if divisor is None else divisor


def _small(divisor: Any) -> NDArray[np.bool_]:
    """Where dividing by this is multiplying by a number as large as a mask."""
    found: NDArray[np.bool_] = np.abs(np.asarray(divisor, dtype=np.float64)) < 1 / FLOAT16_LARGE
    return found


def large_elements(a: Application, operands: list[Operand], knowns: list[Known]) -> NDArray[np.bool_]:
    """The elements at which a constant or a literal is as large as a mask; all of them where that is not known."""
    found = np.full((1,) * len(a.shape), any(abs(x) >= FLOAT16_LARGE for x in literals_of(a)))
    for operand, known in zip(operands, knowns, strict=True):
        if known.where(EXACT).any():
            with np.errstate(invalid="ignore"):
                found = found | (known.where(EXACT) & ~(np.abs(known.value.astype(np.float64)) < FLOAT16_LARGE))
        elif operand.node is not None and operand.node in a.constants and a.constants.is_large(operand.node):
            found = np.ones_like(found)
    return found


def literals_of(a: Application) -> list[float]:
    """The numbers among a node's arguments."""
    given = [*a.args, *a.node.kwargs.values()]
    return [float(x) for x in given if isinstance(x, int | float) and not isinstance(x, bool)]


def bounds(
    a: Application, name: str, operands: list[Operand], knowns: list[Known]
) -> tuple[NDArray[np.uint8], NDArray[Any]]:
    """Status and value of the elements not known exactly: a masked element carries an upper bound as its value.

    Ordinary + masked is masked (the assumption bounds what is ordinary); so is masked times a positive number,
    as long as the bound stays that of a mask. What is low stays low under the same operations. Anything else
    that meets a mask is unsure.
    """
    dtype = a.node.meta["val"].dtype
    dtypes = [dtype_of(o.node) if o.node is not None else torch.float32 for o in operands]
    masked = [mask_like(k, d) for k, d in zip(knowns, dtypes, strict=True)]
    unsure = reduce(np.logical_or, [k.status == UNSURE for k in knowns])
    any_masked = reduce(np.logical_or, masked)
    low = reduce(np.logical_or, [k.status == LOW for k in knowns])
    bound = np.zeros((1,) * len(a.shape))
    values = [np.where((k.status == EXACT) | (k.status == MASKED), k.value.astype(np.float64), 0.0) for k in knowns]
    literals = [float(x) for x in a.args if isinstance(x, int | float) and not isinstance(x, bool)]
    large = large_elements(a, operands, knowns) & (
        dtype.is_floating_point or (name in WHOLE and dtype is not torch.bool)
    )
    if name in DIVIDE and len(knowns) == 2:
        large = large | (knowns[1].where(EXACT) & _small(knowns[1].value))
    elif name in DIVIDE:
        large = large | _small(_divisor(a)).any()
    keeps = stays = np.zeros_like(any_masked)
    plain = a.node.kwargs.get("alpha", 1) == 1 and len(a.args) < 3
    if name == "add" and plain:
        # What is low may be -inf: masked besides, it has no bound that says whether it is.
        keeps, bound, stays = any_masked & ~low, reduce(np.add, values) + sum(literals), low & (any_masked | ~large)
    elif name == "sub" and plain and isinstance(a.args[0], Node):
        taken = (knowns[1].status == UNKNOWN) | (knowns[1].status == EXACT) if len(knowns) == 2 else ~stays
        keeps, bound = masked[0] & taken, values[0] - (values[1] if len(knowns) == 2 else sum(literals))
        stays = (knowns[0].status == LOW) & taken & ~large
    elif name in MULTIPLY | DIVIDE and "rounding_mode" not in a.node.kwargs:
        keeps, bound, stays = _scaled(a, name, knowns, masked, values, literals)
        stays = stays & ~large
    elif name in COPY:
        keeps, bound, stays = any_masked, values[0], low
    elif name in LARGER and len(knowns) == 2:
        return _larger(knowns, masked, values, dtype)
    limit = FLOAT16_LARGE if dtype is torch.float16 else LARGE
    keeps = keeps & (bound <= -limit) & ~unsure & dtype.is_floating_point
    stays = stays & ~unsure & dtype.is_floating_point
    tame = name in TAMING and all(x > 0 for x in literals)  # a softplus of negative slope lets masks through
    doubtful = unsure | large if tame else unsure | large | any_masked | low
    status = np.where(keeps, MASKED, np.where(stays, LOW, np.where(doubtful, UNSURE, UNKNOWN)))
    return status.astype(np.uint8), np.where(keeps, bound, 0.0)


def _larger(
    knowns: list[Known], masked: list[NDArray[np.bool_]], values: list[Any], dtype: torch.dtype
) -> tuple[NDArray[np.uint8], NDArray[Any]]:
    """The larger of two: masked where both are, ordinary where one is and neither is high, otherwise low."""
    ordinary = [(k.status == UNKNOWN) | (k.where(EXACT) & ~is_huge(k, dtype)) for k in knowns]
    high = reduce(np.logical_or, [~not_high(k) | (is_huge(k, dtype) & ~(k.value < 0)) for k in knowns])
    both, bound = masked[0] & masked[1], np.maximum(*values)
    status = np.where(both, MASKED, np.where(ordinary[0] | ordinary[1], UNKNOWN, LOW))
    return np.where(high, UNSURE, status).astype(np.uint8), np.where(both & ~high, bound, 0.0)


def _scaled(
    a: Application,
    name: str,
    knowns: list[Known],
    masked: list[NDArray[np.bool_]],
    values: list[Any],
    literals: list[float],
) -> tuple[NDArray[np.bool_], NDArray[Any], NDArray[np.bool_]]:
    """A masked or low operand times, or divided by, one positive number: which stay masked, their bounds, which low."""
    low = [k.status == LOW for k in knowns]
    hiding = [bool((m | x).any()) for m, x in zip(masked, low, strict=True)]
    if len(knowns) == 1 and literals and isinstance(a.args[0], Node):
        place, factor = 0, np.asarray(literals[0])
        sure = np.asarray(literals[0] > 0)
    elif len(knowns) == 2 and (name in DIVIDE or hiding[0] != hiding[1]):
        place = 0 if name in DIVIDE or hiding[0] else 1
        factor = values[1 - place]
        sure = (knowns[1 - place].status == EXACT) & (factor > 0)
    else:
        return np.zeros_like(masked[0]), np.zeros((1,) * len(a.shape)), np.zeros_like(masked[0])
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled = values[place] / factor if name in DIVIDE else values[place] * factor
    bound = np.nan_to_num(scaled, nan=0.0, posinf=0.0, neginf=-np.inf)
    return masked[place] & sure, bound, low[place] & sure & (np.abs(factor) < np.inf)


def decided_by_one(a: Application, name: str, knowns: list[Known]) -> tuple[NDArray[np.bool_] | None, Any]:
    """Elements that one operand decides alone, and the value they take."""

    def one_is(test: Any) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = reduce(np.logical_or, [(k.status == EXACT) & test(k.value) for k in knowns])
        return found

    # Zero times infinity, and infinity minus infinity, are neither.
    infinite = reduce(np.logical_or, [(k.status >= MASKED) | is_infinite(k) for k in knowns])
    positive = reduce(np.logical_or, [(k.status == UNSURE) | (is_infinite(k) & ~(k.value == -np.inf)) for k in knowns])

    boolean = a.node.meta["val"].dtype is torch.bool
    if name in EXPONENTIAL and (knowns[0].status == MASKED).any():  # it underflows
        a.assume(BOUNDED)
        return knowns[0].status == MASKED, 0
    if name in MULTIPLY:
        return one_is(lambda v: v == 0) & ~infinite, 0
    if name == "add" and len(knowns) > 1 and a.node.kwargs.get("alpha", 1) == 1:
        return one_is(lambda v: v == -np.inf) & ~positive, -np.inf
    if name in AND and boolean:
        return one_is(lambda v: v == 0), False
    if name in OR and boolean:
        return one_is(lambda v: v != 0), True
    return None, None


def is_huge(known: Known, dtype: torch.dtype) -> NDArray[np.bool_]:
    """The elements known to be too far from the ordinary to stand beside a mask, infinite, or no number."""
    value = known.value.astype(np.float64)
    limit = 0.1 * FLOAT16_LARGE if dtype is torch.float16 else FLOAT16_LARGE
    found: NDArray[np.bool_] = known.where(EXACT) & ~(np.abs(value) < limit)
    return found


def not_high(known: Known) -> NDArray[np.bool_]:
    """The elements that are ordinary or as negative as a mask, and neither +inf nor NaN."""
    vague: NDArray[np.bool_] = (known.status == UNKNOWN) | (known.status == MASKED) | (known.status == LOW)
    if known.value.dtype.kind != "f":
        return vague | known.where(EXACT)
    return vague | (known.where(EXACT) & (known.value < FLOAT16_LARGE))


def is_infinite(known: Known) -> NDArray[np.bool_]:
    """The elements known to be infinite, or no number."""
    found: NDArray[np.bool_] = known.where(EXACT) & ~np.isfinite(known.value.astype(np.float64))
    return found
