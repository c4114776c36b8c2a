"""Scans, windows and writes: operators that read a dimension by place.

Lemma (scan_dependence). Let C[i] be a function of A[j] for the j in a window w(i) of one dimension: j <= i for
a cumulative sum, all j for a sort, a range around i for a convolution (convolution.py).
  1. C[i] depends on what A[j] depends on, for j in w(i).
  2. Moved along any other dimension, C moves alike.
  3. Moved along this one, nothing follows: cumsum of [1, 2] is [1, 3], of [2, 1] it is [2, 3]. But the values of
     a sort, or the k largest, are those of the set: they stay as they are. Their places do not.
  4. In a line of at most k visible entries, the others masked, the places of the k largest hold every visible one.
     With more than k, of none: of [1, 2] the largest is the second, of [2, 1] the first.
Proof. 1 and 2: C[i] reads nothing else, and the other indices are free. 4: a visible entry is larger than every
masked one, so that fewer than k are before it. Arithmetic: any; 4 rests, for a finite mask, on the assumption.
"""

from __future__ import annotations

import numpy as np

from orderproof.prover.fact import ALWAYS, Among, Fact, compress, uniform
from orderproof.prover.labelled import with_values
from orderproof.prover.masking import BOUNDED, lines_of, mask_like
from orderproof.prover.move import FREE, STILL, is_moved
from orderproof.prover.rule import Application, Facts, NothingFollows, dtype_of, rule, shape_of
from orderproof.prover.rules.movement import rename
from orderproof.prover.rules.reduction import only_value_used
from orderproof.prover.rules.reindexing import reindex

LEMMA = "scan_dependence"


def _unmoved(fact: Fact, dim: int, what: str) -> Fact:
    if is_moved(fact.moves[dim]):
        raise NothingFollows(f"{what} along dimension {dim}, which moves: the result depends on the order")
    moves = tuple(STILL if d == dim else m for d, m in enumerate(fact.moves))
    return Fact(fact.shape, moves, fact.level)


@rule(LEMMA, "cumsum", "cumprod", "logcumsumexp", "cummax", "cummin")
def cumulative(a: Application) -> Facts:
    """A running sum, product or extreme."""
    name = a.target.split(".")[1]
    fact = a.fact(a.args[0])
    dim = int(a.args[1]) % max(len(fact.shape), 1)
    fact = _unmoved(fact, dim, name)
    result = Fact(fact.shape, fact.moves, compress(np.maximum.accumulate(fact.level, axis=dim)))
    return (result, result) if isinstance(a.node.meta["val"], list | tuple) else result


@rule(LEMMA, "sort", "topk", "argsort", "msort")
def sort(a: Application) -> Facts:
    """An order by value along one dimension: every place may hold any element."""
    fact = a.fact(a.args[0])
    name = a.target.split(".")[1]
    schema = [x.name for x in a.node.target._schema.arguments]  # type: ignore[union-attr]
    dim = int(a.argument(schema.index("dim"), "dim", -1)) % len(fact.shape) if "dim" in schema else 0
    values = a.node.meta["val"]
    several = isinstance(values, list | tuple)
    in_order = name != "topk" or bool(a.argument(4, "sorted", True))  # otherwise torch gives them in any order
    forgets = is_moved(fact.moves[dim]) and in_order and (name == "msort" or (several and only_value_used(a)))
    if not forgets:
        fact = _unmoved(fact, dim, name)
    moves = tuple(STILL if d == dim else m for d, m in enumerate(fact.moves))
    level = fact.level.max(axis=dim, keepdims=True)
    shapes = [tuple(int(s) for s in v.shape) for v in (values if several else [values])]
    results = [Fact(s, moves, level) for s in shapes]
    if name == "topk":
        results[1] = Fact(shapes[1], moves, level, among=_certain(a, dim))
    if forgets and several:  # nobody reads the places
        results[1] = Fact(shapes[1], moves, uniform(len(shapes[1]), ALWAYS))
    return tuple(results) if several else results[0]


def _certain(a: Application, dim: int) -> Among | None:
    """The places that are among those of the k largest (case 4)."""
    known, count = a.fact(a.args[0]).known, int(a.args[1])
    size = shape_of(a.args[0])[dim]
    if count >= size:
        return Among(dim, np.ones([size if d == dim else 1 for d in range(len(shape_of(a.args[0])))], dtype=bool))
    if known is None or not a.argument(3, "largest", True):
        return None
    dtype = dtype_of(a.args[0])
    masked, lines = mask_like(known, dtype), lines_of(known, dtype, dim)
    visible = lines.ordinary
    along = [size if d == dim else s for d, s in enumerate(np.broadcast_shapes(masked.shape, visible.shape))]
    visible, masked, finite = (np.broadcast_to(x, along) for x in (visible, masked, lines.finite))
    sure = visible & (visible | masked).all(axis=dim, keepdims=True) & (visible.sum(axis=dim, keepdims=True) <= count)
    if not sure.any():
        return None
    if (sure.any(axis=dim, keepdims=True) & masked & finite).any():
        a.assume(BOUNDED)
    return Among(dim, sure)


@rule("movement_equivariant", "slice_scatter", "select_scatter")
def scatter(a: Application) -> Fact:
    """Some indices of one dimension overwritten."""
    fact, new = with_values(a, a.args[0]), with_values(a, a.args[1])
    rank = len(fact.shape)
    dim = int(a.argument(2, "dim", 0)) % rank
    size = fact.shape[dim]
    if "select" in a.target:
        chosen = np.array([int(a.argument(3, "index")) % size])
        source: list[int | None] = list(range(rank - 1))
        source.insert(dim, None)
        new = rename(new, (*fact.shape[:dim], 1, *fact.shape[dim + 1 :]), source)
    else:
        start, end, step = a.argument(3, "start"), a.argument(4, "end"), a.argument(5, "step", 1)
        chosen = np.arange(size)[slice(start, end, step)]
    place = np.arange(size)
    place[chosen] = size + np.arange(len(chosen))
    # Only dimensions along which both move alike can be joined; reindex refuses the others.
    moves = [FREE if n == 1 and d != dim else m for d, (n, m) in enumerate(zip(new.shape, new.moves, strict=True))]
    new = Fact(new.shape, tuple(moves), new.level, new.known)
    return reindex([fact, new], dim, place, fact.shape)
