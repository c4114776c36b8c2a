"""Movement operators that read one dimension at fixed places: slice, select, split, cat, flip, roll, pad, unfold.

Lemma (movement_equivariant), for one dimension: see movement.py. C[.., i, ..] = A[.., s[i], ..], with A the
operands joined along that dimension. A permutation r of the result's places with s[r[i]] = m[s[i]] exists when
the places that are read are carried to places that are read; then the result moves by r.
Where a token would have to come from outside, nothing follows: x[:, 0] of a sentence whose tokens are permuted.
Proof and arithmetic: as there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch.fx import Node

from orderproof.prover.fact import ALWAYS, NEVER, Fact, Known, Shape, compress, generators_of, uniform
from orderproof.prover.labelled import Operand, common_moves, settle, with_values
from orderproof.prover.move import FREE, STILL, Move, is_moved, moved
from orderproof.prover.rule import Application, Facts, NothingFollows, rule, shape_of
from orderproof.prover.rules.movement import LEMMA, regroup, rename

Array = NDArray[Any]


def reindex(facts: Sequence[Fact], dim: int, source: NDArray[np.int64], shape: Shape) -> Fact:
    """One dimension reindexed: result[.., i, ..] = concatenation(facts along dim)[.., source[i], ..]."""
    # Of a tensor of which nothing is said (memory to be written to), any move may be said; not that it is constant.
    saying = [f for f in facts if not (f.level >= ALWAYS).all()] or facts
    moves = []
    for d in range(len(shape)):
        if d != dim:
            move = _common([f.moves[d] for f in saying], d, facts)
            moves.append(move if move is not FREE else _common([f.moves[d] for f in facts], d, facts))
    along = _along([(f.moves[dim], f.shape[dim]) for f in facts], source, facts)
    moves.insert(dim, along)

    def push(arrays: list[Array]) -> Array:
        if all(array.shape[dim] == 1 for array in arrays) and (
            len(arrays) == 1 or all(array.size == 1 and array.flat[0] == arrays[0].flat[0] for array in arrays)
        ):
            return arrays[0]
        other = np.broadcast_shapes(*[array.shape[:dim] + (1,) + array.shape[dim + 1 :] for array in arrays])
        full = [
            np.broadcast_to(array, other[:dim] + (f.shape[dim],) + other[dim + 1 :])
            for array, f in zip(arrays, facts, strict=True)
        ]
        joined = full[0] if len(full) == 1 else np.concatenate(full, axis=dim)
        return compress(np.take(joined, source, axis=dim))

    level = push([f.level for f in facts])
    known = None
    if any(f.known is not None for f in facts):
        one = (1,) * len(shape)
        none = Known(np.zeros(one, dtype=np.uint8), np.zeros(one))
        knowns = [f.known or none for f in facts]
        known = Known(push([k.status for k in knowns]), push([k.value for k in knowns]))
    return Fact(shape, tuple(moves), level, known)


def _common(moves: list[Move], dim: int, facts: Sequence[Fact]) -> Move:
    real = [m for m in moves if m is not FREE]
    if not real:
        return FREE
    if any(m is not real[0] for m in real):
        raise NothingFollows(f"joined tensors move differently along dimension {dim} of {list(facts[0].shape)}")
    return real[0]


def _along(parts: list[tuple[Move, int]], source: NDArray[np.int64], facts: Sequence[Fact]) -> Move:
    """The move of the reindexed dimension."""
    if not any(is_moved(m) for m, _ in parts):
        return FREE if len(parts) == 1 and parts[0][0] is FREE and len(source) > 1 else STILL
    count = generators_of(tuple(m for m, _ in parts))
    starts = np.cumsum([0] + [s for _, s in parts])
    rows = []
    for g in range(count):
        p = np.concatenate([m.indices(g, s) + start for (m, s), start in zip(parts, starts, strict=False)])
        row = match(p[source], source)
        if row is None:
            if len(parts) == 1 and parts[0][0] is FREE:
                return STILL
            raise NothingFollows("tokens are taken by their place: some of them would have to come from outside")
        rows.append(row)
    return moved(np.stack(rows))


def match(wanted: NDArray[np.int64], source: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """The permutation r with source[r[i]] == wanted[i], or None; equal sources are matched in order."""
    left = np.argsort(wanted, kind="stable")
    right = np.argsort(source, kind="stable")
    if not np.array_equal(wanted[left], source[right]):
        return None
    result = np.empty_like(left)
    result[left] = right
    return result


@rule(LEMMA, "slice")
def slice_(a: Application) -> Fact:
    """A range of one dimension."""
    fact = a.fact(a.args[0])
    dim = int(a.argument(1, "dim", 0)) % len(fact.shape)
    start, end, step = a.argument(2, "start"), a.argument(3, "end"), a.argument(4, "step", 1)
    source = np.arange(fact.shape[dim])[slice(start, end, step)]
    if len(source) == fact.shape[dim]:
        return fact
    return reindex([fact], dim, source, a.shape)


@rule(LEMMA, "select")
def select(a: Application) -> Fact:
    """One index of one dimension."""
    fact = a.fact(a.args[0])
    rank = len(fact.shape)
    dim = int(a.argument(1, "dim")) % rank
    index = int(a.argument(2, "index")) % fact.shape[dim]
    kept = fact.shape[:dim] + (1,) + fact.shape[dim + 1 :]
    one = reindex([fact], dim, np.array([index]), kept)
    return rename(one, a.shape, [d for d in range(rank) if d != dim])


@rule(LEMMA, "split", "split_with_sizes", "chunk", "unbind", "tensor_split", "unsafe_split", "unsafe_chunk")
def split(a: Application) -> Facts:
    """Consecutive ranges of one dimension."""
    fact = a.fact(a.args[0])
    rank = len(fact.shape)
    unbind = ".unbind." in a.target
    dim = int(a.argument(1 if unbind else 2, "dim", 0)) % rank
    results, start = [], 0
    for value in a.node.meta["val"]:
        shape = tuple(int(s) for s in value.shape)
        if unbind:
            kept = fact.shape[:dim] + (1,) + fact.shape[dim + 1 :]
            one = reindex([fact], dim, np.array([start]), kept)
            results.append(rename(one, shape, [d for d in range(rank) if d != dim]))
            start += 1
            continue
        size = shape[dim]
        results.append(reindex([fact], dim, np.arange(start, start + size), shape))
        start += size
    return tuple(results)


@rule(LEMMA, "cat", "concat", "concatenate")
def cat(a: Application) -> Fact:
    """Tensors joined along one dimension."""
    nodes = [n for n in a.args[0] if math.prod(shape_of(n)) > 0]
    dim = int(a.argument(1, "dim", 0)) % len(a.shape)
    return reindex(_followed(a, nodes, dim), dim, np.arange(a.shape[dim]), a.shape)


@rule(LEMMA, "stack")
def stack(a: Application) -> Fact:
    """Tensors joined along a new dimension."""
    dim = int(a.argument(1, "dim", 0)) % len(a.shape)
    facts = []
    for fact in _followed(a, list(a.args[0]), -1):
        source: list[int | None] = list(range(len(fact.shape)))
        source.insert(dim, None)
        facts.append(rename(fact, fact.shape[:dim] + (1,) + fact.shape[dim:], source))
    return reindex(facts, dim, np.arange(a.shape[dim]), a.shape)


def _followed(a: Application, nodes: list[Node], dim: int) -> list[Fact]:
    """The joined tensors, brought to one move along every dimension but the joined one."""
    operands = [
        Operand(f, tuple(str(d) if s > 1 and d != dim else "" for d, s in enumerate(f.shape)), n, (0, k))
        for k, n in enumerate(nodes)
        for f in [a.fact(n)]
    ]
    moves = common_moves(a, operands)
    return [
        Fact(
            o.fact.shape,
            tuple(moves[label] if label else m for label, m in zip(o.labels, o.fact.moves, strict=True)),
            settle(a, o, moves),
            with_values(a, o.node).known if o.node is not None else o.fact.known,
        )
        for o in operands
    ]


@rule(LEMMA, "flip")
def flip(a: Application) -> Fact:
    """Dimensions read backwards."""
    fact = a.fact(a.args[0])
    for dim in a.argument(1, "dims"):
        d = dim % len(fact.shape)
        fact = reindex([fact], d, np.arange(fact.shape[d])[::-1].copy(), a.shape)
    return fact


@rule(LEMMA, "roll")
def roll(a: Application) -> Fact:
    """Dimensions turned round."""
    fact = a.fact(a.args[0])
    shifts, dims = a.argument(1, "shifts"), a.argument(2, "dims", [])
    shifts, dims = [[x] if isinstance(x, int) else list(x) for x in (shifts, dims)]
    if not dims:
        size = math.prod(fact.shape)
        flat = regroup(fact, (size,))
        return regroup(reindex([flat], 0, np.roll(np.arange(size), shifts[0]), (size,)), a.shape)
    for shift, dim in zip(shifts, dims, strict=True):
        d = dim % len(fact.shape)
        fact = reindex([fact], d, np.roll(np.arange(fact.shape[d]), shift), a.shape)
    return fact


@rule(LEMMA, "unfold")
def unfold(a: Application) -> Fact:
    """Windows of one dimension, laid along a new last one: C[.., w, .., k] = A[.., w step + k, ..]."""
    fact, width, step = a.fact(a.args[0]), int(a.args[2]), int(a.args[3])
    rank = len(fact.shape)
    dim = int(a.args[1]) % max(rank, 1)
    count = a.shape[dim]
    source = (np.arange(count)[:, None] * step + np.arange(width)).reshape(-1)
    laid = reindex([fact], dim, source, (*fact.shape[:dim], count * width, *fact.shape[dim + 1 :]))
    parted = regroup(laid, (*fact.shape[:dim], count, width, *fact.shape[dim + 1 :]))
    return rename(parted, a.shape, [d for d in range(rank + 1) if d != dim + 1] + [dim + 1])


@rule(LEMMA, "repeat_interleave.self_int")
def repeat_interleave(a: Application) -> Fact:
    """Every index of one dimension repeated."""
    fact = a.fact(a.args[0])
    dim = a.argument(2, "dim")
    if dim is None:
        raise NothingFollows("repeat_interleave of the flattened tensor has no lemma")
    d = dim % len(fact.shape)
    return reindex([fact], d, np.repeat(np.arange(fact.shape[d]), a.args[1]), a.shape)


@rule(LEMMA, "repeat", "tile")
def repeat(a: Application) -> Fact:
    """The tensor laid out several times."""
    fact = a.fact(a.args[0])
    added = len(a.shape) - len(fact.shape)
    source: list[int | None] = [None] * added + list(range(len(fact.shape)))
    fact = rename(fact, (1,) * added + fact.shape, source)
    for d, size in enumerate(a.shape):
        if size != fact.shape[d]:
            grown = fact.shape[:d] + (size,) + fact.shape[d + 1 :]
            if fact.shape[d] == 1:
                moves = fact.moves[:d] + (FREE,) + fact.moves[d + 1 :]
                fact = Fact(grown, moves, fact.level, fact.known)
            else:
                fact = reindex([fact], d, np.tile(np.arange(fact.shape[d]), size // fact.shape[d]), grown)
    return fact


_BORDERS: dict[str, Any] = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}  # as numpy calls them


@rule(LEMMA, "constant_pad_nd", "pad")
def pad(a: Application) -> Fact:
    """A constant put around the tensor, or its own elements."""
    fact = a.fact(a.args[0])
    widths = a.argument(1, "pad")
    mode = a.argument(2, "mode", "constant") if ".pad." in a.target else "constant"
    value = a.argument(3, "value", 0) if ".pad." in a.target else a.argument(2, "value", 0)
    if mode != "constant" and (mode not in _BORDERS or min(widths) < 0):
        raise NothingFollows(f"padding of mode {mode!r} has no lemma")
    for k in range(len(widths) // 2):
        before, after = widths[2 * k], widths[2 * k + 1]
        d = len(fact.shape) - 1 - k
        if mode != "constant" and (before or after):
            source = np.pad(np.arange(fact.shape[d]), (before, after), _BORDERS[mode])
            fact = reindex([fact], d, source, (*fact.shape[:d], len(source), *fact.shape[d + 1 :]))
        elif before or after:
            fact = _padded(fact, d, before, after, 0 if value is None else value)
    return fact


def _padded(fact: Fact, dim: int, before: int, after: int, value: float) -> Fact:
    size = fact.shape[dim]
    if min(before, after) < 0:
        kept = np.arange(size)[max(0, -before) : size - max(0, -after)]
        fact = reindex([fact], dim, kept, fact.shape[:dim] + (len(kept),) + fact.shape[dim + 1 :])
        before, after, size = max(before, 0), max(after, 0), len(kept)
    one = (1,) * len(fact.shape)
    shape = fact.shape[:dim] + (1,) + fact.shape[dim + 1 :]
    moves = tuple(STILL if d == dim else m for d, m in enumerate(fact.moves))
    known = Known(np.ones(one, dtype=np.uint8), np.full(one, value))
    filler = Fact(shape, tuple(FREE if d != dim else m for d, m in enumerate(moves)), uniform(len(one), NEVER), known)
    source = np.concatenate([np.full(before, size), np.arange(size), np.full(after, size)])
    return reindex([fact, filler], dim, source, fact.shape[:dim] + (len(source),) + fact.shape[dim + 1 :])
