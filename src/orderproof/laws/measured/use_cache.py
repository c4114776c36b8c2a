"""OP404 use_cache: a forward gives the same output with use_cache on and off.

Source: elementary; broken by layers that share keys and values through the cache object.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from orderproof.laws.measured.cached_calls import CachedCalls
from orderproof.laws.measured.controls import replace_last_token
from orderproof.laws.measured.measured_law import Comparison, MeasuredLaw, OutputPair


class UseCache(MeasuredLaw):
    """The law of this module."""

    of_any_weights = True

    def comparisons(self, calls: CachedCalls) -> Iterator[Comparison]:
        yield Comparison("use_cache on", partial(_compare_use_cache, keep=True))
        yield Comparison("use_cache not given", partial(_compare_use_cache, keep=None))

    def control(self, calls: CachedCalls) -> OutputPair:
        return replace_last_token(calls)


def _compare_use_cache(calls: CachedCalls, *, keep: bool | None) -> OutputPair:
    return calls.default_output, calls.uncached_call(calls.default_tokens, keep=keep).output


LAW = UseCache(
    code="OP404",
    name="use_cache",
    statement="A forward gives the same output with use_cache on and off.",
    trait="gives the same output with and without a cache",
    expectation={"causal_lm": "holds"},
    remedy="Pass shared keys, values and masks from layer to layer, not through the cache object.",
    required_inputs=frozenset({"cache"}),
)
