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

from torch import Tensor

from orderproof.blocks.driving import TransformerDriver, decoder
from orderproof.driver import Answer
from orderproof.laws.measured.bench import Bench
from orderproof.laws.measured.controls import other_first_token
from orderproof.laws.measured.law import MeasuredLaw, Sides, Trial
from orderproof.laws.measured.padded_rows import between_pads

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
    padded = between_pads(bench, left=PADS, alone=False)
    made, by_hand = bench.driver.generated(padded.tokens, STEPS, padded.mask)
    return by_hand.double(), made.double()


def _padded(bench: Bench, *, alone: bool) -> Sides:
    """What the last tokens of the first row give."""
    tokens, mask, row, given = between_pads(bench, left=PADS, alone=alone)
    expected = bench.forward(row) if "positions" in given else bench.forward(tokens, mask=mask)[:1]
    made, _ = bench.steps(tokens, [tokens.shape[1] - STEPS, *[1] * STEPS], **given)
    return expected[:, -STEPS:], made[:1, -STEPS:]


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
