"""OP408 right_padded_decoding: decoding after pads that follow real tokens gives the output of one forward.

    decode y after C(x pads)                      =  f(x pads y)      a short prompt in a batch with a longer one
    decode y, a pad and z after C(x)              =  f(x y pad z)     a row that waits while other rows go on

with the same mask, and the same position ids if any are given. Both sides have the same pads, so that how pads shift
positions or fill a window is the contract of the model; decoding must follow it. In a call of several tokens on a
cache, another token in the place of the pad must not change the real tokens:

    f(y pad z; C(x))                              =  f(y other z; C(x))

For information only: a pad as the single token of a call, if the library states that there is none. transformers does
so for layers with a recurrence (`masking_utils.create_recurrent_attention_mask`), and passes them no mask then.
Source: elementary; broken by masks that are dropped for a single token on a cache, and by states that a pad moves on.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from orderproof.laws.measured.cached_calls import CachedCalls
from orderproof.laws.measured.controls import replace_first_token
from orderproof.laws.measured.measured_law import Comparison, MeasuredLaw, OutputPair
from orderproof.laws.measured.remedies import OF_PADDED_ROWS
from orderproof.records.audit import Remedy

PADS, DECODED_TOKENS = 2, 3


class RightPaddedDecoding(MeasuredLaw):
    """The law of this module."""

    of_any_weights = True

    def comparisons(self, calls: CachedCalls) -> Iterator[Comparison]:
        explicit = (False, True) if "positions" in calls.adapter.supported_inputs else (False,)
        for given in explicit:
            suffix = ", with position ids" if given else ""
            yield Comparison(
                f"token-by-token decoding after a right-padded prompt{suffix}",
                partial(_compare, pads_end=DECODED_TOKENS, count=PADS, explicit=given),
            )
            yield Comparison(
                f"a pad in one row during decoding{suffix}",
                partial(_compare, pads_end=1, count=1, explicit=given),
                informational=calls.adapter.single_tokens_are_real,
            )
        if calls.default_length > DECODED_TOKENS:
            yield Comparison("another token in the place of a pad, in a call of three tokens on a cache", _replaced)

    def control(self, calls: CachedCalls) -> OutputPair:
        return replace_first_token(calls)


def _compare(calls: CachedCalls, *, pads_end: int, count: int, explicit: bool) -> OutputPair:
    """The outputs of the real tokens that are decoded; the first row has pads that end before the last tokens."""
    tokens, mask = _padded(calls, pads_end=pads_end, count=count)
    length = tokens.shape[1]
    decoded = min(DECODED_TOKENS, length - 1)
    arguments = {"mask": mask}
    if explicit:
        arguments["positions"] = calls.adapter.first_position_id + (mask.long().cumsum(1) - 1).clamp(min=0)
    output, _ = calls.incremental_forward(tokens, [length - decoded, *[1] * decoded], **arguments)
    real = mask.clone()
    real[:, : length - decoded] = False
    return calls.forward(tokens, **arguments)[real], output[real]


def _replaced(calls: CachedCalls) -> OutputPair:
    """The real tokens of a call with a pad in one row, and of the same call with another token in its place."""
    tokens, mask = _padded(calls, pads_end=1, count=1)
    other = tokens.clone()
    other[~mask] = calls.sample_tokens(other=1)[~mask]
    sizes = [tokens.shape[1] - DECODED_TOKENS, DECODED_TOKENS]
    first, second = (calls.incremental_forward(ids, sizes, mask=mask)[0] for ids in (tokens, other))
    return first[mask], second[mask]


def _padded(calls: CachedCalls, *, pads_end: int, count: int) -> tuple[Tensor, Tensor]:
    """The default tokens with pads in the first row that end before its last tokens, and their mask [row, token]."""
    tokens = calls.default_tokens.clone()
    length = tokens.shape[1]
    mask = torch.ones(tokens.shape[:2], dtype=torch.bool)
    mask[0, max(length - pads_end - count, 1) : length - pads_end] = False
    if calls.adapter.pad_token_id is not None and not tokens.is_floating_point():
        tokens[~mask] = calls.adapter.pad_token_id
    return tokens, mask


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
    remedies_by_mixing=OF_PADDED_ROWS,
    required_inputs=frozenset({"cache", "mask"}),
)
