"""Draw facts about the operands of one operator, and values that fit them.

An operand is *given* (moved along some dimensions, constant along others, some elements redrawn in the second
run, some known) or is a constant: a buffer, or a parameter that is drawn again for each pair of runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import permutations
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from orderproof.diagnosis.domain.fact import (
    ALWAYS,
    NEVER,
    Fact,
    compress,
    generator_count,
)
from orderproof.diagnosis.domain.move import FREE, STILL, Move, permuted_axis
from orderproof.diagnosis.domain.values import ValueRanges, same_numbers

Array = NDArray[Any]
ORDINARY = 6e4  # an element said to be ordinary is smaller than this on ordinary inputs
SCALES = (1.0, 0.03, 20.0, 1.0)  # one a pair of runs; ordinary numbers are checked where the scale is at most 1
Scale = float | Literal["few", "wide"]
INFINITE = True  # +inf and NaN as known values or buffers
TIERS = (0.0, 0.0, 1.0, 2.5, -np.inf, -np.inf, -1e9, -1e4, -1.7e308, 1e9, np.inf, np.nan)


@dataclass(frozen=True)
class In:
    """An operand: its shape, what its values are like, and whether it must be a buffer."""

    shape: tuple[int, ...]
    kind: str = "real"  # real, positive, unit, bool, int, index (below `below`), or mask (a buffer of what masks hold)
    below: int = 0
    buffer: bool = False
    dtype: torch.dtype = torch.float64


def X(*shape: int, **options: Any) -> In:
    """An operand of real numbers."""
    return In(shape, **options)


@dataclass(frozen=True)
class Sample:
    """An operator and its arguments, operands among them."""

    operator: str  # "softmax.int"
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict, hash=False)
    reads: tuple[int, ...] = ()  # which of several results are read by somebody
    known: bool = True  # whether operands may be given with known values
    bounded: bool = True  # whether ordinary operands give an ordinary result, not only a finite one

    @property
    def target(self) -> Any:
        packet, _, overload = self.operator.partition(".")
        return getattr(getattr(torch.ops.aten, packet), overload or "default")

    def operands(self) -> list[In]:
        return [x for x in flat((self.args, self.kwargs)) if isinstance(x, In)]


S = Sample  # the tables of samples are long


def flat(tree: Any) -> Iterator[Any]:
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, list | tuple):
        for part in tree:
            yield from flat(part)
    else:
        yield tree


def filled(tree: Any, values: Iterator[Any]) -> Any:
    """The arguments with each operand replaced by the next value."""
    if isinstance(tree, dict):
        return {k: filled(v, values) for k, v in tree.items()}
    if isinstance(tree, list | tuple):
        return type(tree)(filled(x, values) for x in tree)
    return next(values) if isinstance(tree, In) else tree


@dataclass(frozen=True)
class Relation:
    """How the runs differ: permuted (by every permutation of `size`, or by one), or redrawn from each cut on."""

    family: str  # permutation, turn (one cycle of all, which is not its own inverse) or influence
    size: int

    @property
    def move(self) -> Move:
        return _everything(self.size) if self.family == "permutation" else _turn(self.size)

    def cases(self) -> list[tuple[int, int]]:
        """Pairs (generator, case)."""
        if self.family == "influence":
            return [(0, cut) for cut in range(self.size + 1)]
        return [(g, 0) for g in range(len(self.move.permutations))]  # type: ignore[arg-type]


@cache
def _everything(size: int) -> Move:
    return permuted_axis(np.array(list(permutations(range(size)))))


@cache
def _turn(size: int) -> Move:
    return permuted_axis(np.roll(np.arange(size), -1)[None])


@dataclass
class Given:
    """An operand in its role: a fact about it, or the value of a buffer, or a parameter (neither)."""

    operand: In
    fact: Fact | None = None
    buffer: Array | None = None
    wild: bool = False  # holds, or may hold, what is not an ordinary number


def read(array: Array, moves: tuple[Move, ...], generator: int) -> Array:
    """The array that holds array[move(e)] at e."""
    found: Array = array[np.ix_(*[m.indices(generator, s) for m, s in zip(moves, array.shape, strict=True)])]
    return found


def draw_role(rng: np.random.Generator, operand: In, relation: Relation, *, constant: bool, known: bool) -> Given:
    if operand.buffer or constant:
        if operand.kind in ("real", "positive", "unit") and not operand.buffer and rng.random() < 0.4:
            return Given(operand)
        shape = [1 if s == relation.size and rng.random() < 0.4 else s for s in operand.shape]
        if rng.random() < 0.2:
            shape = [1] * len(shape)
        wild = operand.kind == "mask" or (known and operand.kind == "real" and rng.random() < 0.4)
        values = _tiers(rng, shape) if wild else draw_numbers(rng, operand, shape, 1.0)
        array = np.array(np.broadcast_to(values, operand.shape))
        return Given(operand, buffer=array, wild=bool((~(np.abs(array) < ORDINARY)).any()))
    return _given(rng, operand, relation, known=known)


def _given(rng: np.random.Generator, operand: In, relation: Relation, *, known: bool) -> Given:
    shape = operand.shape
    permuting = relation.family != "influence"
    moves = []
    for size in shape:
        if permuting and size == relation.size and rng.random() < 0.5:
            moves.append(relation.move)
        else:
            moves.append(FREE if size > 1 and rng.random() < 0.12 else STILL)
    level = _levels(rng, shape, moves, relation)
    if not (known and rng.random() < 0.45):
        return Given(operand, Fact(shape, tuple(moves), level))
    found = _known(rng, operand, moves)
    low, high, exact = (np.broadcast_to(x, shape) for x in (found.low, found.high, found.exact))
    for g in range(generator_count(tuple(moves)) or 1):  # an element and its image cannot be unequal and equal
        same = same_numbers(read(low, tuple(moves), g), low) & same_numbers(read(high, tuple(moves), g), high)
        level = np.where(same, level, ALWAYS)
        exact = exact & same
    level = np.where(exact, NEVER, level)
    wild = not found.within(ORDINARY).all()
    return Given(operand, Fact(shape, tuple(moves), compress(level), found), wild=wild)


def _part(rng: np.random.Generator, shape: tuple[int, ...], moves: list[Move]) -> list[int]:
    """Sizes of an array that varies along some of the dimensions that are not free."""
    return [s if m is not FREE and rng.random() < 0.7 else 1 for s, m in zip(shape, moves, strict=True)]


def _levels(rng: np.random.Generator, shape: tuple[int, ...], moves: list[Move], relation: Relation) -> Array:
    one = (1,) * len(shape)
    if relation.family != "influence":
        if rng.random() < 0.7:
            return np.full(one, NEVER if rng.random() < 0.93 else ALWAYS, dtype=np.int64)
        return np.where(rng.random(_part(rng, shape, moves)) < 0.3, ALWAYS, NEVER).astype(np.int64)
    along = [d for d, s in enumerate(shape) if s == relation.size and moves[d] is not FREE]
    if along and rng.random() < 0.5:
        d = int(rng.choice(along))
        return np.arange(shape[d], dtype=np.int64).reshape([-1 if k == d else 1 for k in range(len(shape))])
    if rng.random() < 0.3:
        return np.full(one, NEVER, dtype=np.int64)
    choices = np.array([NEVER, *range(relation.size), ALWAYS])
    return rng.choice(choices, size=_part(rng, shape, moves)).astype(np.int64)


def _known(rng: np.random.Generator, operand: In, moves: list[Move]) -> ValueRanges:
    sizes = _part(rng, operand.shape, moves)
    real = operand.kind == "real"
    kinds = ["ordinary", "ordinary", "exact", "exact", *(["mask", "any", "low"] if real else [])]
    kind = rng.choice(kinds, size=sizes)
    if rng.random() < 0.5:  # one kind of known element, as after a mask
        kind = np.where(kind == "ordinary", kind, rng.choice(["exact", "exact", *(["mask"] if real else [])]))
    value = _tiers(rng, sizes) if real else draw_numbers(rng, operand, sizes, 1.0)
    if value.size and rng.random() < 0.5:
        value = np.broadcast_to(value.reshape(-1)[:1].reshape([1] * len(sizes)), sizes)
    if operand.dtype.is_complex or not real:
        exact = kind == "exact"
        return ValueRanges(np.where(exact, value, -1), np.where(exact, value, 1))
    bound = rng.choice([-1e9, -2e8, -1e30])
    depth = 2.0 if bound == -1e9 else np.inf  # a finite mask, or one that may be -inf
    low = np.select([kind == k for k in ("ordinary", "exact", "mask")], [np.float64(-1), value, bound * depth], -np.inf)
    high = np.select([kind == k for k in ("exact", "mask", "any")], [value, bound, np.nan], 1.0)
    return ValueRanges(low, high)


def _tiers(rng: np.random.Generator, shape: Any) -> Array:
    """Masks of every tier, zeros, ones; seldom infinity, seldom what is no number."""
    weights = np.array([4, 4, 3, 3, 4, 4, 4, 2, 2, 1, 0.5 * INFINITE, 0.25 * INFINITE])
    return rng.choice(np.array(TIERS), size=shape, p=weights / weights.sum())


def draw_numbers(rng: np.random.Generator, operand: In, shape: Any, scale: Scale) -> Array:
    made = _reals(rng, operand, shape, scale)
    return made + 1j * _reals(rng, operand, shape, scale) if operand.dtype.is_complex else made


def _reals(rng: np.random.Generator, operand: In, shape: Any, scale: Scale) -> Array:
    if isinstance(scale, str):
        return _dense(rng, operand, shape, scale)
    if operand.kind == "bool":
        return rng.random(shape) < 0.5
    if operand.kind == "int":
        return rng.integers(-3, 4, size=shape)
    if operand.kind == "index":
        return rng.integers(0, operand.below, size=shape)
    if operand.kind == "unit":
        return rng.uniform(0.05, 0.95, size=shape)
    if operand.kind == "positive":
        return np.abs(rng.normal(size=shape)) * min(scale, 3.0) + 0.2
    return rng.normal(size=shape) * scale


def _dense(rng: np.random.Generator, operand: In, shape: Any, scale: str) -> Array:
    """Values such that what may change soon does: few that often meet, or ones as far apart as ordinary ones get."""
    if operand.kind == "bool":
        return rng.random(shape) < rng.choice([0.1, 0.5, 0.9])
    if operand.kind == "int":
        return rng.integers(*((0, 2) if scale == "few" else (-3, 4)), size=shape)
    if operand.kind in ("index", "unit"):
        return _reals(rng, operand, shape, 1.0)
    if scale == "few":
        made = np.round(rng.normal(size=shape))
    else:
        made = rng.normal(size=shape) * rng.choice([0.3, 1.0, 4.0, 3e4])
    made = np.clip(made, -0.9 * ORDINARY, 0.9 * ORDINARY)
    return np.abs(made) + rng.choice([0.01, 1.0]) if operand.kind == "positive" else made


def draw_values(rng: np.random.Generator, given: Given, scale: Scale) -> Array:
    """Values of an operand that fit its known elements."""
    operand, fact = given.operand, given.fact
    assert fact is not None
    shape = [1 if m is FREE else s for s, m in zip(fact.shape, fact.moves, strict=True)]
    made = draw_numbers(rng, operand, shape, scale)
    if fact.ranges is not None:
        low, high, exact = fact.ranges.low, fact.ranges.high, fact.ranges.exact
        if operand.kind == "real" and not operand.dtype.is_complex:
            below = high - np.abs(rng.normal(size=shape)) * 10.0 ** rng.integers(0, 12)
            if isinstance(scale, str):
                with np.errstate(over="ignore"):
                    below = high * (1 + np.abs(rng.normal(size=shape)))
                below = np.where(rng.random(shape) < 0.2, -np.inf, below)
            made = np.where(high < -ORDINARY, np.maximum(below, low), made)
            anything = rng.choice([1.0, -1e9, -1e4, 1e9, *([np.inf, -np.inf] if INFINITE else [])], size=shape)
            made = np.where(np.isnan(high), anything, made)
            least = rng.choice([1.0, -1e9, -1e4, *([-np.inf] if INFINITE else [])], size=shape)
            made = np.where(np.isneginf(low) & (high == 1) & (least < 1.0), least, made)
        made = np.where(exact, low, made)
    return np.array(np.broadcast_to(made, fact.shape))
