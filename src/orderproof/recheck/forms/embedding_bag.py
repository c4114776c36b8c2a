"""Bags of embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from orderproof.recheck.algebra import FactAlgebra
from orderproof.recheck.binding import BoundCall
from orderproof.recheck.fact import IDENTITY, INDEPENDENT, INF, TOP, Fact
from orderproof.recheck.labelled import Combination, labelled_fact
from orderproof.recheck.reading import require


@dataclass(frozen=True)
class EmbeddingBag:
    """A product with a matrix that has a one for every index of a bag, and with the rows that are looked up."""

    bounds_include_literals: bool = False

    def derive(self, algebra: FactAlgebra, call: BoundCall, outputs: Sequence[Fact]) -> list[Fact]:
        """See `Form`."""
        out, *others = outputs
        table, offsets = call.fact("weight"), call.fact("offsets").constant_value
        require(offsets is not None, "its offsets are not known")
        assert offsets is not None
        looked_up = [replace(call.fact("indices"), dtype="float64", low=-np.ones(1), high=np.ones(1))]
        if isinstance(weights := call.arguments["per_sample_weights"], Fact):
            looked_up.append(weights)
        count = looked_up[0].shape[0]
        bounds = list(zip(offsets.tolist(), [*offsets.tolist()[1:], count], strict=True))
        last = offsets.tolist()[-1] if call.flag("include_last_offset") else count
        require(offsets[0] == 0 and last == count, "its bags leave indices out")
        require(all(start <= end for start, end in bounds), "its bags do not begin one after the other")
        bags = torch.zeros(out.shape[0], count, dtype=torch.float64)
        for bag, (start, end) in enumerate(bounds):
            if bag < len(bags):
                bags[bag, start:end] = 1
        membership = replace(algebra.constant(tuple(bags.shape), "float64", bags), is_constant=False)
        moved = replace(membership, moves=(out.moves[0], looked_up[0].moves[0]))
        permuted = not any(isinstance(move, str) for move in moved.moves)
        if permuted and algebra.is_invariant(moved, moved.moves).all():  # every bag is moved as a whole
            membership = moved
        operands = [(membership, "xy"), *((f, "y") for f in looked_up), (table, "wz")]
        fact = labelled_fact(algebra, out, operands, "xz", "wz", Combination(_product, "monotone"))
        high = 1 if all(f.is_ordinary.all() for f in (table, *looked_up)) else INF
        first = algebra.derived(fact, fact.dependence, -high, high)
        unmoved = all(isinstance(m, str) for f in call.facts for m in f.moves)
        total = max(int(f.dependence.max(initial=INDEPENDENT)) for f in call.facts) if unmoved else TOP
        results = [first]
        for claimed, inferred in zip(others, call.run_on_meta()[1:], strict=True):
            like = replace(claimed, moves=(IDENTITY,) * len(claimed.shape))
            empty = 0 in claimed.shape and 0 in inferred.shape
            bound = 1 if "int" in claimed.dtype else INF
            results.append(algebra.derived(like, INDEPENDENT if empty else total, -bound, bound))
        return results


def _product(*factors: torch.Tensor) -> torch.Tensor:
    result = factors[0]
    for factor in factors[1:]:
        result = result * factor
    return result
