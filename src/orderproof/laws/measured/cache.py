"""OP401 cache: one forward gives what decoding token by token gives.

    f(x)_t = f(x_t; C(x_0 ... x_{t-1}))   for every t,

where C is the cache that the calls before it left. Tried with the model's own cache, with every other kind of cache it
takes, and with position ids stated.
Source: elementary; broken by positions that restart at each call, by rings that roll one step early, and by masks
that are aligned to the wrong corner.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from torch import Tensor

from orderproof.blocks.driving import TransformerDriver, decoder
from orderproof.driver import Answer
from orderproof.laws.measured.bench import Bench
from orderproof.laws.measured.controls import other_first_token
from orderproof.laws.measured.law import MeasuredLaw, Sides, Trial

GENERATED = 3


class Restarting(TransformerDriver):
    """The same, with positions counted anew in every call."""

    def call(self, tokens: Tensor, *, positions: Tensor | None = None, past: Any = None, **given: Any) -> Answer:
        if positions is None and past is not None:
            positions = self.first_position + _count(tokens)
        return super().call(tokens, positions=positions, past=past, **given)


def _count(tokens: Tensor) -> Tensor:
    import torch

    return torch.arange(tokens.shape[1]).expand(tokens.shape[:2])


class Cache(MeasuredLaw):
    """See the module's text."""

    def trials(self, bench: Bench) -> Iterator[Trial]:
        yield Trial("one token at a time", _one_by_one)
        if "positions" in bench.driver.takes:
            yield Trial("one token at a time, with position ids", partial(_one_by_one, stated=True))
        for kind in bench.driver.caches():
            yield Trial(f"one token at a time into a {kind} cache", partial(_one_by_one, kind=kind))
        if bench.driver.generates:
            yield Trial("greedy generation", _generated)

    def control(self, bench: Bench) -> Sides:
        return other_first_token(bench)


def _one_by_one(bench: Bench, *, stated: bool = False, kind: str = "") -> Sides:
    rows, count = bench.tokens.shape[:2]
    past = bench.driver.new_cache(kind, rows, count) if kind else None
    more = {"positions": bench.positions(count)} if stated else {}
    made, _ = bench.steps(bench.tokens, [1] * count, past, **more)
    return bench.whole, made


def _generated(bench: Bench) -> Sides:
    """The numbers of the tokens that are generated with a cache, and of those found by hand without one."""
    made, by_hand = bench.driver.generated(bench.tokens, GENERATED)
    return by_hand.double(), made.double()


LAW = Cache(
    code="OP401",
    name="cache",
    statement="One forward gives what decoding token by token gives.",
    expectation={"causal_lm": "holds"},
    fix="Count positions on from the length of the cache, and align the causal mask to its end.",
    diff="-position_ids = torch.arange(n)\n+position_ids = past_key_values.get_seq_length() + torch.arange(n)",
    honest=decoder,
    faulty=lambda: decoder(of=Restarting),
    needs=frozenset({"cache"}),
)
