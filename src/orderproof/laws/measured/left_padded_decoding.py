"""OP405 left_padded_decoding: decoding after a left-padded prefill gives the output of the unpadded row.

    decode y after C(pads x), with the mask and the position ids of the padding   =   f(x y)

A model that takes no position ids is compared with one forward of the padded row: how pads shift its positions is its
contract, and decoding must follow it.
Source: elementary; broken by masks that are dropped once there is a cache, and by offsets that count pads.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from orderproof.laws.measured.cached_calls import CachedCalls
from orderproof.laws.measured.controls import replace_first_token
from orderproof.laws.measured.measured_law import Comparison, MeasuredLaw, OutputPair
from orderproof.laws.measured.padded_batch import padded_batch
from orderproof.laws.measured.remedies import OF_PADDED_ROWS
from orderproof.records.audit import Remedy

PADS, DECODED_TOKENS = 3, 2


class LeftPaddedDecoding(MeasuredLaw):
    """The law of this module."""

    of_any_weights = True

    def comparisons(self, calls: CachedCalls) -> Iterator[Comparison]:
        yield Comparison("token-by-token decoding after a left-padded prompt", partial(_padded, alone=False))
        yield Comparison(
            "token-by-token decoding after a left-padded prompt, batch of one row", partial(_padded, alone=True)
        )
        yield Comparison("a left-padded prompt in chunks of unequal size", _in_chunks)
        if "positions" in calls.adapter.supported_inputs:
            yield Comparison(
                "a left-padded prompt in chunks, by default position ids", partial(_in_chunks, default=True)
            )
        if calls.adapter.supports_generation:
            yield Comparison("greedy generation after a left-padded prompt", _generated, of_token_ids=True)

    def control(self, calls: CachedCalls) -> OutputPair:
        return replace_first_token(calls)


def _generated(calls: CachedCalls) -> OutputPair:
    padded = padded_batch(calls, left=PADS, alone=False)
    generated, by_hand = calls.adapter.greedy_generation(padded.tokens, DECODED_TOKENS, padded.mask)
    return by_hand.double(), generated.double()


def _padded(calls: CachedCalls, *, alone: bool) -> OutputPair:
    """The outputs of the last tokens of the first row."""
    tokens, mask, row, arguments = padded_batch(calls, left=PADS, alone=alone)
    expected = calls.forward(row) if "positions" in arguments else calls.forward(tokens, mask=mask)[:1]
    decoded, _ = calls.incremental_forward(
        tokens, [tokens.shape[1] - DECODED_TOKENS, *[1] * DECODED_TOKENS], **arguments
    )
    return expected[:, -DECODED_TOKENS:], decoded[:1, -DECODED_TOKENS:]


def _in_chunks(calls: CachedCalls, *, default: bool = False) -> OutputPair:
    """The real tokens of a padded batch: in one forward, and in chunks of which the first ends within the pads."""
    padded = padded_batch(calls, left=PADS, alone=False)
    arguments = {"mask": padded.mask} if default else padded.call_arguments
    count = padded.tokens.shape[1]
    sizes = [PADS - 1, 2, 1, count - PADS - 2] if count > PADS + 2 else [PADS - 1, count - PADS + 1]
    output, _ = calls.incremental_forward(padded.tokens, sizes, **arguments)
    return calls.forward(padded.tokens, **arguments)[padded.mask], output[padded.mask]


LAW = LeftPaddedDecoding(
    code="OP405",
    name="left_padded_decoding",
    statement="Decoding after a left-padded prefill gives the output of the unpadded row.",
    trait="decodes left-padded prompts as unpadded ones",
    expectation={"causal_lm": "holds"},
    remedy="Keep the padding mask of every cached token, and count positions by the mask, not by the cache length.",
    diff="-position_ids = torch.arange(n)\n+position_ids = (attention_mask.cumsum(-1) - 1).clamp(min=0)[:, -n:]",
    remedies={
        "recurrence": Remedy(
            text="Keep pads out of the state: their inputs to the scan and to the convolution must be zero, in the "
            "first call and in every later one."
        )
    },
    remedies_by_mixing=OF_PADDED_ROWS,
    required_inputs=frozenset({"cache", "mask"}),
)
