"""Sandwich: the inner product of two sinusoidal encodings as a bias, with one rate per head.

    b[h](m, n) = H / (8 h) * sum_{i < width/2} cos((m - n) * frequency[i]),   h = 1 .. H

    frequency[i] = 10000 ** (-2i / width),   width = 128 for every model

The sum is <e(m), e(n)> for the sinusoidal encoding e of that width: of the four products in a score after adding
sinusoids to embeddings, the one that depends only on positions. It decays with the distance, quickly at first, but not
monotonically. The bias depends only on the distance and not on its direction: it is relative and symmetric.
Source: Chi et al. 2022, "Dissecting Transformer Length Extrapolation via the Lens of Receptive Field Analysis",
arXiv:2212.10356, section 6.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor

from orderproof.encodings._encoding import Claims, ModelSizes
from orderproof.encodings._registry import register
from orderproof.encodings._relative_bias import RelativeBias
from orderproof.encodings.checks import check_size, device_constant
from orderproof.encodings.schedules import geometric_frequencies

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@register("sandwich")
class Sandwich(RelativeBias):
    """The inner product of two sinusoidal encodings."""

    claims = Claims(site="bias", relative=True, symmetric=True)

    def __init__(self, heads: int, *, width: int = 128) -> None:
        super().__init__()
        self.heads = check_size("Sandwich", "heads", heads)
        self.width = check_size("Sandwich", "width", width, even=True)
        self.frequencies = geometric_frequencies(width=width, base=10_000.0).frequencies

    @classmethod
    def for_model(cls, sizes: ModelSizes, **options: Any) -> Self:
        """One rate per head."""
        return cls(sizes.heads, **options)

    def bias_at_distance(self, distance: Int[Tensor, "*any"]) -> Float[Tensor, "#head *any"]:
        """The inner products, in float64, summed frequency by frequency to save memory."""
        far = distance.to(torch.float64)
        total = torch.zeros_like(far)
        for frequency in self.frequencies:
            total = total + torch.cos(far * frequency)
        rates = [self.heads / (8 * h) for h in range(1, self.heads + 1)]
        return device_constant(rates, far.device).view(-1, *(1,) * far.dim()) * total

    def extra_repr(self) -> str:
        """The constructor arguments."""
        return f"{self.heads}, width={self.width}"
