"""Layer and RMS normalisation of each token's features.

    LayerNorm   y = gain * (x - mean(x)) / sqrt(mean((x - mean(x))^2) + epsilon) + shift
    RMSNorm     y = gain * x / sqrt(mean(x^2) + epsilon)

Means are taken over the features of one token, so tokens do not interact and their order does not matter.
Source: Ba et al. 2016, "Layer Normalization", arXiv:1607.06450; Zhang and Sennrich 2019, "Root Mean Square Layer
Normalization", arXiv:1910.07467.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional

if TYPE_CHECKING:
    from jaxtyping import Float


class LayerNorm(nn.Module):
    """Mean 0 and standard deviation 1, then a learned gain and shift."""

    def __init__(self, width: int, *, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.gain = nn.Parameter(torch.ones(width))
        self.shift = nn.Parameter(torch.zeros(width))

    def forward(self, x: Float[Tensor, "*token width"]) -> Float[Tensor, "*token width"]:
        """Normalise each token."""
        return functional.layer_norm(x, x.shape[-1:], self.gain, self.shift, self.epsilon)


class RMSNorm(nn.Module):
    """Root mean square 1, then a learned gain."""

    def __init__(self, width: int, *, epsilon: float = 1e-6) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.gain = nn.Parameter(torch.ones(width))

    def forward(self, x: Float[Tensor, "*token width"]) -> Float[Tensor, "*token width"]:
        """Normalise each token."""
        return functional.rms_norm(x, x.shape[-1:], self.gain, self.epsilon)
