"""Normalization over a set of elements is permutation-equivariant; its weights are elementwise operands.

Lemma (normalisation_equivariant). Let C[i, :] = h(A[i, :]) w + b, where h subtracts the mean of A[i, :] and divides by
its deviation (layer norm, group norm), or divides by its root mean square (RMS norm). Then h(P a) = P h(a) for every
permutation P.
  1. A moved along i gives C moved along i.
  2. A moved along the normalized dimensions gives C moved along them, if w and b move in the same way or are uniform.
  3. If any element of A[i, :] depends on a token, every element of C[i, :] may depend on it.
Proof. 1: i is free. 2: the moments do not depend on the order of the elements; then pointwise_equivariant for w and b.
3: every element of C[i, :] reads the moments.
Arithmetic: over the reals; a floating-point sum depends on its order.
Machine-checked (proofs/rules/normalization_lemma.v): normalization_equivariant, mean_symmetric, square_symmetric.
Not machine-checked: floating point.
"""

from __future__ import annotations

from torch.fx import Node

from orderproof.diagnosis.domain.axis_labels import broadcast_labels, join
from orderproof.diagnosis.domain.fact import Fact
from orderproof.diagnosis.domain.move import STILL, is_permuted
from orderproof.diagnosis.operands import Operand, elementwise_dependence, labelled_operand
from orderproof.diagnosis.rule import Facts, OperatorCall, RuleNotApplicable, rule

LEMMA = "normalisation_equivariant"
AffineWeight = tuple[Node | None, int, tuple[int, ...]]  # a weight, its argument index, the dimensions it lies along


def normalization_fact(call: OperatorCall, dims: tuple[int, ...], weights: list[AffineWeight]) -> Fact:
    """A normalization over `dims`, then scaled and shifted."""
    fact = call.fact(call.args[0])
    normalized = Fact(fact.shape, fact.moves, fact.dependence.max(axis=dims, keepdims=True))
    return with_affine_weights(call, normalized, weights)


def with_affine_weights(call: OperatorCall, fact: Fact, weights: list[AffineWeight]) -> Fact:
    """A tensor combined elementwise with weights that lie along some of its dimensions."""
    rank = len(fact.shape)
    operands = [Operand(fact, broadcast_labels(fact.shape, rank), is_intermediate=True)]
    operands += [labelled_operand(call, n, [str(d) for d in dims], k) for n, k, dims in weights if n is not None]
    moves, dependences = elementwise_dependence(call, operands, rank)
    return Fact(fact.shape, moves, join(dependences))


@rule(LEMMA, "layer_norm", "rms_norm", "_fused_rms_norm", "native_layer_norm")
def layer_norm(call: OperatorCall) -> Facts:
    """(x - mean) / deviation over the last dimensions, times a weight, plus a bias."""
    rank = len(call.fact(call.args[0]).shape)
    count = len(call.args[1])
    dims = tuple(range(rank - count, rank))
    weights = [(call.argument(2, "weight"), 2, dims)]
    if "layer_norm" in call.target:
        weights.append((call.argument(3, "bias"), 3, dims))
    result = normalization_fact(call, dims, weights)
    if not isinstance(call.node.meta["val"], list | tuple):
        return result
    moments = []
    for value in call.node.meta["val"][1:]:
        shape = tuple(int(s) for s in value.shape)
        moves = tuple(STILL if d in dims else m for d, m in enumerate(result.moves))
        moments.append(Fact(shape, moves, result.dependence.max(axis=dims, keepdims=True)))
    return (result, *moments)


@rule(LEMMA, "group_norm", "native_group_norm")
def group_norm(call: OperatorCall) -> Fact:
    """Normalization over groups of channels and all dimensions after them."""
    if "native" in call.target:
        raise RuleNotApplicable("native_group_norm has no lemma; group_norm has")
    fact = call.fact(call.args[0])
    rank, groups = len(fact.shape), int(call.args[1])
    dims = tuple(range(1, rank))
    if is_permuted(fact.moves[1]) and groups > 1:
        raise RuleNotApplicable("the groups of a group norm are taken by position, and the channels move")
    return normalization_fact(call, dims, [(call.argument(2, "weight"), 2, (1,)), (call.argument(3, "bias"), 3, (1,))])
