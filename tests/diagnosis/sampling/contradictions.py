"""Statements of the interpreter about a result that two runs contradict."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from orderproof.diagnosis.domain.fact import Fact
from orderproof.diagnosis.domain.move import FREE
from orderproof.diagnosis.domain.values import ValueRanges
from tests.diagnosis.sampling.operands import ORDINARY, Array, read
from tests.diagnosis.sampling.trials import Runs, Trial


def tolerance(*arrays: Array) -> float:
    """How far numbers may differ by rounding alone: half of the digits of the coarsest dtype, less three bits."""
    return 8 * float(np.sqrt(max(np.finfo(x.dtype).eps for x in arrays if x.dtype.kind in "fc")))


def unequal(a: Array, b: Array) -> Array:
    """Elements that differ by more than rounding."""
    if a.dtype.kind in "biu":
        found: Array = a != b
        return found
    with np.errstate(invalid="ignore", over="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        scale = np.maximum(np.abs(a), np.abs(b))
        usual = np.abs(np.concatenate([a.reshape(-1), b.reshape(-1)]))
        usual = usual[usual < ORDINARY]
        scale = np.maximum(scale, usual.max() if usual.size else 0.0)
        return ~same & ~((np.abs(a - b) <= tolerance(a, b) * scale) & np.isfinite(scale))


def contradictions(tried: Trial, runs: Runs) -> Iterator[str]:
    """Statements of the walk about the results that runs contradict."""
    yield from (f"internal: {b.reason}" for b in tried.walk.breaks if b.reason.startswith("internal"))
    constant = tried.node in tried.constants
    for k, fact in enumerate(tried.facts()):
        shape = runs.pairs[0][3][k].shape
        wrong_form = list(malformed(fact, shape))
        yield from wrong_form
        if wrong_form:
            continue
        for generator, case, scale, one, two in runs.pairs:
            a, b = one[k], two[k]
            held = np.broadcast_to(fact.dependence < case, shape)
            wrong = unequal(a, read(b, fact.moves, generator)) & held
            if wrong.any():
                yield f"result {k}: {_where(wrong)} changes under {generator}, {case}"
            for x in (a, b):
                yield from _denied(fact, x, k)
                if scale <= 1 and not constant:
                    yield from _not_ordinary(fact, x, k, tried)


def malformed(fact: Fact, shape: tuple[int, ...]) -> Iterator[str]:
    arrays = [fact.dependence] + ([] if fact.ranges is None else [fact.ranges.low, fact.ranges.high])
    if fact.shape != shape or len(fact.moves) != len(shape):
        yield f"malformed: {len(fact.moves)} moves and shape {fact.shape} for {shape}"
    for array in arrays:
        if array.ndim != len(shape) or any(s not in (1, n) for s, n in zip(array.shape, shape, strict=True)):
            yield f"malformed: an array of {array.shape} for {shape}"
    for d, move in enumerate(fact.moves):
        if move.permutations is not None and move.permutations.shape[1] != shape[d]:
            yield f"malformed: dimension {d} of {shape} moves by permutations of {move.permutations.shape[1]}"


def _denied(fact: Fact, x: Array, k: int) -> Iterator[str]:
    for d, move in enumerate(fact.moves):
        if move is FREE and unequal(x, np.broadcast_to(np.take(x, [0], axis=d), x.shape)).any():
            yield f"result {k}: not constant along dimension {d}"
    if fact.ranges is not None:
        exact = np.broadcast_to(fact.ranges.exact, x.shape)
        low, high = (np.broadcast_to(end, x.shape) for end in (fact.ranges.low, fact.ranges.high))
        wrong = exact & unequal(x, low)
        if wrong.any():
            yield f"result {k}: {_where(wrong)} is {x[wrong][0]}, not {low[wrong][0]}"
        if x.dtype.kind == "f":
            wrong = ~exact & outside(x, low, high, np.inf)
            if wrong.any():
                yield f"result {k}: {_where(wrong)} is {x[wrong][0]}, not in {low[wrong][0]} to {high[wrong][0]}"


def outside(x: Array, low: Array, high: Array, ordinary: float) -> Array:
    """Numbers outside of [low, high], whose ends hold up to an ordinary number, and up to rounding."""
    with np.errstate(invalid="ignore", over="ignore"):
        room = 1 + np.abs(low) * 1e-9 + ORDINARY, 1 + np.abs(high) * 1e-9 + ORDINARY
        least = np.where(low == -1, -ordinary, np.where(np.isinf(low), low, low - room[0]))
        greatest = np.where(high == 1, ordinary, np.where(np.isinf(high), high, high + room[1]))
        found: Array = np.where(np.isnan(x), ~np.isnan(high), (x < least) | (x > greatest))
        # An end that is no infinity is the end of finite numbers.
        return found | (np.isneginf(x) & ~np.isneginf(low)) | (np.isposinf(x) & (high < np.inf))


def _not_ordinary(fact: Fact, x: Array, k: int, tried: Trial) -> Iterator[str]:
    if x.dtype.kind == "f":
        ranges = fact.ranges or ValueRanges.ordinary(x.ndim)
        wrong = ~ranges.exact & outside(x, ranges.low, ranges.high, ORDINARY if tried.sample.bounded else np.inf)
        if wrong.any():
            yield f"result {k}: {_where(wrong)} passes for ordinary and is {x[wrong][0]}"


def _where(mask: Array) -> list[int]:
    return [int(i) for i in np.argwhere(mask)[0]] if mask.ndim else []
