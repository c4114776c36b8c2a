"""Planted masks: other windows, a mask that is added as numbers, and prompts whose tokens see later ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from tests.ports.planted_engine import Plant, parts


def window(size: int) -> Plant:
    """Another window, by masks of its own in each layer with a window."""

    def plant(model: Any) -> None:
        types = getattr(model.config, "layer_types", None) or ["sliding_attention"] * model.config.num_hidden_layers
        for part in parts(model, "q_proj"):
            if types[part.layer_idx] == "sliding_attention":
                _replace_mask(part, lambda query: query + 1 - size)

    return plant


def window_of_chunks(size: int, prompt: int) -> Plant:
    """A prompt in chunks of the window, each of which sees the whole chunk before; the tokens after it as stated."""

    def first_seen(query: Tensor) -> Tensor:
        return torch.where(query < prompt, query - query % size - size, query + 1 - size)

    def plant(model: Any) -> None:
        for part in parts(model, "q_proj"):
            _replace_mask(part, first_seen)

    return plant


def window_before_chunks(size: int, starts: Sequence[int]) -> Plant:
    """Chunks that begin at these tokens see this many tokens before their start, and all of the chunk up to them."""

    def first_seen(query: Tensor) -> Tensor:
        return torch.tensor(starts)[torch.bucketize(query, torch.tensor(starts), right=True) - 1] - size

    def plant(model: Any) -> None:
        for part in parts(model, "q_proj"):
            _replace_mask(part, first_seen)

    return plant


def window_with_cache(size: int) -> Plant:
    """Another window, in the masks and in the cache of transformers."""

    def plant(model: Any) -> None:
        model.config.sliding_window = size

    return plant


def window_in_layer(layer: int, size: int) -> Plant:
    """A window in this layer and in no other."""

    def plant(model: Any) -> None:
        for part in parts(model, "q_proj"):
            own = size if part.layer_idx == layer else 1 << 20
            _replace_mask(part, lambda query, own=own: query + 1 - own)

    return plant


def _replace_mask(part: Any, first_seen: Callable[[Tensor], Tensor]) -> None:
    """A causal mask whose queries see keys from this one on."""
    forward = part.forward

    def with_own_mask(hidden_states: Tensor, *rest: Any, **options: Any) -> Any:
        count = hidden_states.shape[1]
        query, key = torch.arange(count)[:, None], torch.arange(count)[None]
        visible = (key <= query) & (key >= first_seen(query))
        options["attention_mask"] = torch.where(visible, 0.0, -math.inf)[None, None]
        return forward(hidden_states, *rest, **options)

    part.forward = with_own_mask


def mask_as_numbers(model: Any) -> None:
    """Scores with 1 added where a key is visible, and 0 where it is not."""
    for part in parts(model, "q_proj"):
        _with_numbers(part)


def _with_numbers(part: Any) -> None:
    forward = part.forward

    def with_numbers(hidden_states: Tensor, *rest: Any, **options: Any) -> Any:
        options["attention_mask"] = 1.0 + options["attention_mask"].clamp(min=-1.0)
        return forward(hidden_states, *rest, **options)

    part.forward = with_numbers


def whole_prompt(prompt: int | None = None) -> Plant:
    """Each token of a prompt sees all of it, or of its chunk; the tokens after a prompt of this length as stated."""
    return _shown(lambda query, key: key < (len(key) if prompt is None else prompt))


def next_token(model: Any) -> None:
    """Each token sees the one after it."""
    _shown(lambda query, key: key == query + 1)(model)


def _shown(is_shown: Callable[[Tensor, Tensor], Tensor]) -> Plant:
    def plant(model: Any) -> None:
        for part in parts(model, "q_proj"):
            _show(part, is_shown)

    return plant


def _show(part: Any, is_shown: Callable[[Tensor, Tensor], Tensor]) -> None:
    """A mask that shows keys after a query too."""
    forward = part.forward

    def with_shown(hidden_states: Tensor, *rest: Any, **options: Any) -> Any:
        mask = options["attention_mask"]
        queries, keys = mask.shape[-2:]
        query, key = torch.arange(keys - queries, keys)[:, None], torch.arange(keys)
        options["attention_mask"] = torch.where((key > query) & is_shown(query, key), 0.0, mask)
        return forward(hidden_states, *rest, **options)

    part.forward = with_shown
