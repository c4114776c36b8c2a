"""Scaled dot-product attention, as the operators it is made of.

Lemma (attention_equivariant). softmax(Q K^T / s + M) V is a contraction, a sum, a softmax along the keys and
a contraction. So for a permutation P of the tokens with Q' = PQ, K' = PK, V' = PV and P M P^T = M:
    Q'K'^T + M = P (Q K^T + M) P^T,   softmax(P S P^T) = P softmax(S) P^T,   (P A P^T)(P V) = P (A V).
Proof. contraction_equivariant, pointwise_equivariant, softmax_equivariant, contraction_equivariant.
A mask that is not symmetric under P breaks it at the second step; one that is symmetric on some rows only
keeps it on those rows. A row hidden throughout by -inf gives zeros: torch's softmax here is the safe one.
"""

from __future__ import annotations

import numpy as np
import torch
from torch.fx import Node

from orderproof.prover.fact import (
    EXACT,
    FLOAT16_LARGE,
    LOW,
    MASKED,
    NEVER,
    UNKNOWN,
    UNSURE,
    Fact,
    Known,
    with_known,
)
from orderproof.prover.labelled import Operand, align, common_moves, highest, settle
from orderproof.prover.masking import mask_like
from orderproof.prover.move import STILL
from orderproof.prover.rule import Application, Break, NothingFollows, dtype_of, rule
from orderproof.prover.rules.contraction import contract
from orderproof.prover.rules.fibre import softmax_along
from orderproof.prover.rules.pointwise import broadcast_labels
from orderproof.prover.rules.reindexing import reindex


@rule("attention_equivariant", "scaled_dot_product_attention")
def attention(a: Application) -> Fact:
    """softmax(Q K^T scale + mask) V."""
    query, key, value = (a.fact(n) for n in a.args[:3])
    mask, causal = a.argument(3, "attn_mask"), a.argument(5, "is_causal", False)
    if float(a.argument(4, "dropout_p", 0.0)) > 0:
        raise NothingFollows("attention with dropout is random")
    rank = len(query.shape)
    if len(key.shape) != rank or len(value.shape) != rank:
        raise NothingFollows("attention whose operands have different ranks has no lemma")
    if bool(a.argument(7, "enable_gqa", False)):
        key, value = _repeat_heads(query, key), _repeat_heads(query, value)
    leading = [str(d) for d in range(rank - 2)]
    dtype = dtype_of(a.args[0])
    scores = contract(
        a,
        [_operand(query, [*leading, "i", "d"], a.args[0], 0), _operand(key, [*leading, "j", "d"], a.args[1], 1)],
        (*leading, "i", "j"),
        (*_leading_shape(query, key), query.shape[-2], key.shape[-2]),
    )
    if causal:
        scores = _masked(a, scores, _triangle(scores.shape), "is_causal", dtype)
    if mask is not None:
        scores = _masked(a, scores, mask, 3 if len(a.args) > 3 else "attn_mask", dtype)
    weights = softmax_along(a, scores, rank - 1, dtype, safe=True)
    return contract(
        a,
        [_operand(weights, [*leading, "i", "j"]), _operand(value, [*leading, "j", "e"], a.args[2], 2)],
        (*leading, "i", "e"),
        a.shape,
    )


def _operand(fact: Fact, labels: list[str], node: Node | None = None, place: int | None = None) -> Operand:
    named = tuple(x if s > 1 else "" for x, s in zip(labels, fact.shape, strict=True))
    return Operand(fact, named, node, place, derived=node is None)


def _leading_shape(query: Fact, key: Fact) -> tuple[int, ...]:
    return tuple(np.broadcast_shapes(query.shape[:-2], key.shape[:-2]))


def _repeat_heads(query: Fact, fact: Fact) -> Fact:
    heads, own = query.shape[-3], fact.shape[-3]
    if heads == own:
        return fact
    source = np.repeat(np.arange(own), heads // own)
    return reindex([fact], len(fact.shape) - 3, source, (*fact.shape[:-3], heads, *fact.shape[-2:]))


def _triangle(shape: tuple[int, ...]) -> Fact:
    keep = np.tril(np.ones(shape[-2:], dtype=bool))
    level = np.full((1, 1), NEVER, dtype=np.int64)
    return Fact(keep.shape, (STILL, STILL), level, Known(np.full((1, 1), EXACT, np.uint8), keep))


def _masked(a: Application, scores: Fact, mask: Node | Fact, place: int | str, dtype: torch.dtype) -> Fact:
    """Scores with a boolean mask (True: visible) or an additive one."""
    rank = len(scores.shape)
    node = mask if isinstance(mask, Node) else None
    fact = a.fact(mask) if isinstance(mask, Node) else mask
    operand = Operand(fact, broadcast_labels(fact.shape, rank), node, place)
    order = [str(d) for d in range(rank)]
    both = [Operand(scores, broadcast_labels(scores.shape, rank), derived=True), operand]
    moves = common_moves(a, both)
    out_moves = tuple(moves.get(x, STILL) for x in order)
    before = len(a.breaks)
    scores_level = align(settle(a, both[0], moves), both[0].labels, order)
    mask_level = align(settle(a, operand, moves), operand.labels, order)
    if node is None and len(a.breaks) > before:  # the flag itself is the constant at fault
        a.breaks[before:] = [_flag(b) for b in a.breaks[before:]]
    level = highest([scores_level, mask_level])  # type: ignore[list-item]
    known = fact.known
    if known is None and node is not None and node in a.constants:
        array = a.constants.array(node)
        if array is not None:
            a.constants.consult(node)
            known = Known(np.full((1,) * array.ndim, EXACT, np.uint8), array)
    boolean = node is None or dtype_of(node) is torch.bool
    one = (1,) * rank
    before_mask = scores.known or Known(np.full(one, UNKNOWN, np.uint8), np.zeros(one))
    if known is None and (node is None or node in a.constants):  # a constant whose values may not be used
        return Fact(scores.shape, out_moves, level, scores.known)
    if known is None:
        known = Known(np.full((1,) * len(fact.shape), UNSURE, np.uint8), np.zeros((1,) * len(fact.shape)))
    status, value = (align(x, operand.labels, order) for x in (known.status, known.value))
    mask_known = Known(status.astype(np.uint8), value)
    combined = _visible_or_hidden(before_mask, mask_known) if boolean else _added(before_mask, mask_known, dtype)
    return with_known(scores.shape, out_moves, level, combined)


def _visible_or_hidden(scores: Known, mask: Known) -> Known:
    """A boolean mask: what it hides is -inf, what it shows is as it was, what is not known is as it was or -inf."""
    hidden, visible = mask.where(EXACT) & (mask.value == 0), mask.where(EXACT) & (mask.value != 0)
    high = scores.status == UNSURE
    if scores.where(EXACT).any():
        high = high | (scores.where(EXACT) & ~(scores.value < FLOAT16_LARGE))
    # torch adds -inf where the mask hides: to a score that may be +inf that gives no number.
    status = np.where(hidden, EXACT, np.where(visible, scores.status, LOW))
    status = np.where(high & ~visible, UNSURE, status).astype(np.uint8)
    return Known(status, np.where(hidden & ~high, -np.inf, np.where(visible, scores.value, 0.0)))


def _added(scores: Known, mask: Known, dtype: torch.dtype) -> Known:
    """An additive mask: -inf stays -inf, a large negative number stays a mask, what was unsure stays unsure."""
    unsure = (scores.status == UNSURE) | (mask.status == UNSURE)
    infinite = [k.where(EXACT) & (k.value == -np.inf) for k in (scores, mask)]
    masks = [mask_like(k, dtype) for k in (scores, mask)]
    large = mask.where(EXACT) & ~(np.abs(mask.value.astype(np.float64)) < FLOAT16_LARGE)
    status = np.where(
        unsure, UNSURE, np.where(infinite[0] | infinite[1], EXACT, np.where(masks[0] | masks[1], MASKED, UNKNOWN))
    )
    low = (scores.status == LOW) | (mask.status == LOW)
    status = np.where(low & (status == UNKNOWN), LOW, status)
    status = np.where(large & ((status == UNKNOWN) | (status == LOW)), UNSURE, status).astype(np.uint8)
    bound = np.minimum(np.where(masks[0], scores.value, 0.0), np.where(masks[1], mask.value, 0.0))
    return Known(status, np.where(status == EXACT, -np.inf, np.where(status == MASKED, bound, 0.0)))


def _flag(found: Break) -> Break:
    return Break(
        node=found.node, operand=None, argument="is_causal", dims=found.dims, moves=found.moves, constant=True,
        reason="is_causal=True: a causal mask is not the same for every token",
    )  # fmt: skip
