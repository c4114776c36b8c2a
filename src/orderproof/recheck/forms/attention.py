"""Scaled dot-product attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from orderproof.recheck.algebra import FactAlgebra
from orderproof.recheck.binding import BoundCall, Substitution
from orderproof.recheck.fact import DIMENSION_LABELS, IDENTITY, INF, ORDINARY_LIMIT, Fact
from orderproof.recheck.forms.elementwise import visible_scores
from orderproof.recheck.forms.movement import movement_facts
from orderproof.recheck.forms.softmax import Softmax
from orderproof.recheck.labelled import Combination, elementwise_fact, labelled_fact
from orderproof.recheck.reading import require

PRODUCT, SUM = Combination(torch.mul, "monotone"), Combination(torch.add, "monotone")


@dataclass(frozen=True)
class Attention:
    """softmax(Q K^T + masks) V: a contraction, a sum, a safe softmax, a contraction."""

    bounds_include_literals: bool = False

    def derive(self, algebra: FactAlgebra, call: BoundCall, outputs: Sequence[Fact]) -> list[Fact]:
        """See `Form`."""
        (out,), rank = outputs, len(outputs[0].shape)
        query, key, value = (call.fact(name) for name in ("query", "key", "value"))
        scale = call.arguments["scale"] or 0
        require(isinstance(scale, int | float) and abs(scale) < ORDINARY_LIMIT, "its scale is no ordinary number")
        require(len(query.shape) == len(key.shape) == len(value.shape) == rank, "its operands differ in rank")
        if call.flag("enable_gqa"):
            key, value = (_repeat_heads(algebra, f, query) for f in (key, value))

        batch = DIMENSION_LABELS[: rank - 2]
        leading = np.broadcast_shapes(query.shape[:-2], key.shape[:-2])
        scores_type = replace(query, shape=(*leading, query.shape[-2], key.shape[-2]))
        scores = labelled_fact(
            algebra, scores_type, [(query, batch + "xz"), (key, batch + "yz")], batch + "xy", combination=PRODUCT
        )
        for mask in self._masks(algebra, call, scores_type.shape):
            scores = elementwise_fact(algebra, scores_type, SUM, scores, _as_scores(algebra, query, mask))
        weights = Softmax(safe=True).of_scores(algebra, scores, (rank - 1,), scores_type)
        return [
            labelled_fact(
                algebra, out, [(weights, batch + "xy"), (value, batch + "yz")], batch + "xz", combination=PRODUCT
            )
        ]

    def _masks(self, algebra: FactAlgebra, call: BoundCall, shape: tuple[int, ...]) -> list[Fact]:
        masks = []
        if call.flag("is_causal"):
            visible = torch.ones(shape[-2:], dtype=torch.bool).tril()
            masks.append(algebra.constant(tuple(visible.shape), "bool", visible))
        if call.arguments["attn_mask"] is not None:
            masks.append(call.fact("attn_mask"))
        return masks


def _as_scores(algebra: FactAlgebra, query: Fact, mask: Fact) -> Fact:
    """The fact about a mask as scores to add. A mask that may vary and has no known values may hide anything."""
    if mask.dtype == "bool":
        return visible_scores(algebra, replace(query, shape=mask.shape), mask)
    unknown = bool(((mask.low == -1) & (mask.high == 1)).all()) and not mask.is_constant
    return replace(mask, low=np.where(unknown, -INF, mask.low), high=np.where(unknown, INF, mask.high))


def _repeat_heads(algebra: FactAlgebra, f: Fact, query: Fact) -> Fact:
    """Keys or values of which each head serves several heads of queries."""
    times = query.shape[-3] // f.shape[-3]
    repeated = replace(
        f, shape=(*f.shape[:-3], query.shape[-3], *f.shape[-2:]), moves=(*f.moves[:-3], IDENTITY, *f.moves[-2:])
    )

    def run(substitute: Substitution) -> list[torch.Tensor]:
        numbers = substitute(f)
        assert numbers is not None
        return [numbers.repeat_interleave(times, -3)]

    (result,) = movement_facts(algebra, [f], [repeated], run)
    return result
