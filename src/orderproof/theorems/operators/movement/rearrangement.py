"""Operators that reorder dimensions, and add, leave out or repeat those of size one.

Lemma. Each element is one of the operand: the same indices, of some dimensions in another order.
  1. It agrees in both runs where the element of the operand does.
  2. A dimension moves as the one that it comes from does. A new one is the same for every index.

Machine-checked (proofs/rules/movement_lemma.v): fact_moved, movement_equivariant.
Not machine-checked: the arithmetic of positions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from orderproof.theorems.facts.moved_fact import Motion, MovedFact, uniform
from orderproof.theorems.facts.open_fact import OpenFact, dims_of
from orderproof.theorems.facts.reindexing import From, rearranged
from orderproof.theorems.walks.moved_operation import MovedOperation
from orderproof.theorems.walks.open_operation import OpenOperation
from orderproof.theorems.walks.operation import Operation
from orderproof.theorems.walks.operator_rules import operators

Plan = list[int | None]  # for each dimension of the result that of the operand; None for a new one


def _reversed(call: Operation[Any]) -> Plan:
    return list(reversed(range(call.rank)))


def _exchanged(call: Operation[Any]) -> Plan:
    order: Plan = list(range(call.rank))
    if call.rank > 1:
        a, b = call.dim(1, "dim0", -2), call.dim(2, "dim1", -1)
        order[a], order[b] = b, a
    return order


def _permuted(call: Operation[Any]) -> Plan:
    return [int(d) % call.rank for d in call.argument(1, "dims")]


def _moved_to(call: Operation[Any]) -> Plan:
    """Some dimensions at other places."""
    source, target = call.argument(1, "source"), call.argument(2, "destination")
    pairs = zip(*([x] if isinstance(x, int) else list(x) for x in (source, target)), strict=True)
    placed = {t % call.rank: s % call.rank for s, t in pairs}
    rest = iter(d for d in range(call.rank) if d not in placed.values())
    return [placed[d] if d in placed else next(rest) for d in range(call.rank)]


def _with_new(call: Operation[Any]) -> Plan:
    place = call.dim(1, rank=call.rank + 1)
    return [*range(place), None, *range(place, call.rank)]


def _without_ones(call: Operation[Any]) -> Plan:
    chosen = call.dims(call.argument(1, "dim"))
    return [d for d, axes in enumerate(call.operand.dims) if axes or d not in chosen]


def _repeated(call: Operation[Any]) -> Plan:
    """Dimensions of size one repeated."""
    dims, new = call.operand.dims, len(call.shape) - call.rank
    return [*[None] * new, *(d if axes else None for d, axes in enumerate(dims))]


PLANS: dict[str, Callable[[Operation[Any]], Plan]] = {
    "numpy_T": _reversed, "permute": _permuted, "unsqueeze": _with_new, "squeeze": _without_ones,
    **dict.fromkeys(("transpose", "swapaxes", "swapdims", "t", "mT", "adjoint"), _exchanged),
    **dict.fromkeys(("movedim", "moveaxis"), _moved_to),
    **dict.fromkeys(("expand", "broadcast_to", "expand_as"), _repeated),
}  # fmt: skip
REARRANGEMENT = operators(*PLANS)


@REARRANGEMENT.open
def rearrange(call: OpenOperation) -> OpenFact:
    """Dimensions of the operand in another order, and new ones."""
    fact, new = call.operand, dims_of(call.shape)
    plan = PLANS[call.name](call)
    return rearranged(fact, [From(new[k]) if d is None else From(fact.dims[d], d) for k, d in enumerate(plan)])


@REARRANGEMENT.moved
def moved_rearrange(call: MovedOperation) -> MovedFact:
    """Dimensions of the operand in another order, and new ones that are the same for every index."""
    dims, new = call.operand.dims, uniform(call.shape, Motion.FREE).dims
    return MovedFact(tuple(new[k] if d is None else dims[d] for k, d in enumerate(PLANS[call.name](call))))
