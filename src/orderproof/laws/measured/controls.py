"""Positive controls: changes that must move an output. Without one, equal outputs are no evidence."""

from __future__ import annotations

import torch

from orderproof.laws.measured.cached_calls import CachedCalls
from orderproof.laws.measured.measured_law import OutputPair


def replace_first_token(calls: CachedCalls) -> OutputPair:
    """The first token replaced: the outputs of the other tokens, or the pooled output, must differ."""
    changed, other = calls.default_tokens.clone(), calls.sample_tokens(other=1)
    if not calls.adapter.has_token_axis:
        return calls.default_output, calls.forward(other)
    changed[:, 0] = other[:, 0]
    first, second = calls.default_output, calls.forward(changed)
    return (first[:, 1:], second[:, 1:]) if first.dim() == 3 else (first, second)


def replace_every_token(calls: CachedCalls) -> OutputPair:
    """All tokens replaced: the output must differ, also where no token sees another."""
    return calls.default_output, calls.forward(calls.sample_tokens(other=1))


def replace_last_token(calls: CachedCalls) -> OutputPair:
    """The last token replaced: its own output must differ."""
    changed, other = calls.default_tokens.clone(), calls.sample_tokens(other=1)
    if not calls.adapter.has_token_axis:
        return calls.default_output, calls.forward(other)
    changed[:, -1] = other[:, -1]
    first, second = calls.default_output, calls.forward(changed)
    return (first[:, -1], second[:, -1]) if first.dim() == 3 else (first, second)


def move_second_half(calls: CachedCalls) -> OutputPair:
    """The position ids of the second half of the tokens increased by 3: the outputs must differ."""
    usual = calls.default_position_ids(calls.default_length)
    moved = usual + 3 * (torch.arange(calls.default_length) >= calls.default_length // 2)
    return calls.forward_at(calls.default_tokens, usual), calls.forward_at(calls.default_tokens, moved)
