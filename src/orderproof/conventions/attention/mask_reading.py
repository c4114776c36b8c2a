"""The effect of a mask, read off the weights of attention."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from orderproof.conventions.attention.function import AttentionFunction
from orderproof.conventions.question import OTHER, same

KEYS = 3
NAN = "NaN"


def effect(function: AttentionFunction, mask: Tensor) -> str:
    """The effect, in words, of a mask [query, key] that marks the first key with 1 or True, and the others with 0."""
    weights = function.masked_weights(mask)
    if bool(weights.isnan().any()):
        return NAN
    marked = torch.zeros(KEYS).index_fill(0, torch.tensor([0]), 1.0)
    effects = {
        "seen": marked,
        "hidden": (1 - marked) / (KEYS - 1),
        "added to the score": marked.softmax(0),
        "ignored": torch.full((KEYS,), 1 / KEYS),
        "multiplied after the softmax": marked / KEYS,
    }
    found = [name for name, row in effects.items() if same(weights, row.expand_as(weights))]
    return found[0] if found else OTHER


def effect_text(mark: str, found: str) -> str:
    """The effect of a mark in words: `True is seen`."""
    return f"{mark} gives {found}" if found == NAN else f"{mark} is {found}"


def row_answer(weights: Tensor) -> str:
    """The weights [..., key] of queries that see no key, in words."""
    if bool(weights.isnan().all()):
        return NAN
    if same(weights, torch.zeros_like(weights)):
        return "zeros"
    equal = torch.full_like(weights, 1 / weights.shape[-1])
    return "the mean of all values" if same(weights, equal, 4e-3) else OTHER


def first_key_marked(dtype: torch.dtype) -> Tensor:
    """A mask [query, key] that marks the first key for each query."""
    return torch.tensor([1] + [0] * (KEYS - 1)).to(dtype).expand(KEYS, KEYS).contiguous()


def hiding_mask(function: AttentionFunction, visible: Tensor) -> Tensor:
    """A mask that hides all but the visible keys [query, key]: boolean where the function hides by booleans.

    Else minus infinity is added.
    """
    if (found := _effect_of_booleans(function)) in ("seen", "hidden"):
        return visible if found == "seen" else ~visible
    return torch.zeros(visible.shape).masked_fill(~visible, -torch.inf)


@lru_cache(maxsize=1)  # several questions ask it of one function
def _effect_of_booleans(function: AttentionFunction) -> str:
    try:
        return effect(function, first_key_marked(torch.bool))
    except Exception:  # noqa: BLE001 - the user's function: it may refuse booleans in any way
        return ""
