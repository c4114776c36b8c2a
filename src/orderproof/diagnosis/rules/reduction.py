"""A symmetric function of a row does not depend on the order of its elements.

Lemma (reduction_invariant). Let C[i] = h(A[i, 0], ..., A[i, n-1]), where h does not depend on the order of its
arguments (sum, mean, product, maximum, norm, any, all, logsumexp, variance).
  1. A moved along i gives C moved along i.
  2. A moved along the reduced dimensions gives C unchanged.
  3. C[i] depends on everything that any A[i, j] depends on.
  4. A sum or a mean of elements that are zero in both runs is zero in both runs.
The index of a maximum is not such an h: argmax of [1, 2] is 1, of [2, 1] it is 0. It is covered only if the
reduced dimension does not move.
Proof. By definition of h; 4: 0 + 0 = 0, exactly. Arithmetic: over the reals; a floating-point sum depends on its order.
Machine-checked (proofs/rules/reduction_lemma.v): reduction_invariant, sum_symmetric, sum_of_zeros,
argmax_not_symmetric.
Not machine-checked: floating point.
"""

from __future__ import annotations

import numpy as np

from orderproof.diagnosis.domain.fact import ALWAYS, Fact, fact_with_ranges
from orderproof.diagnosis.domain.move import STILL, is_permuted
from orderproof.diagnosis.domain.values import ValueRanges
from orderproof.diagnosis.rule import Facts, OperatorCall, RuleNotApplicable, rule

LEMMA = "reduction_invariant"


@rule(
    LEMMA, "sum", "mean", "prod", "amin", "any", "all", "var", "std", "nansum", "norm",
    "linalg_vector_norm", "count_nonzero", "max.default", "min.default",
)  # fmt: skip
def symmetric_reduction(call: OperatorCall) -> Fact:
    """A symmetric function of the elements along some dimensions."""
    return reduction_fact(call, call.fact(call.args[0]))


def reduction_fact(call: OperatorCall, fact: Fact) -> Fact:
    """The fact about a symmetric function of the elements of an operand."""
    rank = len(fact.shape)
    dims, keep = reduced_dims(call, rank)
    result = reduce_dims(fact, dims, keep=keep)
    if call.target.split(".")[1] not in ("sum", "mean", "nansum") or not dims:
        return result
    zero = fact.zeros(fact.moves)
    if zero is None:
        return result
    ranges = ValueRanges.ordinary(len(result.shape)).with_exact(zero.all(axis=dims, keepdims=keep), 0)
    return fact_with_ranges(result.shape, result.moves, result.dependence, ranges)


def reduce_dims(fact: Fact, dims: tuple[int, ...], *, keep: bool) -> Fact:
    """The fact with some dimensions reduced."""
    dependence = fact.dependence.max(axis=dims, keepdims=keep) if dims else fact.dependence
    if keep:
        shape = tuple(1 if d in dims else s for d, s in enumerate(fact.shape))
        moves = tuple(STILL if d in dims else m for d, m in enumerate(fact.moves))
    else:
        shape = tuple(s for d, s in enumerate(fact.shape) if d not in dims)
        moves = tuple(m for d, m in enumerate(fact.moves) if d not in dims)
    return Fact(shape, moves, dependence)


def reduced_dims(call: OperatorCall, rank: int) -> tuple[tuple[int, ...], bool]:
    """The reduced dimensions, and True if they keep size 1."""
    everything = tuple(range(rank))
    parameters = list(call.node.target._schema.arguments)  # type: ignore[union-attr]
    names = [x.name for x in parameters]
    if "dim" not in names:
        return everything, False
    place = names.index("dim")
    dims = call.argument(place, "dim", parameters[place].default_value)
    keep = bool(call.argument(names.index("keepdim"), "keepdim", False)) if "keepdim" in names else False
    if dims is None or dims == []:
        return everything, keep
    dims = [dims] if isinstance(dims, int) else dims
    return tuple(sorted({int(d) % rank for d in dims})) if rank else (), keep


@rule(LEMMA, "min.dim", "argmax", "argmin", "median.dim", "mode", "kthvalue")
def extremum_with_index(call: OperatorCall) -> Facts:
    """An extremum, or the element of a rank, with its index; the index needs a reduced dimension that does not move."""
    return extremum_fact(call, call.fact(call.args[0]))


def extremum_fact(call: OperatorCall, fact: Fact) -> Facts:
    """The facts about an extremum of an operand and about its index."""
    dims, keep = reduced_dims(call, len(fact.shape))
    result = reduce_dims(fact, dims, keep=keep)
    both = isinstance(call.node.meta["val"], list | tuple)
    if any(is_permuted(fact.moves[d]) for d in dims) and not (both and only_values_used(call)):
        raise RuleNotApplicable("the index of an extremum along a dimension that moves")
    if not both:
        return result
    index = result
    if any(is_permuted(fact.moves[d]) for d in dims):  # no node reads it
        index = Fact(result.shape, result.moves, np.full((1,) * len(result.shape), ALWAYS, dtype=np.int64))
    return (result, index)


def only_values_used(call: OperatorCall) -> bool:
    """True if no node reads the indices (only the values of a maximum or a sort are symmetric)."""
    return all(user.args[1] == 0 for user in call.node.users if len(user.args) == 2)
