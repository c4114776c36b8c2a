"""OP403 cache_editing: decoding after cropping, reordering or reusing a cache gives the output without a cache.

    crop     decode y after C(x z) without its last tokens z     =  f(x y)
    reorder  decode y after C(X) with its rows permuted          =  f of the permuted rows
    reuse    two continuations of one prefix, each on a copy     =  f(x y), f(x z)

Source: elementary; broken by ring buffers that are cropped by logical length, and by lengths that are not in a tensor.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from orderproof.laws.measured.cached_calls import CachedCalls
from orderproof.laws.measured.controls import replace_first_token
from orderproof.laws.measured.measured_law import Comparison, MeasuredLaw, OutputPair

CROPPED_TOKENS = 2


class CacheEditing(MeasuredLaw):
    """The law of this module."""

    def comparisons(self, calls: CachedCalls) -> Iterator[Comparison]:
        yield Comparison(f"the last {CROPPED_TOKENS} tokens cropped and others decoded", _crop)
        yield Comparison("the rows reordered", _reorder)
        yield Comparison("one prefix reused for two continuations", _reuse)

    def control(self, calls: CachedCalls) -> OutputPair:
        return replace_first_token(calls)


def _crop(calls: CachedCalls) -> OutputPair:
    kept = calls.default_length - CROPPED_TOKENS
    other = calls.sample_tokens(other=1)[:, kept:]
    rolls = "recording" in calls.adapter.cache_kinds()  # a cache that drops old tokens can be croppable on request
    empty = calls.adapter.new_cache("recording", len(other), calls.default_length) if rolls else None
    _, cache = calls.incremental_forward(calls.default_tokens, [calls.default_length], empty)
    cache = calls.adapter.crop_cache(cache, CROPPED_TOKENS)
    decoded, _ = calls.incremental_forward(other, [1] * CROPPED_TOKENS, cache)
    return calls.forward(torch.cat([calls.default_tokens[:, :kept], other], dim=1))[:, kept:], decoded


def _reorder(calls: CachedCalls) -> OutputPair:
    prefix, rows = calls.default_length - CROPPED_TOKENS, torch.tensor([1, 0])
    _, cache = calls.incremental_forward(calls.default_tokens[:, :prefix], [prefix])
    cache = calls.adapter.reorder_cache(cache, rows)
    decoded, _ = calls.incremental_forward(calls.default_tokens[rows, prefix:], [1] * CROPPED_TOKENS, cache)
    return calls.default_output[rows, prefix:], decoded


def _reuse(calls: CachedCalls) -> OutputPair:
    prefix = calls.default_length - CROPPED_TOKENS
    other = calls.sample_tokens(other=1)[:, prefix:]
    _, cache = calls.incremental_forward(calls.default_tokens[:, :prefix], [prefix])
    reused = calls.adapter.copy_cache(cache)
    calls.incremental_forward(other, [1] * CROPPED_TOKENS, cache)
    decoded, _ = calls.incremental_forward(calls.default_tokens[:, prefix:], [1] * CROPPED_TOKENS, reused)
    return calls.default_output[:, prefix:], decoded


LAW = CacheEditing(
    code="OP403",
    name="cache_editing",
    statement="Decoding after cropping, reordering or reusing a cache gives the output without a cache.",
    trait="gives the same output from an edited cache",
    expectation={"causal_lm": "holds"},
    remedy="Crop and reorder the tensors of every layer together with the lengths, offsets and masks stored with them.",
    required_inputs=frozenset({"cache"}),
)
