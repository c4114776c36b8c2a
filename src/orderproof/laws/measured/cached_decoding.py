"""OP401 cached_decoding: token-by-token decoding with a cache gives the output of one forward.

    f(x)_t = f(x_t; C(x_0 ... x_{t-1}))   for every t,

where C is the cache after the earlier calls. Compared with the model's default cache, with every other kind of cache
that it takes, and with explicit position ids. A text of more than `MAX_DECODED_TOKENS` tokens is prefilled but for its
last `LAST_DECODED_TOKENS` tokens; around a threshold, so is every text with other caches or explicit position ids.
Source: elementary; broken by positions that restart at each call, by ring buffers that roll one step early, and by
masks that are aligned to the wrong corner.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from orderproof.laws.causal_mask_line import cached_line_change
from orderproof.laws.measured.cached_calls import CachedCalls
from orderproof.laws.measured.controls import replace_first_token
from orderproof.laws.measured.measured_law import Comparison, MeasuredLaw, OutputPair
from orderproof.laws.measured.remedies import ON_A_CACHE
from orderproof.records.audit import Remedy
from orderproof.records.conventions import named_as_convention

GENERATED_TOKENS = 3
MAX_DECODED_TOKENS = 20  # a longer text is prefilled but for its last tokens
LAST_DECODED_TOKENS = 6


class CachedDecoding(MeasuredLaw):
    """The law of this module."""

    of_any_weights = True

    def comparisons(self, calls: CachedCalls) -> Iterator[Comparison]:
        yield Comparison("token-by-token decoding", _decode_token_by_token)
        if "positions" in calls.adapter.supported_inputs:
            yield Comparison(
                "token-by-token decoding with position ids", partial(_decode_token_by_token, explicit=True)
            )
        for kind in calls.adapter.cache_kinds():
            yield Comparison(f"token-by-token decoding into a {kind} cache", partial(_decode_token_by_token, kind=kind))
        if calls.adapter.supports_generation:
            yield Comparison("greedy generation", _compare_generation, of_token_ids=True)
            for cache in calls.adapter.generation_caches() if calls.base is None else ():
                yield Comparison(
                    f"greedy generation with a {cache} cache",
                    partial(_compare_generation, cache=cache),
                    of_token_ids=True,
                )

    def control(self, calls: CachedCalls) -> OutputPair:
        return replace_first_token(calls)


def _decode_token_by_token(calls: CachedCalls, *, explicit: bool = False, kind: str = "") -> OutputPair:
    rows, count = calls.default_tokens.shape[:2]
    prefilled = count - LAST_DECODED_TOKENS
    usual = calls.base is None or not (explicit or kind)  # else the last tokens still cross the threshold
    whole = count <= (MAX_DECODED_TOKENS if usual else LAST_DECODED_TOKENS)
    sizes = [1] * count if whole else [prefilled, *[1] * LAST_DECODED_TOKENS]
    past = calls.adapter.new_cache(kind, rows, count) if kind else None
    more = {"positions": calls.default_position_ids(count)} if explicit else {}
    decoded, _ = calls.incremental_forward(calls.default_tokens, sizes, past, **more)
    return calls.default_output, decoded


def _compare_generation(calls: CachedCalls, *, cache: str = "") -> OutputPair:
    """The ids of tokens that are chosen greedily without a cache, and of those that the library generates with one."""
    generated, by_hand = calls.adapter.greedy_generation(calls.default_tokens, GENERATED_TOKENS, cache=cache)
    return by_hand.double(), generated.double()


LAW = CachedDecoding(
    code="OP401",
    name="cached_decoding",
    statement="Token-by-token decoding with a cache gives the output of one forward.",
    trait="decodes with a cache as it prefills",
    expectation={"causal_lm": "holds"},
    remedy="Count positions on from the length of the cache, and align the causal mask to its end. "
    + named_as_convention("causal_fewer_queries", "causal_past"),
    diff="-position_ids = torch.arange(n)\n+position_ids = past_key_values.get_seq_length() + torch.arange(n)",
    remedies={
        "recurrence": Remedy(
            text="Carry the state of every layer from call to call, and let a step for one token compute what the scan "
            "over a whole text computes."
        ),
        "window": Remedy(
            text="Let the cache and the mask of a whole text agree on the window: the same tokens are visible in both."
        ),
    },
    remedies_by_mixing=ON_A_CACHE,
    line_change=cached_line_change,
    required_inputs=frozenset({"cache"}),
)
