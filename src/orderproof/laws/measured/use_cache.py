"""OP404 use_cache: a forward gives the same output with use_cache on and off.

    f(x, use_cache) = f(x)      consecutive position ids without a mask, and rows padded on the left

Position ids with a gap are compared for information: transformers reads a gap as the start of another sequence, but
only in a call without a mask and without a cache.
Source: elementary; broken by layers that share keys and values through the cache object.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from orderproof.laws.measured.cached_calls import CachedCalls
from orderproof.laws.measured.controls import replace_last_token
from orderproof.laws.measured.measured_law import Comparison, MeasuredLaw, OutputPair

PADS = 2
GAP = 7  # [tokens]
GAP_NOTE = "a gap in position ids cuts the sequence in a call without a cache, and not in one with a cache"


class UseCache(MeasuredLaw):
    """The law of this module."""

    of_any_weights = True

    def comparisons(self, calls: CachedCalls) -> Iterator[Comparison]:
        yield Comparison("use_cache on, without position ids and mask", partial(_compare_use_cache, keep=True))
        yield Comparison("use_cache not given, without position ids and mask", partial(_compare_use_cache, keep=None))
        if "mask" in calls.adapter.supported_inputs:
            yield Comparison("use_cache on, padded on the left", _compare_padded)
        if "positions" in calls.adapter.supported_inputs:
            yield Comparison(
                f"use_cache on, position ids with a gap of {GAP}", _compare_with_gap, informational=True, note=GAP_NOTE
            )

    def control(self, calls: CachedCalls) -> OutputPair:
        return replace_last_token(calls)


def _compare_use_cache(calls: CachedCalls, *, keep: bool | None) -> OutputPair:
    return calls.default_output, calls.uncached_call(calls.default_tokens, keep=keep).output


def _compare_padded(calls: CachedCalls) -> OutputPair:
    tokens, arguments = calls.default_tokens, {}
    mask = torch.ones(tokens.shape[:2], dtype=torch.bool)
    mask[0, :PADS] = False
    arguments["mask"] = mask
    if "positions" in calls.adapter.supported_inputs:
        arguments["positions"] = calls.adapter.first_position_id + (mask.long().cumsum(1) - 1).clamp(min=0)
    expected, actual = _off_and_on(calls, arguments)
    if expected.shape[:2] != mask.shape:
        real = mask.all(1)  # which outputs belong to pads is not known
        return expected[real], actual[real]
    return expected[mask], actual[mask]


def _compare_with_gap(calls: CachedCalls) -> OutputPair:
    positions = calls.default_position_ids(calls.default_length).clone()
    positions[:, calls.default_length // 2 :] += GAP
    return _off_and_on(calls, {"positions": positions})


def _off_and_on(calls: CachedCalls, arguments: dict[str, Tensor]) -> OutputPair:
    off, on = (calls.uncached_call(calls.default_tokens, keep=keep, **arguments).output for keep in (False, True))
    return off, on


LAW = UseCache(
    code="OP404",
    name="use_cache",
    statement="A forward gives the same output with use_cache on and off.",
    trait="gives the same output with and without a cache",
    expectation={"causal_lm": "holds"},
    remedy="Pass shared keys, values and masks from layer to layer, not through the cache object.",
    required_inputs=frozenset({"cache"}),
)
