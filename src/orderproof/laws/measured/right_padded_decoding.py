"""OP408 right_padded_decoding: decoding after pads that follow real tokens gives the output of one forward.

    decode y after C(x pads)                      =  f(x pads y)      a short prompt in a batch with a longer one
    decode y, a pad and z after C(x)              =  f(x y pad z)     a row that waits while other rows go on

with the same mask, and the same position ids if any are given. Both sides have the same pads, so that how pads shift
positions or fill a window is the contract of the model; decoding must follow it.
Source: elementary; broken by masks that are dropped for a single token on a cache, and by states that a pad moves on.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch

from orderproof.laws.measured.cached_calls import CachedCalls
from orderproof.laws.measured.controls import replace_first_token
from orderproof.laws.measured.measured_law import Comparison, MeasuredLaw, OutputPair
from orderproof.records.audit import Remedy

PADS, DECODED_TOKENS = 2, 3


class RightPaddedDecoding(MeasuredLaw):
    """The law of this module."""

    def comparisons(self, calls: CachedCalls) -> Iterator[Comparison]:
        explicit = (False, True) if "positions" in calls.adapter.supported_inputs else (False,)
        for given in explicit:
            suffix = ", with position ids" if given else ""
            yield Comparison(
                f"token-by-token decoding after a right-padded prompt{suffix}",
                partial(_compare, pads_end=DECODED_TOKENS, count=PADS, explicit=given),
            )
            yield Comparison(
                f"a pad in one row during decoding{suffix}", partial(_compare, pads_end=1, count=1, explicit=given)
            )

    def control(self, calls: CachedCalls) -> OutputPair:
        return replace_first_token(calls)


def _compare(calls: CachedCalls, *, pads_end: int, count: int, explicit: bool) -> OutputPair:
    """The outputs of the real tokens that are decoded; the first row has pads that end before the last tokens."""
    tokens = calls.default_tokens.clone()
    length = tokens.shape[1]
    mask = torch.ones(tokens.shape[:2], dtype=torch.bool)
    mask[0, max(length - pads_end - count, 1) : length - pads_end] = False
    if calls.adapter.pad_token_id is not None and not tokens.is_floating_point():
        tokens[~mask] = calls.adapter.pad_token_id
    arguments = {"mask": mask}
    if explicit:
        arguments["positions"] = calls.adapter.first_position_id + (mask.long().cumsum(1) - 1).clamp(min=0)
    output, _ = calls.incremental_forward(tokens, [length - DECODED_TOKENS, *[1] * DECODED_TOKENS], **arguments)
    decoded = mask.clone()
    decoded[:, : length - DECODED_TOKENS] = False
    return calls.forward(tokens, **arguments)[decoded], output[decoded]


LAW = RightPaddedDecoding(
    code="OP408",
    name="right_padded_decoding",
    statement="Decoding after pads that follow real tokens gives the output of one forward with the same pads.",
    trait="decodes after right-padded prompts as in one forward",
    expectation={"causal_lm": "holds"},
    remedy="Keep the padding mask of every cached token, and apply it to a call with a single token too.",
    remedies={
        "recurrence": Remedy(
            text="Keep pads out of the state in the step for one token too: a pad must leave the state as it is."
        )
    },
    required_inputs=frozenset({"cache", "mask"}),
)
