"""Writes at indices: each row of the result depends on the rows of the tensor, the indices and the source.

Lemma (dense_dependence), for writes: see slicewise.py. C = A, and C[.., I[.., j], ..] = B[.., j, ..] for every j of a
row. The written dimension, the indices j and the source's dimension are read by position. Two further cases:
  4. A copy: every element of C is an element of A or B, so it is between the least and the greatest of them.
  5. A number v written at indices that certainly contain position e (scan_dependence, case 4): C[e] = v in both runs.
  6. At constant positions of one dimension, no two of them equal, every element is that of A or of B which is there:
     as for slice_scatter (reindexing.py).
Proof. As there; 6: movement_equivariant; 4 and 5: C[e] is A[e], or the last element written at e.
Arithmetic: exact; index_add and scatter_add over the reals.
Machine-checked (proofs/rules/scatter_lemma.v): write_dependence, write_is_a_copy, write_covers.
Machine-checked (proofs/rules/slicewise_lemma.v): dense_dependence.
Machine-checked (proofs/rules/movement_lemma.v): concatenation_fact.
Not machine-checked: which of several values written at one place torch keeps.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch.fx import Node

from orderproof.diagnosis.domain.fact import Fact, IndexCoverage, fact_with_ranges, with_ranges
from orderproof.diagnosis.domain.move import FREE
from orderproof.diagnosis.domain.values import ValueRanges, rounded
from orderproof.diagnosis.operands import labelled_operand, with_constant_values
from orderproof.diagnosis.rule import OperatorCall, RuleNotApplicable, dtype_of, rule, shape_of
from orderproof.diagnosis.rules.movement import permute_dims
from orderproof.diagnosis.rules.reindexing import reindex
from orderproof.diagnosis.rules.slicewise import LEMMA, dependence_on_slices


@rule(LEMMA, "scatter", "scatter_add", "scatter_reduce")
def scatter(call: OperatorCall) -> Fact:
    """C = A, and C[.., I[.., j], ..] = B[.., j, ..] (or a number) for every j of each row."""
    fact, index = call.fact(call.args[0]), call.args[2]
    rank, dim, source = len(fact.shape), int(call.args[1]), call.argument(3, "src")
    dim %= max(rank, 1)
    written = [index, *([source] if isinstance(source, Node) else [])]
    if any(shape_of(n)[d] != fact.shape[d] for n in written for d in range(rank) if d != dim):
        raise RuleNotApplicable("a write at indices that do not cover every row has no lemma")
    labels = [str(d) for d in range(rank)]
    row = [x if d != dim else "row" for d, x in enumerate(labels)]
    operands = [labelled_operand(call, call.args[0], labels, 0), labelled_operand(call, index, row, 2)]
    if isinstance(source, Node):
        operands.append(labelled_operand(call, source, [x if d != dim else "source" for d, x in enumerate(labels)], 3))
    result = dependence_on_slices(call, operands, tuple(labels), call.shape, {str(dim), "row", "source"})
    if call.target in ("aten.scatter.value", "aten.scatter.src"):
        result = _with_ranges_of_copy(call, result, source)
    if call.target == "aten.scatter.value":
        result = _with_covered_writes(result, call.fact(index).index_coverage, dim, source)
    return result


def _with_ranges_of_copy(call: OperatorCall, result: Fact, source: Node | float) -> Fact:
    """Case 4: every element is within the ranges of all elements of the operands."""
    if result.ranges is None:
        return result
    rank = len(result.shape)
    parts = [with_constant_values(call, n).ranges for n in (call.args[0], source) if isinstance(n, Node)]
    ranges = [r or ValueRanges.ordinary(rank) for r in parts]
    if not isinstance(source, Node):
        ranges.append(ValueRanges.of_constant(np.asarray(source)))
    ends = np.min([r.low.min() for r in ranges]), np.max([r.high.max() for r in ranges])
    low, high = (np.full((1,) * rank, float(end)) for end in ends)
    return with_ranges(result, rounded(low, high, dtype_of(call.node)))


def _with_covered_writes(result: Fact, coverage: IndexCoverage | None, dim: int, number: float) -> Fact:
    """Case 5: the number, at positions that the indices certainly contain."""
    if coverage is None or coverage.dim != dim or coverage.covered.shape[dim] != result.shape[dim]:
        return result  # the indices are of rows of another length
    ranges = (result.ranges or ValueRanges.ordinary(len(result.shape))).with_exact(coverage.covered, number)
    return fact_with_ranges(result.shape, result.moves, result.dependence, ranges)


def _written_at_constants(call: OperatorCall, dim: int, index: Node, source: Node) -> Fact | None:
    """Case 6: one dimension written at constant positions, no two of them equal; None if the case does not apply."""
    array = call.constants.array(index) if index in call.constants else None
    fact, new = call.fact(call.args[0]), with_constant_values(call, source)
    if array is None or array.ndim != 1 or not fact.shape or len(new.shape) > len(fact.shape) or 0 in new.shape:
        return None
    size, rank = fact.shape[dim], len(fact.shape)
    positions = array.astype(np.int64) % size
    if len(np.unique(positions)) != len(positions):
        return None  # which of several elements stays is not determined
    added = rank - len(new.shape)
    new = permute_dims(new, (1,) * added + new.shape, [None] * added + list(range(len(new.shape))))
    places = np.arange(size)
    places[positions] = size + (np.arange(len(positions)) if new.shape[dim] > 1 else 0)
    # Only dimensions along which both move in the same way can be joined; reindex refuses the others.
    moves = [FREE if n == 1 and d != dim else m for d, (n, m) in enumerate(zip(new.shape, new.moves, strict=True))]
    try:
        result = reindex(
            [with_constant_values(call, call.args[0]), replace(new, moves=tuple(moves))], dim, places, fact.shape
        )
    except RuleNotApplicable:
        return None
    call.constants.mark_used(index)
    return result


@rule(LEMMA, "index_add", "index_copy", "index_fill")
def index_add(call: OperatorCall) -> Fact:
    """C = A, and C[.., I[j], ..] written over, or added to, for every j."""
    fact, index, source = call.fact(call.args[0]), call.args[2], call.args[3]
    rank, dim = len(fact.shape), int(call.args[1])
    dim %= max(rank, 1)
    if "index_copy" in call.target and len(shape_of(source)) == rank:
        result = _written_at_constants(call, dim, index, source)
        if result is not None:
            return result
    labels = [str(d) for d in range(rank)]
    operands = [
        labelled_operand(call, call.args[0], labels, 0),
        labelled_operand(call, index, ["row"] * len(shape_of(index)), 2),
    ]
    if isinstance(source, Node):
        same = len(shape_of(source)) == rank
        if not same and shape_of(source):
            raise RuleNotApplicable("a write of a tensor of another rank has no lemma")
        along = [x if d != dim else "source" for d, x in enumerate(labels)] if same else []
        operands.append(labelled_operand(call, source, along, 3))
    return dependence_on_slices(call, operands, tuple(labels), call.shape, {str(dim), "row", "source"})


@rule(LEMMA, "index_put", "_index_put_impl", "_unsafe_index_put")
def index_put(call: OperatorCall) -> Fact:
    """C = A, and C[.., I[j], J[j], ..] = B[j, ..] for every j, at indices that may depend on the input."""
    fact, indices, values = call.fact(call.args[0]), list(call.args[1]), call.args[2]
    rank = len(fact.shape)
    labels = [str(d) for d in range(rank)]
    indexed = [d for d, i in enumerate(indices) if i is not None]
    if any(dtype_of(indices[d]) in (torch.bool, torch.uint8) for d in indexed):
        return _masked_put(call, labels, indices, indexed, values)
    if len(indexed) == 1 and not call.argument(3, "accumulate", False):
        result = _written_at_constants(call, indexed[0], indices[indexed[0]], values)
        if result is not None:
            return result
    row_rank = max((len(shape_of(indices[d])) for d in indexed), default=0)
    first = indexed[0] if indexed and indexed == list(range(indexed[0], indexed[0] + len(indexed))) else 0
    rest = [x for d, x in enumerate(labels) if d not in indexed]
    row = [f"row {d}" for d in range(row_rank)]
    source_labels = [*rest[:first], *row, *rest[first:]]
    operands = [labelled_operand(call, call.args[0], labels, 0)]
    operands += [
        labelled_operand(call, indices[d], row[row_rank - len(shape_of(indices[d])) :], (1, d)) for d in indexed
    ]
    operands.append(labelled_operand(call, values, source_labels[len(source_labels) - len(shape_of(values)) :], 2))
    return dependence_on_slices(call, operands, tuple(labels), call.shape, {*row, *(str(d) for d in indexed)})


def _masked_put(call: OperatorCall, labels: list[str], indices: list[Any], indexed: list[int], values: Node) -> Fact:
    """A number written wherever a mask is True."""
    if len(indexed) != 1 or any(s != 1 for s in shape_of(values)):
        raise RuleNotApplicable("a boolean index takes a number of elements that depends on the data")
    d, mask = indexed[0], indices[indexed[0]]
    operands = [
        labelled_operand(call, call.args[0], labels, 0),
        labelled_operand(call, mask, labels[d : d + len(shape_of(mask))], (1, d)),
    ]
    operands.append(labelled_operand(call, values, [""] * len(shape_of(values)), 2))
    return dependence_on_slices(call, operands, tuple(labels), call.shape, ())
