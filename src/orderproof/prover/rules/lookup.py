"""Lookups: a table read at an index follows the index.

Lemma (lookup_equivariant). Let C[e, :] = W[I[e], :] with W the same in both runs. If I'[m(e)] = I[e], then
C'[m(e), :] = C[e, :]. If the table moves too, nothing follows.
Proof. C'[m(e), :] = W[I'[m(e)], :] = W[I[e], :] = C[e, :]. Arithmetic: none; exact.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from orderproof.prover.fact import Fact, Levels
from orderproof.prover.labelled import Operand, align, common_moves, highest, refined, settle
from orderproof.prover.move import FREE, STILL, is_moved
from orderproof.prover.rule import Application, NothingFollows, dtype_of, rule, shape_of
from orderproof.prover.rules.movement import regroup, rename
from orderproof.prover.rules.pointwise import broadcast_labels
from orderproof.prover.rules.reindexing import reindex

LEMMA = "lookup_equivariant"


@rule(LEMMA, "embedding")
def embedding(a: Application) -> Fact:
    """Rows of a weight, by index."""
    table, index = a.fact(a.args[0]), refined(a, a.args[1])
    if not table.unmoved:
        raise NothingFollows("the rows of the table that is looked up move")
    level = np.maximum(index.level[..., None], table.level.max())
    return Fact(a.shape, (*index.moves, STILL), level)


@rule(LEMMA, "index.Tensor", "_unsafe_index.Tensor")
def index(a: Application) -> Fact:
    """Some dimensions read at index tensors."""
    fact, indices = a.fact(a.args[0]), list(a.args[1])
    places = [d for d, i in enumerate(indices) if i is not None]
    if any(dtype_of(indices[d]) in (torch.bool, torch.uint8) for d in places):
        raise NothingFollows("a boolean index takes a number of elements that depends on the data")
    if all(indices[d] in a.constants for d in places):
        made = _at_fixed(a, fact, indices, places)
        if made is not None:
            return made
    if any(is_moved(fact.moves[d]) for d in places):
        raise NothingFollows("a dimension whose elements move is read at indices that depend on place")
    return _read(a, fact, indices, places)


def _at_fixed(a: Application, fact: Fact, indices: list[Any], places: list[int]) -> Fact | None:
    """Neighbouring dimensions read at constant indices: as one dimension read at fixed places."""
    arrays = [a.constants.array(indices[d]) for d in places]
    first, count = places[0], len(places)
    if any(x is None for x in arrays) or places != list(range(first, first + count)):
        return None
    sizes = fact.shape[first : first + count]
    wanted = np.broadcast_arrays(*[x.astype(np.int64) % s for x, s in zip(arrays, sizes, strict=True)])
    source = np.ravel_multi_index(tuple(wanted), sizes).reshape(-1)
    before, after = fact.shape[:first], fact.shape[first + count :]
    try:
        merged = fact if count == 1 else regroup(fact, (*before, math.prod(sizes), *after))
        read = reindex([merged], first, source, (*before, len(source), *after))
        made = read if len(a.shape) == len(read.shape) else regroup(read, a.shape)
    except NothingFollows:
        return None
    for d in places:
        a.constants.consult(indices[d])
    return made


def _read(a: Application, fact: Fact, indices: list[Any], places: list[int]) -> Fact:
    """Unmoved dimensions read at index tensors, which lead the result (or stand where they were)."""
    shapes = [shape_of(indices[d]) for d in places]
    shape = np.broadcast_shapes(*shapes)
    rank = len(shape)
    operands = [
        Operand(a.fact(indices[d]), broadcast_labels(s, rank), indices[d], (1, d))
        for d, s in zip(places, shapes, strict=True)
    ]
    moves = common_moves(a, operands)
    order = [str(d) for d in range(rank)]
    level = highest([align(settle(a, o, moves), o.labels, order) for o in operands])  # type: ignore[misc]
    head = tuple(moves.get(x, STILL if shape[d] == 1 else FREE) for d, x in enumerate(order))
    rest = [d for d in range(len(fact.shape)) if d not in places]
    inner: Levels = fact.level.max(axis=tuple(places), keepdims=True)
    together = places == list(range(places[0], places[0] + len(places)))
    at = places[0] if together else 0
    kept = rename(Fact(inner.shape, (STILL,) * inner.ndim, inner), inner.shape, rest).level
    before = kept.reshape(kept.shape[:at] + (1,) * rank + kept.shape[at:])
    wide = level.reshape((1,) * at + level.shape + (1,) * (len(rest) - at))
    rest_moves = tuple(fact.moves[d] for d in rest)
    return Fact(a.shape, rest_moves[:at] + head + rest_moves[at:], np.maximum(before, wide))


@rule(LEMMA, "index_select")
def index_select(a: Application) -> Fact:
    """One dimension read at the entries of one index tensor."""
    fact = a.fact(a.args[0])
    if not fact.shape or not shape_of(a.args[2]):
        raise NothingFollows("index_select of, or with, a single number has no lemma")
    dim = int(a.args[1]) % len(fact.shape)
    places = [*(None for _ in range(dim)), a.args[2]]
    made = _at_fixed(a, fact, places, [dim]) if a.args[2] in a.constants else None
    if made is not None:
        return made
    if is_moved(fact.moves[dim]):
        raise NothingFollows("a dimension whose elements move is read at indices that depend on place")
    return _read(a, fact, places, [dim])


@rule(LEMMA, "gather")
def gather(a: Application) -> Fact:
    """One dimension read at an index for every element."""
    fact, index = a.fact(a.args[0]), a.fact(a.args[2])
    rank = len(fact.shape)
    dim = int(a.args[1]) % rank
    if is_moved(fact.moves[dim]):
        raise NothingFollows("a dimension whose elements move is read at indices that depend on place")
    if any(index.shape[d] != fact.shape[d] for d in range(rank) if d != dim):
        raise NothingFollows("gather with an index shorter than its source has no lemma")
    source = Operand(fact, tuple(str(d) if d != dim and s > 1 else "" for d, s in enumerate(fact.shape)), a.args[0], 0)
    where = Operand(index, tuple(str(d) if s > 1 else "" for d, s in enumerate(index.shape)), a.args[2], 2)
    both = [source, where]
    moves = common_moves(a, both)
    moves.setdefault(str(dim), STILL)
    first, second = settle(a, source, moves), settle(a, where, moves)
    level = np.maximum(first.max(axis=dim, keepdims=True), second)
    return Fact(a.shape, tuple(moves.get(str(d), STILL) for d in range(rank)), level)
