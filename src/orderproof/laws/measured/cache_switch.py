"""OP404 cache_switch: with a cache asked for and without one, a forward gives the same.

Source: elementary; broken where layers share keys and values by way of the cache object.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from torch import Tensor

from orderproof.blocks.driving import TransformerDriver, decoder
from orderproof.driver import Answer
from orderproof.laws.measured.bench import Bench
from orderproof.laws.measured.controls import other_last_token
from orderproof.laws.measured.law import MeasuredLaw, Sides, Trial


class Unmasked(TransformerDriver):
    """The same, with a causal mask that is built with the cache, and not built without one."""

    def call(self, tokens: Tensor, *, keep: bool | None = None, past: Any = None, **given: Any) -> Answer:
        layers = self.module.stack.layers
        for layer in layers:
            layer.attention.causal = bool(keep) or past is not None  # type: ignore[union-attr]
        return super().call(tokens, keep=keep, past=past, **given)


class CacheSwitch(MeasuredLaw):
    """See the module's text."""

    def trials(self, bench: Bench) -> Iterator[Trial]:
        yield Trial("a cache asked for", partial(_kept, keep=True))
        yield Trial("nothing said of a cache", partial(_kept, keep=None))

    def control(self, bench: Bench) -> Sides:
        return other_last_token(bench)


def _kept(bench: Bench, *, keep: bool | None) -> Sides:
    return bench.whole, bench.call(bench.tokens, keep=keep).output


LAW = CacheSwitch(
    code="OP404",
    name="cache_switch",
    statement="With a cache asked for and without one, a forward gives the same.",
    expectation={"causal_lm": "holds"},
    fix="Pass what layers share (keys, values, masks) from layer to layer, not by way of the cache.",
    honest=decoder,
    faulty=lambda: decoder(of=Unmasked),
    needs=frozenset({"cache"}),
)
