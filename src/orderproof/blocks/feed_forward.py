"""Feed-forward: a two-layer network, applied to each token separately.

    y = gelu(x W1 + b1) W2 + b2          gelu(t) = t * Phi(t),  Phi the normal distribution function

Source: Vaswani et al. 2017, arXiv:1706.03762, section 3.3 (with ReLU); Hendrycks and Gimpel 2016, "Gaussian Error
Linear Units", arXiv:1606.08415.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor, nn
from torch.nn import functional

if TYPE_CHECKING:
    from jaxtyping import Float


class FeedForward(nn.Module):
    """Linear, GELU, linear."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.widen = nn.Linear(width, hidden)
        self.narrow = nn.Linear(hidden, width)

    def forward(self, x: Float[Tensor, "*token width"]) -> Float[Tensor, "*token width"]:
        """Apply the network to each token."""
        return self.narrow(functional.gelu(self.widen(x)))  # type: ignore[no-any-return]
