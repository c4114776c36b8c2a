"""Operators that choose elements by integer indices: embedding, indexing, gather, scatter.

Machine-checked (proofs/symbolic/moved_axes.v): moved_lookup.
Machine-checked (proofs/rules/lookup_lemma.v): lookup_equivariant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.fx import Node

from orderproof.theorems.facts.moved_fact import Dim, Motion, MovedFact, size, still
from orderproof.theorems.facts.open_fact import NotCovered
from orderproof.theorems.walks.moved_operation import Labels, MovedOperation, moved_rule, tensors

_BY_INDEX = "a token is chosen by its index"


@moved_rule("embedding")
def embedding(call: MovedOperation) -> MovedFact:
    """Rows of a table."""
    return _indexed(call, call.operand, {0: call.fact(call.node.args[1])})


@moved_rule("index", "_unsafe_index")
def index(call: MovedOperation) -> MovedFact:
    """Elements at indices given for some dimensions."""
    given: Sequence[Any] = call.argument(1, "indices")
    if any(x.meta["val"].dtype is torch.bool for x in tensors(given)):
        raise NotCovered("elements are chosen by a mask")
    return _indexed(call, call.operand, {d: call.fact(x) for d, x in enumerate(given) if isinstance(x, Node)})


@moved_rule("index_select")
def index_select(call: MovedOperation) -> MovedFact:
    """Elements at the indices of a vector."""
    return _indexed(call, call.operand, {call.dim(1): call.fact(call.argument(2, "index"))})


def _chosen_from(dim: Dim, places: MovedFact) -> MovedFact:
    """The fact about indices into a dimension: where all its elements are the same, the indices do not matter."""
    if any(axis.motion is not Motion.FREE for axis in dim):
        return places
    return MovedFact(tuple(tuple(replace(axis, motion=Motion.FREE, before=0) for axis in own) for own in places.dims))


def _indexed(call: MovedOperation, fact: MovedFact, chosen: dict[int, MovedFact]) -> MovedFact:
    """The fact about `fact[indices]`: the indices choose along dimensions that do not move."""
    for dim in chosen:
        still(fact.dims[dim], _BY_INDEX)
    chosen = {dim: _chosen_from(fact.dims[dim], places) for dim, places in chosen.items()}
    rank = max(len(one.dims) for one in chosen.values())
    new = [f"index {k}" for k in range(rank)]
    dims = sorted(chosen)
    place = dims[0] if dims == list(range(dims[0], dims[-1] + 1)) else 0
    kept = [d for d in range(len(fact.dims)) if d not in chosen]
    result = [*[d for d in kept if d < place], *new, *[d for d in kept if d >= place]]
    whole = [f"chosen {d}" if d in chosen else d for d in range(len(fact.dims))]
    operands: list[tuple[MovedFact, Labels]] = [(fact, whole)]
    operands += [(one, new[rank - len(one.dims) :]) for one in chosen.values()]
    return call.combined(operands, result)


@moved_rule("gather", "take_along_dim")
def gather(call: MovedOperation) -> MovedFact:
    """Elements along one dimension, at an index for each element of the result."""
    dim = int(call.argument(1, "dim")) % max(call.rank, 1)
    fact, places = call.operand, call.fact(call.argument(2, "index"))
    own = fact.dims[dim] if fact.dims else ()
    still(own, _BY_INDEX)
    places = _chosen_from(own, places)
    return _slices(call, [fact.with_dim(dim, ()), places], dim)


@moved_rule("scatter", "scatter_add", "scatter_reduce")
def scatter(call: MovedOperation) -> MovedFact:
    """Elements along one dimension replaced, at an index for each."""
    dim = int(call.argument(1, "dim")) % max(call.rank, 1)
    facts = [call.fact(x) for x in (call.node.args[0], *call.node.args[2:4]) if isinstance(x, Node)]
    own = still(facts[0].dims[dim], _BY_INDEX)
    for fact in facts[1:]:
        still(fact.dims[dim], _BY_INDEX)
    return _slices(call, [fact.with_dim(dim, ()) for fact in facts], dim).with_dim(dim, own)


def _slices(call: MovedOperation, facts: Sequence[MovedFact], along: int) -> MovedFact:
    """Slices along a dimension, at the same indices of several tensors: the other dimensions have the same sizes."""
    for fact in facts[1:]:
        for d, (one, other) in enumerate(zip(facts[0].dims, fact.dims, strict=True)):
            if d != along and not call.context.equal_sizes(size(one), size(other)):
                raise NotCovered("a part of a dimension is read")
    return call.broadcast(facts)
