"""OP305 default_positions: no position ids means the ids that the model documents, on from a cache too.

    f(x) = f(x; p0, p0 + 1, ...),   and   f(x_t; C) = f(x_t; C, p0 + t),

with p0 the first position id: 0, or one past the pad token's in RoBERTa and its kin.
Source: elementary; broken by ids that are counted anew at each call, and by two paths that count differently.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from orderproof.blocks.driving import TransformerDriver, decoder
from orderproof.driver import Answer
from orderproof.laws.measured.bench import Bench
from orderproof.laws.measured.controls import other_positions
from orderproof.laws.measured.law import MeasuredLaw, Sides, Trial


class FromOne(TransformerDriver):
    """The same, counting from one where nothing is said."""

    def call(self, tokens: Tensor, *, positions: Tensor | None = None, past: Any = None, **given: Any) -> Answer:
        if positions is None and past is None:
            positions = torch.arange(1, 1 + tokens.shape[1]).expand(tokens.shape[:2])
        return super().call(tokens, positions=positions, past=past, **given)


class DefaultPositions(MeasuredLaw):
    """See the module's text."""

    def trials(self, bench: Bench) -> Iterator[Trial]:
        yield Trial("in one forward", _in_one)
        if "mask" in bench.driver.takes:
            yield Trial("in one forward, with a mask", _masked)
        if "cache" in bench.driver.takes:
            yield Trial("on from a cache", _cached)

    def control(self, bench: Bench) -> Sides:
        return other_positions(bench)


def _in_one(bench: Bench) -> Sides:
    return bench.whole, bench.forward(bench.tokens, positions=bench.positions(bench.length))


def _masked(bench: Bench) -> Sides:
    by_default = bench.forward(bench.tokens, mask=bench.open_mask(bench.tokens))
    return by_default, bench.at(bench.tokens, bench.positions(bench.length))


def _cached(bench: Bench) -> Sides:
    count = bench.length
    sizes = [count - 1, 1]
    by_default, _ = bench.steps(bench.tokens, sizes)
    stated, _ = bench.steps(bench.tokens, sizes, positions=bench.positions(count))
    return stated[:, -1], by_default[:, -1]


LAW = DefaultPositions(
    code="OP305",
    name="default_positions",
    statement="No position ids means the ids that the model documents, on from a cache too.",
    expectation={"causal_lm": "holds", "encoder": "holds"},
    fix="Make default ids in one place: the first position, plus the length of the cache, plus 0, 1, 2, ...",
    diff="-position_ids = torch.arange(1, n + 1)\n+position_ids = first + past_length + torch.arange(n)",
    honest=lambda: decoder("sinusoidal"),
    faulty=lambda: decoder("sinusoidal", of=FromOne),
    needs=frozenset({"positions"}),
)
