"""Scaled dot-product attention: softmax(Q K^T + mask) V.

Lemma. The weights of a query depend on its scores alone (softmax), and its result on the weights and the values.
  1. An element of the result agrees in both runs where each product of a weight and a value does: where both agree, or
     the weight is zero in both.
  2. Keys and values that move by the same permutation leave the result as it is, and queries move it: a sum over keys
     has the same terms in another order. A causal flag compares the indices of tokens: nothing follows.

Machine-checked (proofs/symbolic/steps.v): contraction_step.
Machine-checked (proofs/symbolic/hidden_scores.v): softmax_step.
Machine-checked (proofs/symbolic/moved_axes.v): sum_over_moved_axis, scores_of_moved_tokens.
Not machine-checked: the shapes of grouped heads, and that what a mask of booleans excludes has weight zero, also in a
row from which it excludes everything.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch.fx import Node

from orderproof.logic.terms import FALSE, Formula, as_term, at_most, floor_division
from orderproof.number_limits import finite_scores_assumption
from orderproof.theorems.facts.frame import Labels, frame
from orderproof.theorems.facts.moved_fact import MovedFact, size, still
from orderproof.theorems.facts.numbers import beyond_ordinary
from orderproof.theorems.facts.open_fact import NotCovered, OpenFact, size_of
from orderproof.theorems.facts.reindexing import index_along, reindexed, with_axes, with_single_axis
from orderproof.theorems.operators.contraction.products import contraction
from orderproof.theorems.operators.pointwise.value_ranges import sum_ranges
from orderproof.theorems.operators.softmax.softmax import softmax_fact
from orderproof.theorems.walks.moved_operation import MovedOperation
from orderproof.theorems.walks.open_operation import OpenOperation
from orderproof.theorems.walks.operator_rules import operators

ATTENTION = operators("scaled_dot_product_attention")


@ATTENTION.open
def attention(call: OpenOperation) -> OpenFact:
    """Attention of queries [..., query, width] to keys and values [..., key, width]."""
    query, key, value = (call.fact(x) for x in call.node.args[:3])
    mask, causal = call.argument(3, "attn_mask"), call.argument(5, "is_causal", False)
    if call.argument(4, "dropout_p", 0.0) != 0.0:
        raise NotCovered("attention with dropout")
    if beyond_ordinary(call.node.kwargs.get("scale")) is not FALSE:
        raise NotCovered("scores are scaled by a number as large as a mask")
    rank = len(query.dims)
    if not rank == len(key.dims) == len(value.dims):
        raise NotCovered("queries, keys and values with another number of dimensions")
    outer = [f"batch {d}" for d in range(rank - 2)]
    if call.node.kwargs.get("enable_gqa") and len(outer) > 0:
        key, value = _with_repeated_heads(query, key), _with_repeated_heads(query, value)
    scores = contraction(
        call, [(query, [*outer, "row", "width"]), (key, [*outer, "column", "width"])], [*outer, "row", "column"]
    )
    if causal:
        scores = _below_diagonal(call, scores)
    weights = None
    if isinstance(mask, Node):
        known = call.fact(mask)
        if known.dtype is torch.bool and known.value is None:
            weights = _weights_under_unknown_mask(call, scores, known)
        else:
            scores = _masked(call, scores, known)
    if weights is None:
        weights = softmax_fact(call, scores, rank - 1)
    return contraction(
        call, [(weights, [*outer, "row", "column"]), (value, [*outer, "column", "out"])], [*outer, "row", "out"]
    )


def _with_repeated_heads(query: OpenFact, fact: OpenFact) -> OpenFact:
    """Keys or values with each head as often as queries share it."""
    dim = len(fact.dims) - 3
    heads, own = size_of(query.dims[dim]), size_of(fact.dims[dim])
    if heads is own:
        return fact
    if not heads.is_constant or not own.is_constant or heads.constant % own.constant:
        raise NotCovered("the heads of keys differ from one another")
    if not fact.uses(dim):
        return with_axes(fact, dim, query.dims[dim])
    fact = with_single_axis(fact, dim)
    shared = heads.constant // own.constant  # query heads for each head of keys
    return reindexed(fact, dim, heads, floor_division(index_along(fact, dim, heads), shared))


def _below_diagonal(call: OpenOperation, scores: OpenFact) -> OpenFact:
    """Scores with the entries above the diagonal hidden."""
    rank = len(scores.dims)
    row, column = scores.indices(rank - 2), scores.indices(rank - 1)
    if len(row) > 1 or len(column) > 1:
        raise NotCovered("the rows of a causal attention are merged")
    later = ~at_most(column[0] if column else as_term(0), row[0] if row else as_term(0))
    return replace(scores, hidden=scores.hidden | later, same=scores.same | later, unbounded=scores.unbounded & ~later)


def _masked(call: OpenOperation, scores: OpenFact, mask: OpenFact) -> OpenFact:
    """Scores plus a mask of numbers, or hidden where a mask of booleans is false."""
    rank = len(scores.dims)
    own = range(rank - len(mask.dims), rank)
    common = frame([(scores, range(rank)), (mask, own)], range(rank))
    a, b = common.place(scores, range(rank)), common.place(mask, own)
    if isinstance(b.value, Formula):
        hidden = ~b.value
        return replace(a, hidden=a.hidden | hidden, same=a.same | hidden, unbounded=a.unbounded & ~hidden)
    ranges = b.ranges()
    if ranges.hidden is not FALSE:
        call.context.assume(finite_scores_assumption())
    total = sum_ranges(a.ranges(), ranges)
    return replace(a, same=a.same & b.same, hidden=total.hidden, unbounded=total.unbounded, low=total.low, zero=FALSE)


def _weights_under_unknown_mask(call: OpenOperation, scores: OpenFact, mask: OpenFact) -> OpenFact:
    """Weights under booleans of which only some are known: where the mask is false in both runs, a weight is zero."""
    rank = len(scores.dims)
    own = range(rank - len(mask.dims), rank)
    if scores.hidden is not FALSE:
        raise NotCovered("a mask depends on tokens")
    common = frame([(scores, range(rank)), (mask, own)], range(rank - 1))
    a, b = common.place(scores, range(rank)), common.place(mask, own)
    first = sum(len(common.axes[d]) for d in range(rank - 1))
    bounded = call.context.for_all(~a.unbounded | b.zero, a.sizes, first)
    agrees = call.context.for_all((a.same & b.same) | b.zero, a.sizes, first)
    zero = b.zero & bounded
    return OpenFact(a.dims, scores.dtype, agrees | zero, zero=zero, unbounded=~bounded)


@ATTENTION.moved
def moved_attention(call: MovedOperation) -> MovedFact:
    """softmax(Q K^T + mask) V for queries [..., query, width], keys and values [..., key, width]."""
    query, key, value = (call.fact(x) for x in call.node.args[:3])
    if call.argument(4, "dropout_p", 0.0) != 0.0:
        raise NotCovered("attention with dropout")
    if not len(query.dims) == len(key.dims) == len(value.dims):
        raise NotCovered("queries, keys and values with another number of dimensions")
    outer = [f"batch {d}" for d in range(len(query.dims) - 2)]
    if call.node.kwargs.get("enable_gqa") and outer:
        key, value = _moved_repeated_heads(query, key), _moved_repeated_heads(query, value)
    scores: list[tuple[MovedFact, Labels]] = [(query, [*outer, "row", "width"]), (key, [*outer, "column", "width"])]
    mask = call.argument(3, "attn_mask")
    if isinstance(mask, Node):
        own = call.fact(mask)
        scores.append((own, [*outer, "row", "column"][len(outer) + 2 - len(own.dims) :]))
    found = call.combined(scores, [*outer, "row", "column"])
    if call.argument(5, "is_causal", False) and not call.without_order:
        what = "causal attention compares the indices of tokens"
        found = MovedFact((*found.dims[:-2], still(found.dims[-2], what), still(found.dims[-1], what)))
    return call.combined(
        [(found, [*outer, "row", "column"]), (value, [*outer, "column", "out"])], [*outer, "row", "out"]
    )


def _moved_repeated_heads(query: MovedFact, fact: MovedFact) -> MovedFact:
    """Keys or values with each head as often as queries share it."""
    dim = len(fact.dims) - 3
    if size(query.dims[dim]) is size(fact.dims[dim]):
        return fact
    still(fact.dims[dim], "the heads of keys move")
    return fact.with_dim(dim, still(query.dims[dim], "the heads of queries move"))
