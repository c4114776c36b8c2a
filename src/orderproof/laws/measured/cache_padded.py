"""OP405 cache_padded: pad on the left, prefill, then decode: what an unpadded row gives.

    decode y after C(pads x), with the mask and the position ids that go with the padding   =   f(x y)

Where a model takes no position ids it is compared with one forward of the padded row: what pads do to its positions
is its contract, and the cache must keep to it.
Source: elementary; broken by masks that are dropped once there is a cache, and by offsets that count pads.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor

from orderproof.blocks.driving import TransformerDriver, decoder
from orderproof.driver import Answer
from orderproof.laws.measured.bench import Bench
from orderproof.laws.measured.controls import other_first_token
from orderproof.laws.measured.law import MeasuredLaw, Sides, Trial

PADS, STEPS = 3, 2


class Unhiding(TransformerDriver):
    """The same, forgetting what was a pad once it is in the cache."""

    def call(self, tokens: Tensor, *, past: Any = None, **given: Any) -> Answer:
        for layer in past or ():
            layer.real[:] = True
        return super().call(tokens, past=past, **given)


class CachePadded(MeasuredLaw):
    """See the module's text."""

    def trials(self, bench: Bench) -> Iterator[Trial]:
        yield Trial("pads on the left, then one token at a time", partial(_padded, alone=False))
        yield Trial("the same, one row alone", partial(_padded, alone=True))
        if bench.driver.generates:
            yield Trial("greedy generation behind pads on the left", _generated)

    def control(self, bench: Bench) -> Sides:
        return other_first_token(bench)


def _generated(bench: Bench) -> Sides:
    tokens, mask, _ = _behind_pads(bench, alone=False)
    made, by_hand = bench.driver.generated(tokens, STEPS, mask)
    return by_hand.double(), made.double()


def _padded(bench: Bench, *, alone: bool) -> Sides:
    """What the last tokens of the first row give."""
    tokens, mask, row = _behind_pads(bench, alone=alone)
    given = {"mask": mask}
    if "positions" in bench.driver.takes:
        given["positions"] = bench.driver.first_position + (mask.long().cumsum(1) - 1).clamp(min=0)
        expected = bench.forward(row)[:, -STEPS:]
    else:
        expected = bench.forward(tokens, mask=mask)[:1, -STEPS:]
    made, _ = bench.steps(tokens, [tokens.shape[1] - STEPS, *[1] * STEPS], **given)
    return expected, made[:1, -STEPS:]


def _behind_pads(bench: Bench, *, alone: bool) -> tuple[Tensor, Tensor, Tensor]:
    """The first row behind pads, beside one without any; the mask; and that row by itself."""
    count = bench.length
    longest = bench.driver.longest
    if longest is not None and count + PADS > longest:
        count = longest - PADS
    row = bench.tokens[:1, :count]
    filler = bench.draw(PADS, rows=1, other=3)
    if bench.driver.pad is not None and not filler.is_floating_point():
        filler = torch.full_like(filler, bench.driver.pad)
    tokens = torch.cat([filler, row], dim=1)
    mask = (torch.arange(PADS + count) >= PADS).unsqueeze(0)
    if not alone:
        tokens = torch.cat([tokens, bench.draw(PADS + count, rows=1, other=4)])
        mask = torch.cat([mask, torch.ones_like(mask)])
    return tokens, mask, row


LAW = CachePadded(
    code="OP405",
    name="cache_padded",
    statement="Pad on the left, prefill, then decode: what an unpadded row gives.",
    expectation={"causal_lm": "holds"},
    fix="Keep the padding mask for every cached token, and count positions by the mask, not by the cache.",
    diff="-position_ids = torch.arange(n)\n+position_ids = (attention_mask.cumsum(-1) - 1).clamp(min=0)[:, -n:]",
    honest=decoder,
    faulty=lambda: decoder(of=Unhiding),
    needs=frozenset({"cache", "mask"}),
)
