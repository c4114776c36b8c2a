"""OP305 default_position_ids: without position ids a model uses those that it documents, on a cache too.

    f(x) = f(x; p0, p0 + 1, ...),   and   f(x_t; C) = f(x_t; C, p0 + t),

with p0 the first position id: 0, or one more than the pad token's id in RoBERTa and models derived from it.
Source: elementary; broken by ids that restart at each call, and by two code paths that count differently.
"""

from __future__ import annotations

from collections.abc import Iterator

from orderproof.laws.measured.cached_calls import CachedCalls
from orderproof.laws.measured.controls import move_second_half
from orderproof.laws.measured.measured_law import Comparison, MeasuredLaw, OutputPair


class DefaultPositionIds(MeasuredLaw):
    """The law of this module."""

    of_any_weights = True

    def comparisons(self, calls: CachedCalls) -> Iterator[Comparison]:
        yield Comparison("one forward", _compare_forward)
        if "mask" in calls.adapter.supported_inputs:
            yield Comparison("one forward with an attention mask", _compare_with_mask)
        if "cache" in calls.adapter.supported_inputs:
            yield Comparison("decoding from a cache", _compare_cached)

    def control(self, calls: CachedCalls) -> OutputPair:
        return move_second_half(calls)


def _compare_forward(calls: CachedCalls) -> OutputPair:
    return calls.default_output, calls.forward(
        calls.default_tokens, positions=calls.default_position_ids(calls.default_length)
    )


def _compare_with_mask(calls: CachedCalls) -> OutputPair:
    by_default = calls.forward(calls.default_tokens, mask=calls.all_ones_mask(calls.default_tokens))
    return by_default, calls.forward_at(calls.default_tokens, calls.default_position_ids(calls.default_length))


def _compare_cached(calls: CachedCalls) -> OutputPair:
    count = calls.default_length
    sizes = [count - 1, 1]
    by_default, _ = calls.incremental_forward(calls.default_tokens, sizes)
    explicit, _ = calls.incremental_forward(calls.default_tokens, sizes, positions=calls.default_position_ids(count))
    return explicit[:, -1], by_default[:, -1]


LAW = DefaultPositionIds(
    code="OP305",
    name="default_position_ids",
    statement="Without position ids a model uses those that it documents, on a cache too.",
    trait="numbers tokens as documented by default",
    expectation={"causal_lm": "holds", "encoder": "holds"},
    remedy="Compute default ids in one place: the first position, plus the length of the cache, plus 0, 1, 2, ...",
    diff="-position_ids = torch.arange(1, n + 1)\n+position_ids = first + past_length + torch.arange(n)",
    required_inputs=frozenset({"positions"}),
)
