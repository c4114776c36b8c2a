"""OP403 cache_edits: cropping, reordering and reusing a cache give what working it out anew gives.

    crop     decode y after C(x z) without its last tokens z     =  f(x y)
    reorder  decode y after C(X) with its rows permuted          =  f of the permuted rows
    reuse    two continuations of one prefix, each on a copy     =  f(x y), f(x z)

Source: elementary; broken by rings that are cut by logical length, and by lengths kept beside the tensors.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import torch

from orderproof.blocks.driving import TransformerDriver, decoder
from orderproof.laws.measured.bench import Bench
from orderproof.laws.measured.controls import other_first_token
from orderproof.laws.measured.law import MeasuredLaw, Sides, Trial

CUT = 2


class WrongEnd(TransformerDriver):
    """The same, with a crop that counts the last tokens off and takes the first keys and values out."""

    def cropped(self, cache: Any, tokens: int) -> Any:
        cache = super().cropped(cache, tokens)
        for layer in cache:
            layer.keys, layer.values = (x.roll(-tokens, dims=2) for x in (layer.keys, layer.values))
        return cache


class CacheEdits(MeasuredLaw):
    """See the module's text."""

    def trials(self, bench: Bench) -> Iterator[Trial]:
        yield Trial(f"the last {CUT} tokens cropped and others decoded", _crop)
        yield Trial("the rows exchanged", _reorder)
        yield Trial("one prefix continued twice", _reuse)

    def control(self, bench: Bench) -> Sides:
        return other_first_token(bench)


def _crop(bench: Bench) -> Sides:
    kept = bench.length - CUT
    other = bench.draw(other=1)[:, kept:]
    rolls = "recording" in bench.driver.caches()  # where a window forgets, a cache must be told to remember
    empty = bench.driver.new_cache("recording", len(other), bench.length) if rolls else None
    _, cache = bench.steps(bench.tokens, [bench.length], empty)
    cache = bench.driver.cropped(cache, CUT)
    made, _ = bench.steps(other, [1] * CUT, cache)
    return bench.forward(torch.cat([bench.tokens[:, :kept], other], dim=1))[:, kept:], made


def _reorder(bench: Bench) -> Sides:
    prefix, rows = bench.length - CUT, torch.tensor([1, 0])
    _, cache = bench.steps(bench.tokens[:, :prefix], [prefix])
    cache = bench.driver.reordered(cache, rows)
    made, _ = bench.steps(bench.tokens[rows, prefix:], [1] * CUT, cache)
    return bench.whole[rows, prefix:], made


def _reuse(bench: Bench) -> Sides:
    prefix = bench.length - CUT
    other = bench.draw(other=1)[:, prefix:]
    _, cache = bench.steps(bench.tokens[:, :prefix], [prefix])
    kept = copy.deepcopy(cache)
    bench.steps(other, [1] * CUT, cache)
    made, _ = bench.steps(bench.tokens[:, prefix:], [1] * CUT, kept)
    return bench.whole[:, prefix:], made


LAW = CacheEdits(
    code="OP403",
    name="cache_edits",
    statement="Cropping, reordering and reusing a cache give what working it out anew gives.",
    expectation={"causal_lm": "holds"},
    fix="Crop and reorder the tensors of every layer together with every length, offset and mask kept beside them.",
    honest=decoder,
    faulty=lambda: decoder(of=WrongEnd),
    needs=frozenset({"cache"}),
)
