"""Operators that read one dimension at fixed positions: slice, select, split, cat, flip, roll, pad, unfold.

Lemma (movement_equivariant), for one dimension: see movement.py. C[.., i, ..] = A[.., s[i], ..], with A the
operands joined along that dimension. A permutation r of the result's positions with s[r[i]] = m[s[i]] exists if
the move takes the positions that are read to positions that are read; then the result moves by r.
If a token would have to come from outside, C is not determined: x[:, 0] of a sentence with permuted tokens.
Proof and arithmetic: as there.
Machine-checked (proofs/rules/movement_lemma.v): movement_equivariant, concatenation_fact.
Not machine-checked: as for movement.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch.fx import Node

from orderproof.diagnosis.domain.axis_labels import labels_of
from orderproof.diagnosis.domain.fact import (
    ALWAYS,
    NEVER,
    Fact,
    Shape,
    compress,
    constant_dependence,
    generator_count,
)
from orderproof.diagnosis.domain.move import FREE, STILL, Move, is_permuted, permuted_axis
from orderproof.diagnosis.domain.values import ValueRanges, same_numbers
from orderproof.diagnosis.operands import Operand, common_moves, dependence_under_moves, with_constant_values
from orderproof.diagnosis.rule import Facts, OperatorCall, RuleNotApplicable, rule, shape_of
from orderproof.diagnosis.rules.movement import LEMMA, permute_dims, reshape_fact

Array = NDArray[Any]


def reindex(facts: Sequence[Fact], dim: int, source: NDArray[np.int64], shape: Shape) -> Fact:
    """One dimension reindexed: result[.., i, ..] = concatenation(facts along dim)[.., source[i], ..]."""
    # A tensor with dependence ALWAYS throughout (memory to be written to) has every move, but is not uniform.
    known = [f for f in facts if not (f.dependence >= ALWAYS).all()] or facts
    moves = []
    for d in range(len(shape)):
        if d != dim:
            move = _common_move([f.moves[d] for f in known], d, facts)
            moves.append(move if move is not FREE else _common_move([f.moves[d] for f in facts], d, facts))
    along = _reindexed_move([(f.moves[dim], f.shape[dim]) for f in facts], source)
    moves.insert(dim, along)

    def push(arrays: list[Array]) -> Array:
        first = arrays[0]
        one = len(arrays) == 1 or all(a.size == 1 and same_numbers(a.flat[0], first.flat[0]) for a in arrays)
        if one and all(array.shape[dim] == 1 for array in arrays):
            return first
        other = np.broadcast_shapes(*[array.shape[:dim] + (1,) + array.shape[dim + 1 :] for array in arrays])
        full = [
            np.broadcast_to(array, other[:dim] + (f.shape[dim],) + other[dim + 1 :])
            for array, f in zip(arrays, facts, strict=True)
        ]
        joined = full[0] if len(full) == 1 else np.concatenate(full, axis=dim)
        return compress(np.take(joined, source, axis=dim))

    dependence = push([f.dependence for f in facts])
    ranges = None
    if any(f.ranges is not None for f in facts):
        parts = [f.ranges or ValueRanges.ordinary(len(shape)) for f in facts]
        low = push([r.low for r in parts])
        ranges = ValueRanges(low, low if all(r.low is r.high for r in parts) else push([r.high for r in parts]))
    return Fact(shape, tuple(moves), dependence, ranges)


def _common_move(moves: list[Move], dim: int, facts: Sequence[Fact]) -> Move:
    real = [m for m in moves if m is not FREE]
    if not real:
        return FREE
    if any(m is not real[0] for m in real):
        shape = list(facts[0].shape)
        raise RuleNotApplicable(
            f"tensors are joined whose tokens are in another order along dimension {dim} of {shape}: join tensors of "
            "the same tokens"
        )
    return real[0]


def _reindexed_move(parts: list[tuple[Move, int]], source: NDArray[np.int64]) -> Move:
    """The move of the reindexed dimension."""
    if not any(is_permuted(m) for m, _ in parts):
        return FREE if len(parts) == 1 and parts[0][0] is FREE and len(source) > 1 else STILL
    count = generator_count(tuple(m for m, _ in parts))
    starts = np.cumsum([0] + [s for _, s in parts])
    rows = []
    for g in range(count):
        p = np.concatenate([m.indices(g, s) + start for (m, s), start in zip(parts, starts, strict=False)])
        row = matching_permutation(p[source], source)
        if row is None:
            if len(parts) == 1 and parts[0][0] is FREE:
                return STILL
            raise RuleNotApplicable("tokens are taken by position: some of them would have to come from outside")
        rows.append(row)
    return permuted_axis(np.stack(rows))


def matching_permutation(wanted: NDArray[np.int64], source: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """The permutation r with source[r[i]] == wanted[i], or None; equal sources are matched in order."""
    left = np.argsort(wanted, kind="stable")
    right = np.argsort(source, kind="stable")
    if not np.array_equal(wanted[left], source[right]):
        return None
    result = np.empty_like(left)
    result[left] = right
    return result


@rule(LEMMA, "slice")
def slice_(call: OperatorCall) -> Fact:
    """A range of one dimension."""
    fact = call.fact(call.args[0])
    dim = int(call.argument(1, "dim", 0)) % len(fact.shape)
    start, end, step = call.argument(2, "start"), call.argument(3, "end"), call.argument(4, "step", 1)
    source = np.arange(fact.shape[dim])[slice(start, end, step)]
    if len(source) == fact.shape[dim]:
        return fact
    return reindex([fact], dim, source, call.shape)


@rule(LEMMA, "select")
def select(call: OperatorCall) -> Fact:
    """One index of one dimension."""
    fact = call.fact(call.args[0])
    rank = len(fact.shape)
    dim = int(call.argument(1, "dim")) % rank
    index = int(call.argument(2, "index")) % fact.shape[dim]
    kept = fact.shape[:dim] + (1,) + fact.shape[dim + 1 :]
    one = reindex([fact], dim, np.array([index]), kept)
    return permute_dims(one, call.shape, [d for d in range(rank) if d != dim])


@rule(LEMMA, "split", "split_with_sizes", "chunk", "unbind", "tensor_split", "unsafe_split", "unsafe_chunk")
def split(call: OperatorCall) -> Facts:
    """Consecutive ranges of one dimension."""
    fact = call.fact(call.args[0])
    rank = len(fact.shape)
    unbind = ".unbind." in call.target
    dim = int(call.argument(1 if unbind else 2, "dim", 0)) % rank
    if not unbind and sum(int(value.shape[dim]) for value in call.node.meta["val"]) != fact.shape[dim]:
        raise RuleNotApplicable("parts of a tensor that overlap, or leave elements out, have no lemma")
    results, start = [], 0
    for value in call.node.meta["val"]:
        shape = tuple(int(s) for s in value.shape)
        if unbind:
            kept = fact.shape[:dim] + (1,) + fact.shape[dim + 1 :]
            one = reindex([fact], dim, np.array([start]), kept)
            results.append(permute_dims(one, shape, [d for d in range(rank) if d != dim]))
            start += 1
            continue
        size = shape[dim]
        results.append(reindex([fact], dim, np.arange(start, start + size), shape))
        start += size
    return tuple(results)


@rule(LEMMA, "cat", "concat", "concatenate")
def cat(call: OperatorCall) -> Fact:
    """Tensors joined along one dimension."""
    nodes = [n for n in call.args[0] if math.prod(shape_of(n)) > 0]
    dim = int(call.argument(1, "dim", 0)) % len(call.shape)
    return reindex(_aligned_operands(call, nodes, dim), dim, np.arange(call.shape[dim]), call.shape)


@rule(LEMMA, "stack")
def stack(call: OperatorCall) -> Fact:
    """Tensors joined along a new dimension."""
    dim = int(call.argument(1, "dim", 0)) % len(call.shape)
    facts = []
    for fact in _aligned_operands(call, list(call.args[0]), -1):
        source: list[int | None] = list(range(len(fact.shape)))
        source.insert(dim, None)
        facts.append(permute_dims(fact, fact.shape[:dim] + (1,) + fact.shape[dim:], source))
    return reindex(facts, dim, np.arange(call.shape[dim]), call.shape)


def _aligned_operands(call: OperatorCall, nodes: list[Node], dim: int) -> list[Fact]:
    """The joined tensors, brought to one move along every dimension but the joined one."""
    operands = [
        Operand(f, labels_of(f.shape, [str(d) if d != dim else "" for d in range(len(f.shape))]), n, (0, k))
        for k, n in enumerate(nodes)
        for f in [call.fact(n)]
    ]
    moves = common_moves(call, operands)
    return [
        Fact(
            o.fact.shape,
            tuple(moves[label] if label else m for label, m in zip(o.labels, o.fact.moves, strict=True)),
            dependence_under_moves(call, o, moves),
            with_constant_values(call, o.node).ranges if o.node is not None else o.fact.ranges,
        )
        for o in operands
    ]


@rule(LEMMA, "flip")
def flip(call: OperatorCall) -> Fact:
    """Dimensions reversed."""
    fact = call.fact(call.args[0])
    for dim in call.argument(1, "dims"):
        d = dim % len(fact.shape)
        fact = reindex([fact], d, np.arange(fact.shape[d])[::-1].copy(), call.shape)
    return fact


@rule(LEMMA, "roll")
def roll(call: OperatorCall) -> Fact:
    """Dimensions rotated."""
    fact = call.fact(call.args[0])
    shifts, dims = call.argument(1, "shifts"), call.argument(2, "dims", [])
    shifts, dims = [[x] if isinstance(x, int) else list(x) for x in (shifts, dims)]
    if not dims:
        size = math.prod(fact.shape)
        flat = reshape_fact(fact, (size,))
        return reshape_fact(reindex([flat], 0, np.roll(np.arange(size), shifts[0]), (size,)), call.shape)
    for shift, dim in zip(shifts, dims, strict=True):
        d = dim % len(fact.shape)
        fact = reindex([fact], d, np.roll(np.arange(fact.shape[d]), shift), call.shape)
    return fact


@rule(LEMMA, "unfold")
def unfold(call: OperatorCall) -> Fact:
    """Windows of one dimension along a new last one: C[.., w, .., k] = A[.., w step + k, ..]."""
    fact, width, step = call.fact(call.args[0]), int(call.args[2]), int(call.args[3])
    rank = len(fact.shape)
    dim = int(call.args[1]) % max(rank, 1)
    count = call.shape[dim]
    source = (np.arange(count)[:, None] * step + np.arange(width)).reshape(-1)
    laid = reindex([fact], dim, source, (*fact.shape[:dim], count * width, *fact.shape[dim + 1 :]))
    parted = reshape_fact(laid, (*fact.shape[:dim], count, width, *fact.shape[dim + 1 :]))
    return permute_dims(parted, call.shape, [d for d in range(rank + 1) if d != dim + 1] + [dim + 1])


@rule(LEMMA, "repeat_interleave.self_int")
def repeat_interleave(call: OperatorCall) -> Fact:
    """Every index of one dimension repeated."""
    fact = call.fact(call.args[0])
    dim = call.argument(2, "dim")
    if dim is None:
        raise RuleNotApplicable("repeat_interleave of the flattened tensor has no lemma")
    d = dim % len(fact.shape)
    return reindex([fact], d, np.repeat(np.arange(fact.shape[d]), call.args[1]), call.shape)


@rule(LEMMA, "repeat", "tile")
def repeat(call: OperatorCall) -> Fact:
    """Copies of the tensor, joined along its dimensions."""
    fact = call.fact(call.args[0])
    added = len(call.shape) - len(fact.shape)
    source: list[int | None] = [None] * added + list(range(len(fact.shape)))
    fact = permute_dims(fact, (1,) * added + fact.shape, source)
    for d, size in enumerate(call.shape):
        if size != fact.shape[d]:
            grown = fact.shape[:d] + (size,) + fact.shape[d + 1 :]
            if fact.shape[d] == 1:
                moves = fact.moves[:d] + (FREE,) + fact.moves[d + 1 :]
                fact = Fact(grown, moves, fact.dependence, fact.ranges)
            else:
                fact = reindex([fact], d, np.tile(np.arange(fact.shape[d]), size // fact.shape[d]), grown)
    return fact


_NUMPY_PAD_MODES: dict[str, Any] = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@rule(LEMMA, "constant_pad_nd", "pad")
def pad(call: OperatorCall) -> Fact:
    """The tensor with a border: a constant, or its own elements."""
    fact = call.fact(call.args[0])
    widths = call.argument(1, "pad")
    mode = call.argument(2, "mode", "constant") if ".pad." in call.target else "constant"
    value = call.argument(3, "value", 0) if ".pad." in call.target else call.argument(2, "value", 0)
    if mode != "constant" and (mode not in _NUMPY_PAD_MODES or min(widths) < 0):
        raise RuleNotApplicable(f"padding of mode {mode!r} has no lemma")
    for k in range(len(widths) // 2):
        before, after = widths[2 * k], widths[2 * k + 1]
        d = len(fact.shape) - 1 - k
        if mode != "constant" and (before or after):
            source = np.pad(np.arange(fact.shape[d]), (before, after), _NUMPY_PAD_MODES[mode])
            fact = reindex([fact], d, source, (*fact.shape[:d], len(source), *fact.shape[d + 1 :]))
        elif before or after:
            fact = _pad_constant(fact, d, before, after, 0 if value is None else value)
    return fact


def _pad_constant(fact: Fact, dim: int, before: int, after: int, value: float) -> Fact:
    size = fact.shape[dim]
    if min(before, after) < 0:
        kept = np.arange(size)[max(0, -before) : size - max(0, -after)]
        fact = reindex([fact], dim, kept, fact.shape[:dim] + (len(kept),) + fact.shape[dim + 1 :])
        before, after, size = max(before, 0), max(after, 0), len(kept)
    one = (1,) * len(fact.shape)
    shape = fact.shape[:dim] + (1,) + fact.shape[dim + 1 :]
    moves = tuple(STILL if d == dim else m for d, m in enumerate(fact.moves))
    ranges = ValueRanges.of_constant(np.full(one, value))
    filler = Fact(
        shape, tuple(FREE if d != dim else m for d, m in enumerate(moves)), constant_dependence(len(one), NEVER), ranges
    )
    source = np.concatenate([np.full(before, size), np.arange(size), np.full(after, size)])
    return reindex([fact, filler], dim, source, fact.shape[:dim] + (len(source),) + fact.shape[dim + 1 :])


@rule(LEMMA, "slice_scatter", "select_scatter")
def slice_scatter(call: OperatorCall) -> Fact:
    """Some indices of one dimension overwritten."""
    fact, new = with_constant_values(call, call.args[0]), with_constant_values(call, call.args[1])
    rank = len(fact.shape)
    dim = int(call.argument(2, "dim", 0)) % rank
    size = fact.shape[dim]
    if "select" in call.target:
        chosen = np.array([int(call.argument(3, "index")) % size])
        source: list[int | None] = list(range(rank - 1))
        source.insert(dim, None)
        new = permute_dims(new, (*fact.shape[:dim], 1, *fact.shape[dim + 1 :]), source)
    else:
        start, end, step = call.argument(3, "start"), call.argument(4, "end"), call.argument(5, "step", 1)
        chosen = np.arange(size)[slice(start, end, step)]
    place = np.arange(size)
    place[chosen] = size + np.arange(len(chosen))
    # Only dimensions along which both move in the same way can be joined; reindex refuses the others.
    moves = [FREE if n == 1 and d != dim else m for d, (n, m) in enumerate(zip(new.shape, new.moves, strict=True))]
    new = Fact(new.shape, tuple(moves), new.dependence, new.ranges)
    return reindex([fact, new], dim, place, fact.shape)
