"""Linear algebra, distances and places among boundaries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from orderproof.recheck.algebra import FactAlgebra
from orderproof.recheck.binding import BoundCall
from orderproof.recheck.fact import DIMENSION_LABELS, IDENTITY, INDEPENDENT, INF, TOP, Fact
from orderproof.recheck.labelled import labelled_fact


@dataclass(frozen=True)
class MatrixFunction:
    """Of each matrix of a batch by itself.

    `inner`: for each operand the number of its last dimensions that are one matrix or vector. `finite`: the results are
    ordinary where the operands are; otherwise nothing is known of their size.
    """

    inner: tuple[int, ...] = (2,)
    finite: bool = False
    right_side_may_be_vectors: bool = False
    bounds_include_literals: bool = False

    def derive(self, algebra: FactAlgebra, call: BoundCall, outputs: Sequence[Fact]) -> list[Fact]:
        """See `Form`."""
        facts = call.facts
        inner = list(self.inner)
        if self.right_side_may_be_vectors:
            matrix, right = facts[0].shape, facts[1].shape
            inner[1] = 1 if len(right) == 1 or right == matrix[:-1] else 2
        own_batch = [f.shape[: len(f.shape) - n] for f, n in zip(facts, inner, strict=True)]
        batch = np.broadcast_shapes(*own_batch)
        leading = DIMENSION_LABELS[: len(batch)]
        operands, letters = [], iter("abcdefghijklm")
        for f, n in zip(facts, inner, strict=True):
            labels = leading + "".join(next(letters) for _ in range(n))
            operands.append((f, labels[len(labels) - len(f.shape) :]))
        derived = []
        for out in outputs:
            if 0 in out.shape:
                derived.append(algebra.derived(out, INDEPENDENT))
                continue
            if out.shape[: len(batch)] != batch:
                like = Fact(out.shape, out.dtype, (IDENTITY,) * len(out.shape), out.dependence, out.low, out.high)
                derived.append(algebra.derived(like, TOP, -INF, INF))
                continue
            result = leading + "nopqrstuvwxyz"[: len(out.shape) - len(batch)]
            fact = labelled_fact(algebra, out, operands, result, "abcdefghijklmnopqrstuvwxyz")
            derived.append(fact if self.finite else algebra.derived(fact, fact.dependence, -INF, INF))
        return derived


@dataclass(frozen=True)
class Buckets:
    """The place of each number among boundaries: one row of them, or a row for each row of numbers."""

    bounds_include_literals: bool = False

    def derive(self, algebra: FactAlgebra, call: BoundCall, outputs: Sequence[Fact]) -> list[Fact]:
        """See `Form`."""
        edges = call.fact("boundaries" if "boundaries" in call.arguments else "sorted_sequence")
        rank = len(outputs[0].shape)
        labels = DIMENSION_LABELS[:rank]
        row = (labels[:-1] if len(edges.shape) > 1 else "") + "x"
        operands = [(edges, row)]
        for name, own in (("self", labels), ("sorter", row)):
            value = call.arguments.get(name)
            if isinstance(value, Fact):
                operands.append((value, own[len(own) - len(value.shape) :]))
        return [labelled_fact(algebra, outputs[0], operands, labels, by_position="x")]
