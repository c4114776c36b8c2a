"""What becomes of masks: elements so negative, or infinite, that they decide what they meet.

An element of a tensor may be known (exactly, or as masked with an upper bound as its value), unsure, or
ordinary. This module says how that passes through elementwise arithmetic: ordinary + masked is masked, 0 x is
0 unless x may be infinite, and what meets a number as large as a mask without being one is unsure.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.fx import Node

from orderproof.prover.fact import EXACT, FLOAT16_LARGE, LARGE, MASKED, UNKNOWN, UNSURE, Known
from orderproof.prover.labelled import Operand
from orderproof.prover.rule import Application, dtype_of

ADD = {"add", "sub"}
MULTIPLY = {"mul", "multiply"}
DIVIDE = {"div", "true_divide"}
AND = {"bitwise_and", "logical_and", "__and__"}
OR = {"bitwise_or", "logical_or", "__or__"}
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
ABSORBING = ADD | MULTIPLY | AND | OR | {"where", "masked_fill"}


def mask_like(known: Known, dtype: torch.dtype, *, share: float = 1.0) -> NDArray[np.bool_]:
    """Elements so negative (by a share of the limit) that they cannot survive a softmax beside an ordinary entry."""
    limit = share * (FLOAT16_LARGE if dtype is torch.float16 else LARGE)
    if known.value.dtype.kind != "f":
        return known.where(MASKED)
    masked: NDArray[np.bool_] = (known.status == MASKED) | ((known.status == EXACT) & (known.value <= -limit))
    return masked


def is_large(a: Application, operands: list[Operand]) -> bool:
    """Whether a constant or a literal here is as large as a mask."""
    if any(o.node is not None and o.node in a.constants and a.constants.is_large(o.node) for o in operands):
        return True
    return any(abs(x) >= FLOAT16_LARGE for x in literals_of(a))


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
    large = large_elements(a, operands, knowns) & dtype.is_floating_point
    if name in DIVIDE and len(knowns) == 2:
        large = large | (knowns[1].where(EXACT) & (knowns[1].value == 0))
    keeps = np.zeros_like(any_masked)
    if name == "add" and a.node.kwargs.get("alpha", 1) == 1 and len(a.args) < 3:
        keeps, bound = any_masked, reduce(np.add, values) + sum(literals)
    elif name in MULTIPLY | DIVIDE and "rounding_mode" not in a.node.kwargs:
        keeps, bound = _scaled(a, name, knowns, masked, values, literals)
    elif name in COPY:
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
    elif len(knowns) == 2 and (name in DIVIDE or masked[0].any() != masked[1].any()):
        place = 0 if name in DIVIDE or masked[0].any() else 1
        factor = values[1 - place]
        sure = (knowns[1 - place].status == EXACT) & (factor > 0)
    else:
        return np.zeros_like(masked[0]), np.zeros((1,) * len(a.shape))
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled = values[place] / factor if name in DIVIDE else values[place] * factor
    return masked[place] & sure, np.nan_to_num(scaled, nan=0.0, posinf=0.0, neginf=-np.inf)


def decided_by_one(a: Application, name: str, knowns: list[Known]) -> tuple[NDArray[np.bool_] | None, Any]:
    """Elements that one operand decides alone, and the value they take."""

    def one_is(test: Any) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = reduce(np.logical_or, [(k.status == EXACT) & test(k.value) for k in knowns])
        return found

    # Zero times infinity, and infinity minus infinity, are neither.
    infinite = reduce(np.logical_or, [(k.status >= MASKED) | is_infinite(k) for k in knowns])
    positive = reduce(np.logical_or, [(k.status == UNSURE) | (is_infinite(k) & ~(k.value == -np.inf)) for k in knowns])

    boolean = a.node.meta["val"].dtype is torch.bool
    if name in MULTIPLY:
        return one_is(lambda v: v == 0) & ~infinite, 0
    if name == "add" and len(knowns) > 1 and a.node.kwargs.get("alpha", 1) == 1:
        return one_is(lambda v: v == -np.inf) & ~positive, -np.inf
    if name in AND and boolean:
        return one_is(lambda v: v == 0), False
    if name in OR and boolean:
        return one_is(lambda v: v != 0), True
    return None, None


def is_infinite(known: Known) -> NDArray[np.bool_]:
    """The elements known to be infinite, or no number."""
    found: NDArray[np.bool_] = known.where(EXACT) & ~np.isfinite(known.value.astype(np.float64))
    return found
