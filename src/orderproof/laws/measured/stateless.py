"""OP406 stateless: the same call gives the same answer after any other call.

    f(a), f(b), f(a): the first and the last are the same, whatever b is: longer, shorter, another batch, a decode.

Source: elementary; broken by tables, masks and offsets that are kept from the call before.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor

from orderproof.blocks.driving import TransformerDriver, decoder
from orderproof.driver import Answer, Driver
from orderproof.laws.measured.bench import Bench
from orderproof.laws.measured.controls import other_last_token
from orderproof.laws.measured.law import MeasuredLaw, Sides, Trial

MOST = 600  # [tokens] a longer call is not made for this


class Remembering(TransformerDriver):
    """The same, with positions spread by the longest call so far."""

    most = 0

    def call(self, tokens: Tensor, *, positions: Tensor | None = None, **given: Any) -> Answer:
        self.most = max(self.most, tokens.shape[1])
        if positions is None and given.get("past") is None and not given.get("keep"):
            positions = (torch.arange(tokens.shape[1]) * self.most).expand(tokens.shape[:2])
        return super().call(tokens, positions=positions, **given)


class Stateless(MeasuredLaw):
    """See the module's text."""

    ladder = False  # both sides are one call, made twice: they round alike, and a copy in float64 would remember too

    def trials(self, bench: Bench) -> Iterator[Trial]:
        driver = bench.driver
        for tokens in _lengths(driver, bench.length):
            yield Trial(f"after a call with {tokens} token{'s' * (tokens != 1)}", partial(_after, tokens=tokens))
        yield Trial("after a call with one row", partial(_after, tokens=bench.length, rows=1))
        if "cache" in driver.takes:
            yield Trial("after decoding", partial(_after, tokens=bench.length, keep=True))

    def control(self, bench: Bench) -> Sides:
        return other_last_token(bench)


def _lengths(driver: Driver, usual: int) -> list[int]:
    """Other lengths to call it with: longer, past the one that its configuration states, and one token."""
    if not driver.tokens_run:
        return [usual]
    most = driver.longest or MOST
    past = [driver.stated + 1] if driver.stated is not None and driver.stated < MOST else []
    return list(dict.fromkeys(min(n, most) for n in (2 * usual + 1, *past, 1)))


def _after(bench: Bench, *, tokens: int, rows: int = 2, keep: bool = False) -> Sides:
    first = bench.call(bench.tokens, keep=False).output.clone()
    between = bench.draw(tokens, rows=rows, other=2)
    if keep:
        bench.steps(between, [tokens - 2, 1, 1])
    else:
        bench.call(between, keep=False)
    return first, bench.call(bench.tokens, keep=False).output


LAW = Stateless(
    code="OP406",
    name="stateless",
    statement="The same call gives the same answer after any other call.",
    expectation=dict.fromkeys(("causal_lm", "encoder", "vision", "module"), "holds"),
    fix="Work out tables, masks and offsets in the call that uses them, or key what is kept by all they depend on.",
    honest=decoder,
    faulty=lambda: decoder(of=Remembering),
)
