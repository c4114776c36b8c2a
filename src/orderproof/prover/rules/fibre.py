"""Fibre operators: softmax and normalisation act on whole lines of elements, in any order within.

Lemma (softmax_equivariant, normalisation_equivariant, channelwise_equivariant). Let C[i, :] = h(A[i, :]) where
h(P a) = P h(a) for every permutation P (softmax, log-softmax, layer norm and RMS norm without weights).
  1. A moved along i gives C moved along i.
  2. A moved along the fibre gives C moved along the fibre.
  3. If A depends on a token anywhere in a fibre, C may depend on it everywhere in that fibre.
  4. softmax: an entry of -inf is exactly zero and counts for nothing in its fibre, provided that the
     fibre has an ordinary entry. A fibre wholly masked keeps all its dependences: softmax of
     [m, m] is [1/2, 1/2] for every m. A safe softmax gives zeros where all are -inf: there an entry of
     -inf is zero whatever stands beside it.
Proof. 1: i is free. 2: sum_j exp(a_j) and the moments do not depend on the order of j. 4: exp(-inf) = 0.
Over the reals. An entry masked by a large finite number, not by -inf, is zero in floating point only if the
scores are small beside it: that is an assumption, and it is listed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.fx import Node

from orderproof.prover.fact import (
    EXACT,
    LOW,
    MASKED,
    NEVER,
    UNKNOWN,
    UNSURE,
    Fact,
    Known,
    both_ends,
    constant,
    may_mask,
    unsure,
    with_known,
)
from orderproof.prover.labelled import Operand, align, common_moves, highest, settle
from orderproof.prover.masking import BOUNDED, lines_of
from orderproof.prover.move import STILL, is_moved
from orderproof.prover.rule import Application, Facts, NothingFollows, dtype_of, rule


@rule("softmax_equivariant", "softmax", "_softmax", "_safe_softmax", "log_softmax", "_log_softmax")
def softmax(a: Application) -> Fact:
    """exp(a_j) / sum_k exp(a_k), or its logarithm."""
    fact = a.fact(a.args[0])
    dim = int(a.argument(1, "dim")) % max(len(fact.shape), 1)
    safe = "_safe_softmax" in a.target
    return softmax_along(a, fact, dim, dtype_of(a.args[0]), logarithm="log_softmax" in a.target, safe=safe)


def softmax_along(
    a: Application, fact: Fact, dim: int, dtype: Any, *, logarithm: bool = False, safe: bool = False
) -> Fact:
    """The fact about a softmax of `fact` along `dim`; a safe one gives zeros where a whole line is -inf."""
    known = fact.known
    if known is None:
        return Fact(fact.shape, fact.moves, fact.level.max(axis=dim, keepdims=True))
    _, _, gone, finite, spoilt = lines_of(known, dtype, dim)
    absent = known.where(EXACT) & (known.value == -np.inf)
    # A mask added twice overflows: what is below every number of its dtype is -inf.
    overflown = (known.status == MASKED) & (known.value < torch.finfo(dtype).min)
    sure = (known.status != UNSURE) & (known.status != LOW) & finite & ~overflown
    number = (sure.any(axis=dim, keepdims=True) | safe) & ~spoilt
    ill = np.where(number, UNKNOWN, UNSURE).astype(np.uint8)
    gone = gone | (absent & ~spoilt & safe)
    dropped = both_ends(gone, fact.moves, fact.shape)  # gone in the first run at e, in the second at move(e)
    level, dropped = np.broadcast_arrays(fact.level, dropped)
    high = np.where(dropped, NEVER, level).max(axis=dim, keepdims=True)
    zero = np.zeros((1,) * len(fact.shape))
    if logarithm and may_mask(known):
        # A masked entry is as negative as before, and no longer cut off from its score.
        return unsure(Fact(fact.shape, fact.moves, np.maximum(high, fact.level)))
    if not gone.any():
        return with_known(fact.shape, fact.moves, high, Known(ill, zero))
    if (gone & finite).any():
        a.assume(BOUNDED)
    return with_known(fact.shape, fact.moves, high, Known(np.where(gone, EXACT, ill).astype(np.uint8), zero))


def normalised(a: Application, dims: tuple[int, ...], affine: list[tuple[Node | None, int, tuple[int, ...]]]) -> Fact:
    """A normalisation over `dims`, scaled and shifted by weights laid along some of the dimensions."""
    fact = a.fact(a.args[0])
    inner = Fact(fact.shape, fact.moves, fact.level.max(axis=dims, keepdims=True))
    return scaled(a, inner, affine)


def scaled(a: Application, fact: Fact, affine: list[tuple[Node | None, int, tuple[int, ...]]]) -> Fact:
    """A tensor combined elementwise with weights laid along some of its dimensions."""
    order = [str(d) for d in range(len(fact.shape))]
    operands = [Operand(fact, tuple(x if s > 1 else "" for x, s in zip(order, fact.shape, strict=True)), derived=True)]
    for node, place, along in affine:
        if node is not None:
            weight = a.fact(node)
            labels = tuple(str(d) if s > 1 else "" for d, s in zip(along, weight.shape, strict=True))
            operands.append(Operand(weight, labels, node, place))
    moves = common_moves(a, operands)
    level = highest([align(settle(a, o, moves), o.labels, order) for o in operands])  # type: ignore[misc]
    return Fact(fact.shape, tuple(moves.get(x, STILL) for x in order), level)


@rule("normalisation_equivariant", "layer_norm", "rms_norm", "_fused_rms_norm", "native_layer_norm")
def layer_norm(a: Application) -> Facts:
    """(x - mean) / deviation over the last dimensions, times a weight, plus a bias."""
    rank = len(a.fact(a.args[0]).shape)
    count = len(a.args[1])
    dims = tuple(range(rank - count, rank))
    affine = [(a.argument(2, "weight"), 2, dims)]
    if "layer_norm" in a.target:
        affine.append((a.argument(3, "bias"), 3, dims))
    result = normalised(a, dims, affine)
    if not isinstance(a.node.meta["val"], list | tuple):
        return result
    moments = []
    for value in a.node.meta["val"][1:]:
        shape = tuple(int(s) for s in value.shape)
        moves = tuple(STILL if d in dims else m for d, m in enumerate(result.moves))
        moments.append(Fact(shape, moves, result.level.max(axis=dims, keepdims=True)))
    return (result, *moments)


@rule("normalisation_equivariant", "group_norm", "native_group_norm")
def group_norm(a: Application) -> Fact:
    """Normalisation over groups of channels and everything behind them."""
    if "native" in a.target:
        raise NothingFollows("native_group_norm has no lemma; group_norm has")
    fact = a.fact(a.args[0])
    rank, groups = len(fact.shape), int(a.args[1])
    dims = tuple(range(1, rank))
    if is_moved(fact.moves[1]) and groups > 1:
        raise NothingFollows("the groups of a group norm are taken by place, and the channels move")
    return normalised(a, dims, [(a.argument(2, "weight"), 2, (1,)), (a.argument(3, "bias"), 3, (1,))])


@rule("channelwise_equivariant", "batch_norm", "_native_batch_norm_legit_no_training", "cudnn_batch_norm")
def batch_norm(a: Application) -> Facts:
    """In eval: a scale and a shift for each channel, from running statistics."""
    if ".batch_norm." in a.target and a.args[5]:
        raise NothingFollows("batch norm in training mode mixes the whole batch")
    if "cudnn" in a.target:
        raise NothingFollows("cudnn_batch_norm has no lemma")
    statistics: list[tuple[Node | None, int, tuple[int, ...]]] = [
        (a.args[k], k, (1,)) for k in range(1, 5) if isinstance(a.args[k], Node)
    ]
    result = scaled(a, a.fact(a.args[0]), statistics)
    values = a.node.meta["val"]
    if not isinstance(values, list | tuple):
        return result
    # In eval the functional form returns two empty tensors beside the result.
    return (result, *(constant(tuple(int(s) for s in v.shape)) for v in values[1:]))
