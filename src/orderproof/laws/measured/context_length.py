"""OP304 context_length: beyond its stated length a model extends or raises an error, without clamp, wrap or NaN.

With N the stated length, the rows of the position table, or the number of tokens that get outputs, and positions
counted from 0:

    by position ids     f(x; N), f(x; N + 1), f(x; 2N - 1) are finite or raise an error;
                        none of them equals f(x; N - 1), and f(x; N + k) does not equal f(x; k)
    by length           f of N + 1 and of 2N tokens have a finite output for each token or raise an error, and equal f
                        with explicit ids;
                        without a causal mask, exchanging two tokens beyond the end changes the outputs of the others

Only the last of a few tokens is moved, which shows in relative encodings too. Clamping gives two tokens one position:
exchanging them changes no other output, while exchanging tokens within the length does. (In a causal model an
exchange changes later outputs even without positions.) An error is a good result. If even the last positions within
the length are not distinct, as with buckets of distances, the comparison is not made.
Source: gty111/gLLM#269, karpathy/nanochat#514, huggingface/transformers#11242.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from orderproof.adapter import ModelAdapter
from orderproof.errors import UnsupportedCallError
from orderproof.laws.measured.cached_calls import CachedCalls
from orderproof.laws.measured.controls import replace_first_token
from orderproof.laws.measured.distinct_positions import PREFIX_TOKENS, outputs_at_positions
from orderproof.laws.measured.measured_law import Comparison, MeasuredLaw, OutputPair
from orderproof.recording.execution import relative_difference
from orderproof.records.conventions import named_as_convention

OPEN_LENGTH = (
    "Give each token an output, or raise an error that names the length. An export keeps the number of tokens of its "
    "example wherever the code takes it as a number: take the size of a tensor, and export with a dynamic axis."
)
MAX_TOKENS = 150  # a longer stated length is tested by position ids only
MIN_POSITION_EFFECT = 1e-3  # relative: the least difference of two positions within the length
WRAP_TEST_POSITION = PREFIX_TOKENS + 1  # the position at which a wrap is tested


class ContextLength(MeasuredLaw):
    """The law of this module."""

    may_raise = True
    of_any_weights = True
    every_length = False
    ignores_length = "it is measured at and past the stated length"

    def inapplicable_reason(self, adapter: ModelAdapter) -> str | None:
        return None if context_length(adapter) else "it states no context length"

    def comparisons(self, calls: CachedCalls) -> Iterator[Comparison]:
        end = context_length(calls.adapter)
        assert end is not None
        if "positions" in calls.adapter.supported_inputs and end > PREFIX_TOKENS + 2:
            for place in (end - 1, end, end + 1, 2 * end - 1):
                yield Comparison(f"position {place}: finite output", partial(_finite_at_position, place=place))
            for place, other in (
                (end, end - 1),
                (2 * end - 1, end - 1),
                (end + WRAP_TEST_POSITION, WRAP_TEST_POSITION),
            ):
                what = f"position {place} differs from position {other}"
                yield Comparison(what, partial(_compare_positions, pair=(place, other)), expects_difference=True)
        if calls.adapter.has_token_axis and calls.default_length < end <= MAX_TOKENS:
            yield from _by_length(calls, end)

    def control(self, calls: CachedCalls) -> OutputPair:
        return replace_first_token(calls)


def _by_length(calls: CachedCalls, end: int) -> Iterator[Comparison]:
    for tokens in (end, end + 1, 2 * end):
        yield Comparison(f"{tokens} tokens: finite output", partial(_finite_at_length, tokens=tokens))
    if _cuts_tokens(calls, end + 1):
        yield Comparison(
            f"{end + 1} tokens: an output for each", partial(_count, tokens=end + 1), remedy=OPEN_LENGTH,
            counts_tokens=True,
        )  # fmt: skip
        return
    if "positions" in calls.adapter.supported_inputs:
        yield Comparison(f"{2 * end} tokens with explicit position ids", partial(_compare_explicit_ids, tokens=2 * end))
    if not calls.adapter.causal:
        for pair in ((end, end + 1), (WRAP_TEST_POSITION, end + WRAP_TEST_POSITION)):
            what = f"{2 * end} tokens, with {pair[0]} and {pair[1]} exchanged"
            yield Comparison(what, partial(_compare_exchange, tokens=2 * end, pair=pair), expects_difference=True)


def context_length(adapter: ModelAdapter) -> int | None:
    """The number of positions that a model states: the first position beyond them, counted from 0."""
    return adapter.max_positions or adapter.config_max_positions


def _finite_at_position(calls: CachedCalls, *, place: int) -> OutputPair:
    return _finite(outputs_at_positions(calls, [place], calls.forward_at))


def _finite_at_length(calls: CachedCalls, *, tokens: int) -> OutputPair:
    return _finite(calls.forward(calls.sample_tokens(tokens, rows=1)))


def _cuts_tokens(calls: CachedCalls, tokens: int) -> bool:
    """True if a call gives fewer outputs than it has tokens, and one for each of fewer tokens, as latents are not."""
    try:
        expected, found = _count(calls, tokens=tokens)
        usual = _count(calls, tokens=calls.default_length)
    except Exception:  # noqa: BLE001 - third-party code: a call may fail in any way
        return False
    return bool(found < expected) and torch.equal(*usual)


def _count(calls: CachedCalls, *, tokens: int) -> OutputPair:
    """The numbers of tokens and of their outputs, the same for a pooled output."""
    output = calls.forward(calls.sample_tokens(tokens, rows=1))
    has_tokens = output.dim() == 3 and not calls.adapter.has_pooled_output
    return torch.tensor([float(tokens)]), torch.tensor([float(output.shape[1] if has_tokens else tokens)])


def _finite(output: Tensor) -> OutputPair:
    finite = output.isfinite().double()
    return torch.ones_like(finite), finite


def _compare_positions(calls: CachedCalls, *, pair: tuple[int, int]) -> OutputPair:
    """The outputs with the last token at either position, if the last positions within the length are distinct."""
    end = context_length(calls.adapter)
    assert end is not None
    inner = [outputs_at_positions(calls, [place], calls.forward_at) for place in (end - 2, end - 1)]
    if relative_difference(*inner) < MIN_POSITION_EFFECT:
        raise UnsupportedCallError("the last positions within its length are not distinct either")
    first, second = (outputs_at_positions(calls, [place], calls.forward_at) for place in pair)
    return first, second


def _compare_explicit_ids(calls: CachedCalls, *, tokens: int) -> OutputPair:
    text = calls.sample_tokens(tokens, rows=1)
    return calls.forward_at(text, calls.default_position_ids(tokens, rows=1)), calls.forward(text)


def _compare_exchange(calls: CachedCalls, *, tokens: int, pair: tuple[int, int]) -> OutputPair:
    """The outputs of the other tokens before and after an exchange, if an exchange within the length changes them."""
    if relative_difference(*_outputs_of_exchange(calls, tokens, (tokens // 4, tokens // 4 + 1))) < MIN_POSITION_EFFECT:
        raise UnsupportedCallError("exchanging two tokens within its length changes no other output")
    return _outputs_of_exchange(calls, tokens, pair)


def _outputs_of_exchange(calls: CachedCalls, tokens: int, pair: tuple[int, int]) -> OutputPair:
    text = calls.sample_tokens(tokens, rows=1)
    other = text.clone()
    other[:, list(pair)] = text[:, list(reversed(pair))]
    first, second = calls.forward(text), calls.forward(other)
    if first.dim() != 3:
        return first, second
    others = torch.ones(first.shape[1], dtype=torch.bool)
    others[list(pair)] = False
    return first[:, others], second[:, others]


LAW = ContextLength(
    code="OP304",
    name="context_length",
    statement="Beyond its stated length a model extends or raises an error, without clamp, wrap, cut or NaN.",
    trait="extends beyond its stated length, or raises an error",
    expectation={"causal_lm": "holds", "encoder": "holds"},
    remedy="Beyond the last position compute the encoding or raise an error that names the length; do not clamp it. "
    + named_as_convention("after_the_end"),
    diff="-table[position_ids.clamp(max=len(table) - 1)]\n+table[position_ids]",
)
