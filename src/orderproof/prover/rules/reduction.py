"""Reductions: a symmetric function of a whole line forgets the order of what it reduces.

Lemma (reduction_invariant). Let C[i] = h(A[i, 0], ..., A[i, n-1]) where h does not depend on the order of its
arguments (sum, mean, product, maximum, norm, any, all, logsumexp, variance).
  1. A moved along i gives C moved along i.
  2. A moved along the reduced dimensions gives C unchanged.
  3. C[i] depends on everything that any A[i, j] depends on.
  4. A sum or a mean of elements that are zero in both runs is zero in both runs.
An index of a maximum is no such h: argmax of [1, 2] is 1, of [2, 1] it is 0. It is covered only where the
reduced dimension does not move.
Proof. By definition of h; 4: 0 + 0 = 0, exactly. Over the reals; in floating point a sum may differ by its order.
"""

from __future__ import annotations

import numpy as np

from orderproof.prover.fact import ALWAYS, Fact, Known, with_known
from orderproof.prover.move import STILL, is_moved
from orderproof.prover.rule import Application, Facts, NothingFollows, rule

LEMMA = "reduction_invariant"


@rule(
    LEMMA, "sum", "mean", "prod", "amin", "any", "all", "var", "std", "nansum", "norm",
    "linalg_vector_norm", "count_nonzero", "max.default", "min.default",
)  # fmt: skip
def reduce(a: Application) -> Fact:
    """A symmetric function of the elements along some dimensions."""
    return reduction_of(a, a.fact(a.args[0]))


def reduction_of(a: Application, fact: Fact) -> Fact:
    """The fact about a symmetric function of the elements of an operand."""
    rank = len(fact.shape)
    dims, keep = dims_of(a, rank)
    made = reduced(fact, dims, keep=keep, rank=rank)
    if a.target.split(".")[1] not in ("sum", "mean", "nansum") or not dims:
        return made
    zero = fact.zeros(fact.moves)
    if zero is None:
        return made
    status = np.asarray(zero.all(axis=dims, keepdims=keep)).astype(np.uint8)  # exactly zero, or unknown
    return with_known(made.shape, made.moves, made.level, Known(status, np.zeros((1,) * status.ndim)))


def reduced(fact: Fact, dims: tuple[int, ...], *, keep: bool, rank: int) -> Fact:
    """The fact with some dimensions reduced."""
    level = fact.level.max(axis=dims, keepdims=keep) if dims else fact.level
    if keep:
        shape = tuple(1 if d in dims else s for d, s in enumerate(fact.shape))
        moves = tuple(STILL if d in dims else m for d, m in enumerate(fact.moves))
    else:
        shape = tuple(s for d, s in enumerate(fact.shape) if d not in dims)
        moves = tuple(m for d, m in enumerate(fact.moves) if d not in dims)
    return Fact(shape, moves, level.reshape(level.shape))


def dims_of(a: Application, rank: int) -> tuple[tuple[int, ...], bool]:
    """The dimensions that are reduced, and whether they stay with size 1."""
    everything = tuple(range(rank))
    names = [x.name for x in a.node.target._schema.arguments]  # type: ignore[union-attr]
    if "dim" not in names:
        return everything, False
    dims = a.argument(names.index("dim"), "dim")
    keep = bool(a.argument(names.index("keepdim"), "keepdim", False)) if "keepdim" in names else False
    if dims is None or dims == []:
        return everything, keep
    dims = [dims] if isinstance(dims, int) else dims
    return tuple(sorted({int(d) % rank for d in dims})) if rank else (), keep


@rule(LEMMA, "min.dim", "argmax", "argmin", "median.dim", "mode")
def extreme(a: Application) -> Facts:
    """An extreme with its index: the index needs a reduced dimension that does not move."""
    return extreme_of(a, a.fact(a.args[0]))


def extreme_of(a: Application, fact: Fact) -> Facts:
    """The fact about an extreme of an operand, and about its place."""
    rank = len(fact.shape)
    dim = a.argument(1, "dim")
    keep = bool(a.argument(2, "keepdim", False))
    dims = tuple(range(rank)) if dim is None else (int(dim) % rank,)
    result = reduced(fact, dims, keep=keep, rank=rank)
    both = isinstance(a.node.meta["val"], list | tuple)
    if any(is_moved(fact.moves[d]) for d in dims) and not (both and only_value_used(a)):
        raise NothingFollows("the index of an extreme element along a dimension whose elements move")
    if not both:
        return result
    index = result
    if any(is_moved(fact.moves[d]) for d in dims):  # nobody reads it
        index = Fact(result.shape, result.moves, np.full((1,) * len(result.shape), ALWAYS, dtype=np.int64))
    return (result, index)


def only_value_used(a: Application) -> bool:
    """Whether nobody reads the indices (a maximum's value alone is symmetric)."""
    return all(user.args[1] == 0 for user in a.node.users if len(user.args) == 2)
