"""Functions that a model of another file calls."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor


def running(x: Tensor) -> Tensor:
    """A state that each token changes."""
    state, out = torch.zeros_like(x[:, 0]), []
    for t in range(x.shape[1]):
        state = 0.5 * state + x[:, t]
        out += [state]
    return torch.stack(out, 1)


@lru_cache(maxsize=4)
def kept_mask(tokens: int, diagonal: int = 1) -> Tensor:
    """A causal mask, kept by its length."""
    return torch.full((tokens, tokens), float("-inf")).triu(diagonal)
