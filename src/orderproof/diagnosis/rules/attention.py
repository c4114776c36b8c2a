"""Scaled dot-product attention as a composition of the operators it consists of.

Lemma (attention_equivariant). softmax(Q K^T / s + M) V is a contraction, a sum, a softmax along the keys and
a contraction. So for a permutation P of the tokens with Q' = PQ, K' = PK, V' = PV and P M P^T = M:
    Q'K'^T + M = P (Q K^T + M) P^T,   softmax(P S P^T) = P softmax(S) P^T,   (P A P^T)(P V) = P (A V).
Proof. contraction_equivariant, pointwise_equivariant, softmax_equivariant, contraction_equivariant.
A mask that is not symmetric under P breaks the relation at the second step; a mask that is symmetric on some rows
keeps it on those rows. A row masked by -inf throughout gives zeros: this operator's softmax is a safe softmax.
Machine-checked (proofs/rules/attention_lemma.v): attention_of_moved_operands, attention_of_moved_keys.
Not machine-checked: a mask that is symmetric on some rows only; each step by itself is checked with its own lemma.
"""

from __future__ import annotations

import numpy as np
import torch
from torch.fx import Node

from orderproof.diagnosis.domain.axis_labels import align_to_labels, broadcast_labels, join, labels_of
from orderproof.diagnosis.domain.fact import NEVER, Fact, constant_dependence, fact_with_ranges
from orderproof.diagnosis.domain.move import STILL
from orderproof.diagnosis.domain.values import ValueRanges
from orderproof.diagnosis.operands import Operand, elementwise_dependence
from orderproof.diagnosis.rule import OperatorCall, RelationBreak, RuleNotApplicable, dtype_of, rule
from orderproof.diagnosis.rules.contraction import contract
from orderproof.diagnosis.rules.reindexing import reindex
from orderproof.diagnosis.rules.softmax import softmax_along
from orderproof.diagnosis.value_transfer import add, select


@rule("attention_equivariant", "scaled_dot_product_attention")
def attention(call: OperatorCall) -> Fact:
    """softmax(Q K^T scale + mask) V."""
    query, key, value = (call.fact(n) for n in call.args[:3])
    mask, causal = call.argument(3, "attn_mask"), call.argument(5, "is_causal", False)
    if float(call.argument(4, "dropout_p", 0.0)) > 0:
        raise RuleNotApplicable("attention with dropout is random")
    rank = len(query.shape)
    if len(key.shape) != rank or len(value.shape) != rank:
        raise RuleNotApplicable("attention whose operands have different ranks has no lemma")
    if bool(call.argument(7, "enable_gqa", False)):
        key, value = _repeat_heads(query, key), _repeat_heads(query, value)
    leading = [str(d) for d in range(rank - 2)]
    dtype = dtype_of(call.args[0])
    scores = contract(
        call,
        [_operand(query, [*leading, "i", "d"], call.args[0], 0), _operand(key, [*leading, "j", "d"], call.args[1], 1)],
        (*leading, "i", "j"),
        (*np.broadcast_shapes(query.shape[:-2], key.shape[:-2]), query.shape[-2], key.shape[-2]),
    )
    if causal:
        scores = _add_mask(call, scores, _causal_mask_fact(scores.shape), "is_causal", dtype)
    if mask is not None:
        scores = _add_mask(call, scores, mask, 3 if len(call.args) > 3 else "attn_mask", dtype)
    weights = softmax_along(call, scores, rank - 1, dtype, safe=True)
    return contract(
        call,
        [_operand(weights, [*leading, "i", "j"]), _operand(value, [*leading, "j", "e"], call.args[2], 2)],
        (*leading, "i", "e"),
        call.shape,
    )


def _operand(fact: Fact, labels: list[str], node: Node | None = None, argument: int | None = None) -> Operand:
    return Operand(fact, labels_of(fact.shape, labels), node, argument, is_intermediate=node is None)


def _repeat_heads(query: Fact, fact: Fact) -> Fact:
    """Grouped-query attention: each key or value head repeated for its group of query heads."""
    query_heads, heads = query.shape[-3], fact.shape[-3]
    if query_heads == heads:
        return fact
    source = np.repeat(np.arange(heads), query_heads // heads)
    return reindex([fact], len(fact.shape) - 3, source, (*fact.shape[:-3], query_heads, *fact.shape[-2:]))


def _causal_mask_fact(shape: tuple[int, ...]) -> Fact:
    visible = np.tril(np.ones(shape[-2:], dtype=bool))
    return Fact(visible.shape, (STILL, STILL), constant_dependence(2, NEVER), ValueRanges.of_constant(visible))


def _add_mask(call: OperatorCall, scores: Fact, mask: Node | Fact, argument: int | str, dtype: torch.dtype) -> Fact:
    """Scores with a boolean mask (True: visible) or an additive one."""
    rank = len(scores.shape)
    node = mask if isinstance(mask, Node) else None
    fact = call.fact(mask) if isinstance(mask, Node) else mask
    operand = Operand(fact, broadcast_labels(fact.shape, rank), node, argument)
    intermediate = Operand(scores, broadcast_labels(scores.shape, rank), is_intermediate=True)
    before = len(call.breaks)
    moves, (scores_dependence, mask_dependence) = elementwise_dependence(call, [intermediate, operand], rank)
    if node is None and len(call.breaks) > before:  # the constant that breaks the relation is the flag itself
        call.breaks[before:] = [_causal_flag_break(b) for b in call.breaks[before:]]
    dependence = join([scores_dependence, mask_dependence])
    ranges = fact.ranges
    if ranges is None and node is not None and node in call.constants:
        array = call.constants.array(node)
        if array is None:  # a constant whose values may not be used
            return Fact(scores.shape, moves, dependence, scores.ranges)
        call.constants.mark_used(node)
        ranges = ValueRanges.of_constant(array)
    if ranges is None:
        ranges = ValueRanges.unbounded(len(fact.shape))
    aligned = ranges.map(lambda x: align_to_labels(x, operand.labels, [str(d) for d in range(rank)]))
    before_mask = scores.ranges or ValueRanges.ordinary(rank)
    if node is None or dtype_of(node) is torch.bool:  # torch adds -inf to a hidden score: NaN if the score is +inf
        absent = ValueRanges.of_constant(np.full((1,) * rank, -np.inf))
        masked = select(aligned, before_mask, add(before_mask, absent, dtype), dtype)
    else:
        masked = add(before_mask, aligned, dtype)
    return fact_with_ranges(scores.shape, moves, dependence, masked)


def _causal_flag_break(found: RelationBreak) -> RelationBreak:
    return RelationBreak(
        node=found.node, operand=None, argument="is_causal", dims=found.dims, moves=found.moves, constant=True,
        reason="is_causal=True: a causal mask is not the same for every token",
    )  # fmt: skip
