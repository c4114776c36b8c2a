"""Movement operators: an operator that only moves elements is read off from where each element came from.

Lemma (movement_equivariant). Let C[o] = A[s(o)] for a fixed map s of indices. If A'[m(e)] = A[e], and r is
a permutation of the indices of C with s(r(o)) = m(s(o)), then C'[r(o)] = C[o].
Where no product of one permutation for each dimension satisfies that, nothing follows: of A = [1, 2, 3]
with its ends exchanged, C = A[0:2] becomes [3, 2], which is no rearrangement of [1, 2].
Proof. C'[r(o)] = A'[s(r(o))] = A'[m(s(o))] = A[s(o)] = C[o]. Arithmetic: none; exact.

Three shapes of it, each pushed through without enumerating dimensions that nothing moves: dimensions
renamed (transpose, permute, squeeze, unsqueeze, expand), one dimension reindexed (slice, select, flip,
cat, index by a constant), and dimensions regrouped (view, reshape, flatten).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch.fx import Node

from orderproof.prover.fact import NEVER, Fact, Known, Shape, compress, generators_of, uniform, unsure
from orderproof.prover.labelled import Operand, common_moves, settle
from orderproof.prover.move import FREE, STILL, Move, is_moved, moved
from orderproof.prover.rule import Application, Facts, NothingFollows, rule, shape_of

Array = NDArray[Any]
LEMMA = "movement_equivariant"
SMALL = 4096  # constants up to this size are joined with their values: they may be masks


def rename(fact: Fact, shape: Shape, source: Sequence[int | None]) -> Fact:
    """Dimensions renamed: result dimension k is operand dimension source[k], or a new one of size 1."""

    def push(array: Array) -> Array:
        kept = [d for d in source if d is not None]
        gone = tuple(d for d in range(array.ndim) if d not in kept)
        array = array.reshape([s for d, s in enumerate(array.shape) if d not in gone]) if gone else array
        rank = {d: k for k, d in enumerate(sorted(kept))}
        array = array.transpose([rank[d] for d in kept])
        sizes = iter(array.shape)
        return array.reshape([1 if d is None else next(sizes) for d in source])

    moves = tuple(STILL if d is None else fact.moves[d] for d in source)
    return _pushed(fact, shape, moves, push)


def _pushed(fact: Fact, shape: Shape, moves: tuple[Move, ...], push: Callable[[Array], Array]) -> Fact:
    known = fact.known
    if known is not None:
        known = Known(push(known.status), push(known.value))
    return Fact(shape, moves, push(fact.level), known)


@rule(LEMMA, "transpose", "t", "numpy_T", "permute", "movedim", "swapaxes")
def transpose(a: Application) -> Fact:
    """Dimensions in another order."""
    fact = a.fact(a.args[0])
    rank = len(fact.shape)
    order = list(range(rank))
    name = a.target.split(".")[1]
    if name == "permute":
        order = [d % rank for d in a.argument(1, "dims")]
    elif name in ("t", "numpy_T"):
        order.reverse()
    elif name == "movedim":
        source, destination = a.args[1], a.args[2]
        if isinstance(source, int):
            order.remove(source % rank)
            order.insert(destination % rank, source % rank)
        else:
            raise NothingFollows("movedim of several dimensions has no lemma")
    else:
        i, j = a.args[1] % rank, a.args[2] % rank
        order[i], order[j] = order[j], order[i]
    return rename(fact, a.shape, order)


@rule(LEMMA, "unsqueeze")
def unsqueeze(a: Application) -> Fact:
    """A new dimension of size 1."""
    fact = a.fact(a.args[0])
    place = a.args[1] % (len(fact.shape) + 1)
    source: list[int | None] = list(range(len(fact.shape)))
    source.insert(place, None)
    return rename(fact, a.shape, source)


@rule(LEMMA, "squeeze")
def squeeze(a: Application) -> Fact:
    """Dimensions of size 1 dropped."""
    fact = a.fact(a.args[0])
    rank = len(fact.shape)
    dims = a.args[1] if len(a.args) > 1 else list(range(rank))
    chosen = {d % rank for d in ([dims] if isinstance(dims, int) else dims)}
    return rename(fact, a.shape, [d for d in range(rank) if not (d in chosen and fact.shape[d] == 1)])


@rule(LEMMA, "expand", "expand_as", "broadcast_to", "_unsafe_expand")
def expand(a: Application) -> Fact:
    """A dimension of size 1 repeated: the result is constant along it, so it is free."""
    fact = a.fact(a.args[0])
    added = len(a.shape) - len(fact.shape)
    source: list[int | None] = [None] * added + list(range(len(fact.shape)))
    made = rename(fact, tuple(1 if d is None else fact.shape[d] for d in source), source)
    moves = tuple(FREE if made.shape[d] == 1 and a.shape[d] > 1 else made.moves[d] for d in range(len(a.shape)))
    return Fact(a.shape, moves, made.level, made.known)


@rule(LEMMA, "view", "_unsafe_view", "reshape", "flatten", "unflatten", "view_as", "reshape_as", "ravel")
def view(a: Application) -> Fact:
    """Dimensions regrouped, group by group."""
    return regroup(a.fact(a.args[0]), a.shape)


@rule(LEMMA, "view.dtype")
def reinterpret(a: Application) -> Fact:
    """The same bits read as another type of the same width: elementwise, and no value stays known."""
    fact = a.fact(a.args[0])
    if fact.shape != a.shape:
        raise NothingFollows("bits regrouped into elements of another width have no lemma")
    return Fact(fact.shape, fact.moves, fact.level)


def regroup(fact: Fact, shape: Shape) -> Fact:
    """The fact about a tensor viewed in another shape."""
    if math.prod(fact.shape) == 0:
        return Fact(shape, (STILL,) * len(shape), uniform(len(shape), NEVER))
    groups = list(_groups(fact.shape, shape))
    moves: list[Move] = []
    for before, after in groups:
        moves.extend(_regrouped_moves([fact.moves[d] for d in before], [fact.shape[d] for d in before], after, shape))

    def push(array: Array) -> Array:
        if array.size == 1:
            return array.reshape((1,) * len(shape))
        inner: list[int] = []
        outer: list[int] = []
        for before, after in groups:
            varies = any(array.shape[d] > 1 for d in before)
            inner.extend(fact.shape[d] if varies else 1 for d in before)
            outer.extend(shape[d] if varies else 1 for d in after)
        return compress(np.broadcast_to(array, inner).reshape(outer))

    return _pushed(fact, shape, tuple(moves), push)


def _groups(before: Shape, after: Shape) -> Any:
    """Split two shapes of one size into the smallest consecutive groups with equal products."""
    i = j = 0
    while i < len(before) or j < len(after):
        left: list[int] = []
        right: list[int] = []
        p = q = 1
        while True:
            if p == q and (left or right):
                break
            if (p <= q and i < len(before)) or j >= len(after):
                left.append(i)
                p *= before[i]
                i += 1
            else:
                right.append(j)
                q *= after[j]
                j += 1
        while i < len(before) and before[i] == 1 and j >= len(after):
            left.append(i)
            i += 1
        while j < len(after) and after[j] == 1 and i >= len(before):
            right.append(j)
            j += 1
        yield left, right


def _regrouped_moves(moves: list[Move], sizes: list[int], after: list[int], shape: Shape) -> list[Move]:
    real = [(m, s) for m, s in zip(moves, sizes, strict=True) if s > 1]
    if all(m is FREE for m, _ in real):
        return [FREE if shape[d] > 1 else STILL for d in after]
    if not any(is_moved(m) for m, _ in real):
        return [STILL for _ in after]
    targets = [d for d in after if shape[d] > 1]
    if len(real) == 1 and len(targets) == 1:
        return [real[0][0] if shape[d] > 1 else STILL for d in after]
    count = generators_of(tuple(m for m, _ in real))
    rows: dict[int, list[Array]] = {d: [] for d in targets}
    for g in range(count):
        grid = np.ravel_multi_index(np.ix_(*[m.indices(g, s) for m, s in real]), [s for _, s in real]).reshape(
            [shape[d] for d in targets]
        )
        for k, (d, part) in enumerate(zip(targets, np.unravel_index(grid, grid.shape), strict=True)):
            line = part[tuple(slice(None) if x == k else 0 for x in range(grid.ndim))]
            if not (part == line.reshape([-1 if x == k else 1 for x in range(grid.ndim)])).all():
                raise NothingFollows(
                    f"the moved dimension is split across {[shape[x] for x in targets]}, and no product of one "
                    "permutation for each of these gives the same rearrangement"
                )
            rows[d].append(line)
    return [moved(np.stack(rows[d])) if d in rows else STILL for d in after]


def reindex(facts: Sequence[Fact], dim: int, source: NDArray[np.int64], shape: Shape) -> Fact:
    """One dimension reindexed: result[.., i, ..] = concatenation(facts along dim)[.., source[i], ..]."""
    moves = [_common([f.moves[d] for f in facts], d, facts) for d in range(len(shape)) if d != dim]
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


def with_values(a: Application, node: Node) -> Fact:
    """The fact about an operand; of a small constant with its values, of a large one with what they could mask."""
    fact = a.fact(node)
    if fact.known is not None or node not in a.constants:
        return fact
    if math.prod(fact.shape) > SMALL:
        return unsure(fact) if a.may_mask(node) else fact
    array = a.constants.array(node)
    if array is None:
        return fact
    a.constants.consult(node)
    return Fact(fact.shape, fact.moves, fact.level, Known(np.ones((1,) * array.ndim, dtype=np.uint8), array))


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
        raise NothingFollows("roll of the flattened tensor has no lemma")
    for shift, dim in zip(shifts, dims, strict=True):
        d = dim % len(fact.shape)
        fact = reindex([fact], d, np.roll(np.arange(fact.shape[d]), shift), a.shape)
    return fact


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


@rule(LEMMA, "index_select")
def index_select(a: Application) -> Fact:
    """One dimension read at constant indices."""
    fact, index = a.fact(a.args[0]), a.args[2]
    array = a.constants.array(index) if index in a.constants else None
    if array is None:
        raise NothingFollows("the index depends on the input")
    a.constants.consult(index)
    dim = a.args[1] % len(fact.shape)
    return reindex([fact], dim, array.reshape(-1).astype(np.int64), a.shape)


@rule(LEMMA, "constant_pad_nd", "pad")
def pad(a: Application) -> Fact:
    """A constant put around the tensor."""
    fact = a.fact(a.args[0])
    widths = a.argument(1, "pad")
    mode = a.argument(2, "mode", "constant") if ".pad." in a.target else "constant"
    value = a.argument(3, "value", 0) if ".pad." in a.target else a.argument(2, "value", 0)
    if mode != "constant":
        raise NothingFollows(f"padding of mode {mode!r} has no lemma")
    for k in range(len(widths) // 2):
        before, after = widths[2 * k], widths[2 * k + 1]
        d = len(fact.shape) - 1 - k
        if before or after:
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
