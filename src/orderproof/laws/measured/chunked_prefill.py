"""OP402 chunked_prefill: a prefill in chunks gives the output of one forward, across sliding windows and chunks too.

    f(x)_{a..b} = f(x_{a..b}; C(x_0 ... x_{a-1}))   for chunks of several tokens on a cache that is not empty.

Token-by-token decoding can be right where this is wrong: recurrences often have a step for one token and a scan that
starts from the zero state.
Source: elementary; broken by recurrences that take no initial state, and by windows computed from the length of a
chunk.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise

from orderproof.errors import UnsupportedCallError, is_internal
from orderproof.laws.causal_mask_line import cached_line_change
from orderproof.laws.measured.cached_calls import CachedCalls
from orderproof.laws.measured.controls import replace_first_token
from orderproof.laws.measured.measured_law import Comparison, MeasuredLaw, OutputPair
from orderproof.laws.measured.remedies import ON_A_CACHE
from orderproof.records.audit import Remedy

IN_THREE = "in three"


class ChunkedPrefill(MeasuredLaw):
    """The law of this module."""

    of_any_weights = True
    inapplicable_if_unsupported = True

    def comparisons(self, calls: CachedCalls) -> Iterator[Comparison]:
        for group, sizes in chunk_sizes(calls.default_length, calls.adapter.context_spans).items():
            what = f"in chunks of {', '.join(map(str, sizes))} tokens"
            yield Comparison(what, partial(_prefill_in_chunks, sizes=sizes), group=group)
            if group == IN_THREE and "positions" in calls.adapter.supported_inputs:
                run = partial(_prefill_in_chunks, sizes=sizes, explicit=True)
                yield Comparison(f"{what} with position ids", run, group=f"{group} with position ids")

    def control(self, calls: CachedCalls) -> OutputPair:
        return replace_first_token(calls)


def chunk_sizes(tokens: int, spans: tuple[int, ...]) -> dict[str, list[int]]:
    """Ways to split the tokens, by name: into three, after the first, and around the end of every window or chunk."""
    third = max(tokens // 3, 1)
    cuts = {
        IN_THREE: [third, 2 * third],
        "after the first": [1],
        **{f"after {s - 1}": [s - 1] for s in spans},
        **{f"after {s}": [s] for s in spans},
        **{f"after {s + 1}": [s + 1] for s in spans},
    }
    splits: dict[str, list[int]] = {}
    for name, cut in cuts.items():
        edges = [0, *sorted({c for c in cut if 0 < c < tokens}), tokens]
        sizes = [b - a for a, b in pairwise(edges)]
        if len(sizes) > 1 and max(sizes[1:]) > 1 and sizes not in splits.values():
            splits[name] = sizes
    return splits


def _prefill_in_chunks(calls: CachedCalls, *, sizes: list[int], explicit: bool = False) -> OutputPair:
    more = {"positions": calls.default_position_ids(calls.default_length)} if explicit else {}
    try:
        output, _ = calls.incremental_forward(calls.default_tokens, sizes, **more)
    except (AssertionError, NotImplementedError) as error:
        if is_internal(error):
            raise
        raise UnsupportedCallError(f"it refuses several tokens on a cache: {error}") from error
    return calls.default_output, output


LAW = ChunkedPrefill(
    code="OP402",
    name="chunked_prefill",
    statement="A prefill in chunks of several tokens gives the output of one forward.",
    trait="prefills in chunks as in one call",
    expectation={"causal_lm": "holds"},
    remedy="Compute a chunk as a continuation of the cache: positions, masks and states go on where the cache ends.",
    remedies={
        "recurrence": Remedy(
            text="Start the scan and the convolution of a chunk from the state in the cache, not from zero.",
            diff="-state = scan(x, initial_state=None)\n+state = scan(x, initial_state=cache.state)",
        ),
        "window": Remedy(
            text="Mask a chunk by the positions of its tokens and of all cached ones within the window of each, and "
            "drop cached tokens after the chunk, not before."
        ),
    },
    remedies_by_mixing=ON_A_CACHE,
    line_change=cached_line_change,
    required_inputs=frozenset({"cache"}),
)
