"""OP205 attention_pattern: an output depends on exactly the tokens of the attention pattern.

    D[i, j] = 1 if output i changes when token j is replaced
    required[i, j]  =>  D[i, j]  =>  allowed[i, j]

`allowed` and `required` follow from the configuration (causal, window, chunk, full), composed over the layers: a window
of w tokens reaches w tokens through one layer and 1 + 2 (w - 1) through two. The law `causal` does not find an encoder
that is silently causal, nor a window that is one token too short. Both calls have the same shape and each row is
compared with itself, so a token outside the pattern changes no bit.
Source: elementary; broken by causal flags that default to true, and by windows whose edge is included in one place and
excluded in another.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from orderproof.adapter import AttentionPattern, ModelAdapter
from orderproof.errors import UnsupportedCallError
from orderproof.laws.measured.cached_calls import CachedCalls
from orderproof.laws.measured.controls import replace_last_token
from orderproof.laws.measured.measured_law import Comparison, MeasuredLaw, OutputPair
from orderproof.records.audit import Expectation
from orderproof.records.conventions import named_as_convention

MAX_REPLACED_TOKENS = 20  # each in a row of its own


class AttentionPatternLaw(MeasuredLaw):
    """The law of this module."""

    of_any_weights = True
    zero_tolerance = True
    inapplicable_if_unsupported = True  # a pooled output has no tokens

    def inapplicable_reason(self, adapter: ModelAdapter) -> str | None:
        if not adapter.has_token_axis:
            return "its tokens are inside an image"
        return (
            "its configuration does not determine its attention pattern"
            if adapter.attention_pattern(2) is None
            else None
        )

    def expected_of(self, adapter: ModelAdapter, model_kind: str) -> Expectation:
        """A pattern that the adapter of a module states should hold."""
        stated = model_kind == "module" and type(adapter).attention_pattern is not ModelAdapter.attention_pattern
        return "holds" if stated and self.inapplicable_reason(adapter) is None else self.expected(model_kind)

    def comparisons(self, calls: CachedCalls) -> Iterator[Comparison]:
        pattern = _pattern(calls)
        if not bool(pattern.allowed.all()):
            yield Comparison("a token outside the attention pattern replaced", _compare_hidden_pairs)
        if bool((pattern.required & ~torch.eye(len(pattern.required), dtype=torch.bool)).any()):
            yield Comparison(
                "a token inside the attention pattern replaced",
                _compare_visible_pairs,
                expects_difference=True,
                remedy=MISSING_DEPENDENCE_REMEDY,
            )

    def control(self, calls: CachedCalls) -> OutputPair:
        return replace_last_token(calls)


MISSING_DEPENDENCE_REMEDY = (
    "Attend to every token of the pattern: look for a causal flag that is on, or a window one token too short. "
    + named_as_convention("window")
)


def _pattern(calls: CachedCalls) -> AttentionPattern:
    """The pattern of the tokens; in the default call, of enough to exceed two layers of the longest window or chunk."""
    adapter, tokens = calls.adapter, calls.default_length
    if adapter.context_spans and calls.base is None:
        tokens = max(tokens, 2 * max(adapter.context_spans) + 2)
    pattern = adapter.attention_pattern(min(tokens, adapter.max_positions or tokens))
    if pattern is None:
        raise UnsupportedCallError("its configuration does not determine its attention pattern")
    return pattern


def _outputs_before_and_after(calls: CachedCalls, pairs: Tensor) -> OutputPair:
    """Outputs before and after [pair, feature], for pairs [output, replaced token]."""
    count, replaced = len(pairs), _replaced_tokens(calls, len(pairs))
    tokens = calls.sample_tokens(count, rows=1).repeat_interleave(len(replaced), 0)
    own = torch.zeros(len(replaced), count, dtype=torch.bool)
    own[torch.arange(len(replaced)), replaced] = True
    changed = tokens.clone()
    changed[own] = _different_tokens(calls, tokens[own])
    before, after = calls.forward(tokens), calls.forward(changed)
    if before.dim() != 3 or before.shape[1] != count:  # a pooled output may have as many features as there are tokens
        raise UnsupportedCallError("it does not give one output per token")
    rows, columns = pairs.T[replaced].nonzero(as_tuple=True)  # the row in which a token was replaced, and the output
    if not len(rows):
        raise UnsupportedCallError("no such pair among the tokens that are replaced")
    return before[rows, columns], after[rows, columns]


def _replaced_tokens(calls: CachedCalls, count: int) -> Tensor:
    """The tokens to replace: all, but of a long text the first and the last ones and those around a threshold."""
    if count <= MAX_REPLACED_TOKENS:
        return torch.arange(count)
    ends = [t.tokens for t in calls.adapter.thresholds]
    wanted = {0, count // 2, count - 1, *(count - 1 - n + k for n in ends for k in (0, 1))}
    return torch.tensor(sorted(n for n in wanted if 0 <= n < count))


def _different_tokens(calls: CachedCalls, tokens: Tensor) -> Tensor:
    """Tokens that differ from these, each from the one at its place."""
    result = tokens
    for other in range(1, 5):
        same = (result == tokens).flatten(1).all(1) if tokens.dim() > 1 else result == tokens
        drawn = calls.sample_tokens(len(tokens), rows=1, other=other)[0]
        result = torch.where(same.reshape(-1, *[1] * (tokens.dim() - 1)), drawn, result)
    return result


def _compare_hidden_pairs(calls: CachedCalls) -> OutputPair:
    return _outputs_before_and_after(calls, ~_pattern(calls).allowed)


def _compare_visible_pairs(calls: CachedCalls) -> OutputPair:
    """The outputs of the pair that differs least of those that must differ."""
    before, after = _outputs_before_and_after(calls, _pattern(calls).required)
    least = (before - after).abs().amax(1) / before.abs().amax(1).clamp(min=torch.finfo(before.dtype).tiny)
    worst = int(least.argmin())
    return before[worst], after[worst]


LAW = AttentionPatternLaw(
    code="OP205",
    name="attention_pattern",
    statement="An output depends on exactly the tokens of the attention pattern.",
    trait="follows its attention pattern",
    expectation={"causal_lm": "holds", "encoder": "holds"},
    remedy="Mask the tokens outside the pattern, in every layer and on every attention backend.",
)
