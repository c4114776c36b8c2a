"""OP402 cache_chunks: one forward gives what a prefill in chunks gives, across windows and chunks too.

    f(x)_{a..b} = f(x_{a..b}; C(x_0 ... x_{a-1}))   for chunks of several tokens on a cache that is not empty.

Decoding one token at a time can be right where this is wrong: recurrences often have a step for one token and a scan
that starts from nothing.
Source: elementary; broken by recurrences that take no first state, and by windows read off the length of a chunk.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import Any

from torch import Tensor

from orderproof.blocks.driving import TransformerDriver, decoder
from orderproof.driver import Answer
from orderproof.errors import Unsupported
from orderproof.laws.measured.bench import Bench
from orderproof.laws.measured.controls import other_first_token
from orderproof.laws.measured.law import MeasuredLaw, Sides, Trial


class Forgetful(TransformerDriver):
    """The same, with a cached branch that is right for one token only: more start from an empty cache."""

    def call(self, tokens: Tensor, *, past: Any = None, **given: Any) -> Answer:
        if past is not None and tokens.shape[1] > 1:
            past = self.module.new_caches(len(tokens), past[0].length)
        return super().call(tokens, past=past, **given)


class CacheChunks(MeasuredLaw):
    """See the module's text."""

    optional = True

    def trials(self, bench: Bench) -> Iterator[Trial]:
        for sizes in splits(bench.length, bench.driver.stretches):
            yield Trial(f"in chunks of {', '.join(map(str, sizes))} tokens", partial(_in_chunks, sizes=sizes))

    def control(self, bench: Bench) -> Sides:
        return other_first_token(bench)


def splits(tokens: int, stretches: tuple[int, ...]) -> list[list[int]]:
    """Ways to cut so many tokens: into three, after the first, and beside the end of every stretch."""
    third = max(tokens // 3, 1)
    cuts = [
        [third, 2 * third],
        [1],
        *([s - 1] for s in stretches),
        *([s] for s in stretches),
        *([s + 1] for s in stretches),
    ]
    found = []
    for cut in cuts:
        edges = [0, *sorted({c for c in cut if 0 < c < tokens}), tokens]
        sizes = [b - a for a, b in pairwise(edges)]
        if len(sizes) > 1 and max(sizes[1:]) > 1 and sizes not in found:
            found.append(sizes)
    return found


def _in_chunks(bench: Bench, *, sizes: list[int]) -> Sides:
    try:
        made, _ = bench.steps(bench.tokens, sizes)
    except (AssertionError, NotImplementedError) as error:
        raise Unsupported(f"it refuses several tokens on a cache: {error}") from error
    return bench.whole, made


LAW = CacheChunks(
    code="OP402",
    name="cache_chunks",
    statement="One forward gives what a prefill in chunks of several tokens gives.",
    expectation={"causal_lm": "holds"},
    fix="Start the scan, the convolution and the window of a chunk from what the cache holds, not from nothing.",
    diff="-state = scan(x, initial_state=None)\n+state = scan(x, initial_state=cache.state)",
    honest=decoder,
    faulty=lambda: decoder(of=Forgetful),
    needs=frozenset({"cache"}),
)
