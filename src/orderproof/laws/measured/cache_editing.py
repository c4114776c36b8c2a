"""OP403 cache_editing: decoding after cropping, reordering or reusing a cache is as without the edit.

    crop     decode y after C(x z) without its last tokens z     =  decode y after C(x)
    reorder  decode y after C(X) with its rows permuted          =  decode y after C of the permuted rows
    reuse    two continuations of one prefix, each on a copy     =  each continuation of a prefix of its own

Both sides decode with a cache, so that a defect of decoding itself (OP401) is not found here again. A crop of a
quantised cache is for information only: the class of the cache decides it, and not the model.
Source: elementary; broken by ring buffers that are cropped by logical length, and by lengths that are not in a tensor.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor

from orderproof.laws.measured.cached_calls import CachedCalls
from orderproof.laws.measured.controls import replace_first_token
from orderproof.laws.measured.measured_law import Comparison, MeasuredLaw, OutputPair

CROPPED_TOKENS = 2


class CacheEditing(MeasuredLaw):
    """The law of this module."""

    of_any_weights = True

    def comparisons(self, calls: CachedCalls) -> Iterator[Comparison]:
        yield Comparison(f"the last {CROPPED_TOKENS} tokens cropped and others decoded", _crop)
        yield Comparison("the rows reordered", _reorder)
        yield Comparison("the rows reordered after a prefill in chunks", partial(_reorder, in_chunks=True))
        if "positions" in calls.adapter.supported_inputs:
            yield Comparison("the rows reordered, with position ids", partial(_reorder, explicit=True))
        yield Comparison("one prefix reused for two continuations", _reuse)
        if calls.adapter.repeats_cache:
            yield Comparison("the prefix of one row reused for two rows", _repeat)
        if calls.base is None and "quantised" in calls.adapter.cache_kinds():
            what = "a decoded token cropped from a quantised cache and others decoded"
            yield Comparison(what, _crop_quantised, informational=True)

    def control(self, calls: CachedCalls) -> OutputPair:
        return replace_first_token(calls)


def _crop(calls: CachedCalls) -> OutputPair:
    kept = calls.default_length - CROPPED_TOKENS
    other = calls.sample_tokens(other=1)[:, kept:]
    _, cache = calls.incremental_forward(calls.default_tokens, [calls.default_length], _rollable_cache(calls))
    cache = calls.adapter.crop_cache(cache, CROPPED_TOKENS)
    decoded, _ = calls.incremental_forward(other, [1] * CROPPED_TOKENS, cache)
    tokens = torch.cat([calls.default_tokens[:, :kept], other], dim=1)
    return _decoded(calls, tokens, _rollable_cache(calls)), decoded


def _crop_quantised(calls: CachedCalls) -> OutputPair:
    """As `_crop`, of a token in full precision: the other tokens of the cache are in its quantised part."""
    kept = calls.default_length - CROPPED_TOKENS
    other = calls.sample_tokens(other=1)[:, kept:]
    outputs = []
    for cropped in (0, 1):
        cache = calls.adapter.new_cache("quantised", calls.adapter.batch_size, calls.default_length)
        calls.incremental_forward(calls.default_tokens[:, : kept + cropped], [kept - 2, *[1] * (2 + cropped)], cache)
        cache = calls.adapter.crop_cache(cache, cropped) if cropped else cache
        outputs.append(calls.incremental_forward(other, [1] * CROPPED_TOKENS, cache)[0])
    return outputs[0], outputs[1]


def _rollable_cache(calls: CachedCalls) -> Any:
    """An empty cache that keeps what it drops, if the model has a cache that drops old tokens."""
    rolls = "recording" in calls.adapter.cache_kinds()
    return calls.adapter.new_cache("recording", calls.adapter.batch_size, calls.default_length) if rolls else None


def _reorder(calls: CachedCalls, *, in_chunks: bool = False, explicit: bool = False) -> OutputPair:
    count, rows = calls.default_length, torch.tensor([1, 0])
    prefix = count - CROPPED_TOKENS
    sizes = [1, prefix - 1] if in_chunks and prefix > 1 else [prefix]
    positions = calls.default_position_ids(count) if explicit else None
    _, cache = calls.incremental_forward(calls.default_tokens[:, :prefix], sizes, positions=positions)
    cache = calls.adapter.reorder_cache(cache, rows)
    later = None if positions is None else positions[:, prefix:]
    decoded, _ = calls.incremental_forward(
        calls.default_tokens[rows, prefix:], [1] * CROPPED_TOKENS, cache, positions=later
    )
    whole = calls.default_tokens[rows]
    output, _ = calls.incremental_forward(whole, [*sizes, *[1] * CROPPED_TOKENS], positions=positions)
    return output[:, prefix:], decoded


def _repeat(calls: CachedCalls) -> OutputPair:
    prefix = calls.default_length - CROPPED_TOKENS
    tokens = calls.default_tokens.clone()
    tokens[:, :prefix] = tokens[:1, :prefix]
    _, cache = calls.incremental_forward(tokens[:1, :prefix], [prefix])
    cache = calls.adapter.repeat_cache(cache, len(tokens))
    decoded, _ = calls.incremental_forward(tokens[:, prefix:], [1] * CROPPED_TOKENS, cache)
    return _decoded(calls, tokens), decoded


def _reuse(calls: CachedCalls) -> OutputPair:
    prefix = calls.default_length - CROPPED_TOKENS
    other = calls.sample_tokens(other=1)[:, prefix:]
    _, cache = calls.incremental_forward(calls.default_tokens[:, :prefix], [prefix])
    reused = calls.adapter.copy_cache(cache)
    calls.incremental_forward(other, [1] * CROPPED_TOKENS, cache)
    decoded, _ = calls.incremental_forward(calls.default_tokens[:, prefix:], [1] * CROPPED_TOKENS, reused)
    return _decoded(calls, calls.default_tokens), decoded


def _decoded(calls: CachedCalls, tokens: Tensor, past: Any = None) -> Tensor:
    """The outputs of the last tokens, decoded on a cache of the others that was not edited."""
    prefix = tokens.shape[1] - CROPPED_TOKENS
    output, _ = calls.incremental_forward(tokens, [prefix, *[1] * CROPPED_TOKENS], past)
    return output[:, prefix:]


LAW = CacheEditing(
    code="OP403",
    name="cache_editing",
    statement="Decoding after cropping, reordering or reusing a cache is the same as without the edit.",
    trait="gives the same output from an edited cache",
    expectation={"causal_lm": "holds"},
    remedy="Crop and reorder the tensors of every layer together with the lengths, offsets and masks stored with them.",
    required_inputs=frozenset({"cache"}),
)
