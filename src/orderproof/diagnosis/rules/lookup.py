"""A table read at an index follows the index.

Lemma (lookup_equivariant). Let C[e, :] = W[I[e], :] with W the same in both runs. If I'[m(e)] = I[e], then
C'[m(e), :] = C[e, :]. If the table moves too, C is not determined. Read at several indices, some of them constant,
C[e] = A[c[e], I[e]] depends on what I[e] and any A[c[e], :] depend on: x[arange, argmax] takes each row from itself.
Proof. C'[m(e), :] = W[I'[m(e)], :] = W[I[e], :] = C[e, :]. Arithmetic: none; exact.
Machine-checked (proofs/rules/lookup_lemma.v): lookup_equivariant, lookup_not_determined.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from orderproof.diagnosis.domain.axis_labels import align_to_labels, broadcast_labels, join
from orderproof.diagnosis.domain.fact import DependenceArray, Fact, compress
from orderproof.diagnosis.domain.move import FREE, STILL, is_permuted
from orderproof.diagnosis.operands import (
    Operand,
    common_moves,
    dependence_under_moves,
    labelled_operand,
    with_uniform_axes_of_constant,
)
from orderproof.diagnosis.rule import OperatorCall, RuleNotApplicable, dtype_of, rule, shape_of
from orderproof.diagnosis.rules.movement import reshape_fact
from orderproof.diagnosis.rules.reindexing import reindex

LEMMA = "lookup_equivariant"


@rule(LEMMA, "embedding")
def embedding(call: OperatorCall) -> Fact:
    """Rows of a weight, by index."""
    table, index = call.fact(call.args[0]), with_uniform_axes_of_constant(call, call.args[1])
    if not table.has_no_moves:
        raise RuleNotApplicable("the rows of the embedding table move")
    dependence = np.maximum(index.dependence[..., None], table.dependence.max())
    return Fact(call.shape, (*index.moves, STILL), dependence)


@rule(LEMMA, "index.Tensor", "_unsafe_index.Tensor")
def index(call: OperatorCall) -> Fact:
    """Some dimensions read at index tensors."""
    fact, indices = call.fact(call.args[0]), list(call.args[1])
    indexed = [d for d, i in enumerate(indices) if i is not None]
    if any(dtype_of(indices[d]) in (torch.bool, torch.uint8) for d in indexed):
        raise RuleNotApplicable("a boolean index takes a number of elements that depends on the data")
    if all(indices[d] in call.constants for d in indexed):
        result = _read_at_constants(call, fact, indices, indexed)
        if result is not None:
            return result
    if any(is_permuted(fact.moves[d]) for d in indexed):
        raise RuleNotApplicable("a dimension whose elements move is read at indices that depend on position")
    return _read_at_indices(call, fact, indices, indexed)


def _read_at_constants(call: OperatorCall, fact: Fact, indices: list[Any], indexed: list[int]) -> Fact | None:
    """Neighbouring dimensions read at constant indices: as one dimension read at fixed indexed."""
    arrays = [call.constants.array(indices[d]) for d in indexed]
    first, count = indexed[0], len(indexed)
    if any(x is None for x in arrays) or indexed != list(range(first, first + count)):
        return None
    sizes = fact.shape[first : first + count]
    wanted = np.broadcast_arrays(*[x.astype(np.int64) % s for x, s in zip(arrays, sizes, strict=True)])
    source = np.ravel_multi_index(tuple(wanted), sizes).reshape(-1)
    before, after = fact.shape[:first], fact.shape[first + count :]
    try:
        merged = fact if count == 1 else reshape_fact(fact, (*before, math.prod(sizes), *after))
        read = reindex([merged], first, source, (*before, len(source), *after))
        result = read if len(call.shape) == len(read.shape) else reshape_fact(read, call.shape)
    except RuleNotApplicable:
        return None
    for d in indexed:
        call.constants.mark_used(indices[d])
    return result


def _read_at_indices(call: OperatorCall, fact: Fact, indices: list[Any], indexed: list[int]) -> Fact:
    """Unmoved dimensions read at index tensors; the index dimensions come first, or replace adjacent dimensions."""
    shapes = [shape_of(indices[d]) for d in indexed]
    shape = np.broadcast_shapes(*shapes)
    rank = len(shape)
    operands = [
        Operand(call.fact(indices[d]), broadcast_labels(s, rank), indices[d], (1, d))
        for d, s in zip(indexed, shapes, strict=True)
    ]
    moves = common_moves(call, operands)
    order = [str(d) for d in range(rank)]
    dependence = join([align_to_labels(dependence_under_moves(call, o, moves), o.labels, order) for o in operands])  # type: ignore[misc]
    head = tuple(moves.get(x, STILL if shape[d] == 1 else FREE) for d, x in enumerate(order))
    rest = [d for d in range(len(fact.shape)) if d not in indexed]
    adjacent = indexed == list(range(indexed[0], indexed[0] + len(indexed)))
    at = indexed[0] if adjacent else 0
    before = _dependence_of_read(call, fact, indices, indexed, rank)
    after = dependence.reshape((1,) * at + dependence.shape + (1,) * (len(rest) - at))
    rest_moves = tuple(fact.moves[d] for d in rest)
    return Fact(call.shape, rest_moves[:at] + head + rest_moves[at:], np.maximum(before, after))


def _dependence_of_read(
    call: OperatorCall, fact: Fact, indices: list[Any], indexed: list[int], rank: int
) -> DependenceArray:
    """The dependence of what is read: at a constant index of that entry, at another one of every entry it may read."""
    places: list[Any] = [slice(None)] * len(fact.shape)
    unknown = []
    for d in indexed:
        places[d] = np.zeros((1,) * rank, dtype=np.int64)
        array = None
        if fact.dependence.shape[d] > 1:
            array = call.constants.array(indices[d]) if indices[d] in call.constants else None
            if array is None:
                unknown.append(d)
        if array is not None:
            call.constants.mark_used(indices[d])
            places[d] = (array.astype(np.int64) % fact.shape[d]).reshape((1,) * (rank - array.ndim) + array.shape)
    found: DependenceArray = fact.dependence.max(axis=tuple(unknown), keepdims=True)[tuple(places)]
    return found


@rule(LEMMA, "index_select")
def index_select(call: OperatorCall) -> Fact:
    """One dimension read at the entries of one index tensor."""
    fact = call.fact(call.args[0])
    if not fact.shape or not shape_of(call.args[2]):
        raise RuleNotApplicable("index_select of, or with, a single number has no lemma")
    dim = int(call.args[1]) % len(fact.shape)
    indexed = [*(None for _ in range(dim)), call.args[2]]
    result = _read_at_constants(call, fact, indexed, [dim]) if call.args[2] in call.constants else None
    if result is not None:
        return result
    if is_permuted(fact.moves[dim]):
        raise RuleNotApplicable("a dimension whose elements move is read at indices that depend on position")
    return _read_at_indices(call, fact, indexed, [dim])


@rule(LEMMA, "gather")
def gather(call: OperatorCall) -> Fact:
    """One dimension read at an index for every element."""
    fact, index = call.fact(call.args[0]), call.fact(call.args[2])
    rank = len(fact.shape)
    dim = int(call.args[1]) % rank
    if is_permuted(fact.moves[dim]):
        raise RuleNotApplicable("a dimension whose elements move is read at indices that depend on position")
    if any(index.shape[d] != fact.shape[d] for d in range(rank) if d != dim):
        raise RuleNotApplicable("gather with an index shorter than its source has no lemma")
    labels = [str(d) for d in range(rank)]
    source = labelled_operand(call, call.args[0], [x if d != dim else "" for d, x in enumerate(labels)], 0)
    positions = labelled_operand(call, call.args[2], labels, 2)
    moves = common_moves(call, [source, positions])
    moves.setdefault(str(dim), STILL)
    first, second = dependence_under_moves(call, source, moves), dependence_under_moves(call, positions, moves)
    dependence = np.maximum(_gathered(call, first, dim), second)
    return Fact(call.shape, tuple(moves.get(str(d), STILL) for d in range(rank)), dependence)


def _gathered(call: OperatorCall, dependence: DependenceArray, dim: int) -> DependenceArray:
    """The dependence of the entries that a gather reads; of all of them where its index is not constant."""
    index = call.args[2]
    array = call.constants.array(index) if dependence.shape[dim] > 1 and index in call.constants else None
    read: DependenceArray = dependence.max(axis=dim, keepdims=True)
    if array is not None:
        call.constants.mark_used(index)
        places = compress(array.astype(np.int64) % dependence.shape[dim])
        read = np.take_along_axis(dependence, places, dim)
    return read
