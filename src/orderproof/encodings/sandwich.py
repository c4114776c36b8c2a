"""Sandwich: add to each score the similarity of two sinusoidal positions, at a rate of the head's own.

    b[h](m, n) = H / (8 h) * sum_{i < width/2} cos((m - n) * frequency[i]),   h = 1 .. H

    frequency[i] = 10000 ** (-2i / width),   width = 128 whatever the model's

The sum is <e(m), e(n)> for the sinusoidal encoding e of that width: of the four products that sinusoids added to
embeddings make in a score, the one that sees positions alone. It falls with the distance, fast near and slowly far, but
not at every step. b sees the distance only, and not its direction: relative, and mirror-blind in an encoder.
Source: Chi et al. 2022, "Dissecting Transformer Length Extrapolation via the Lens of Receptive Field Analysis",
arXiv:2212.10356, section 6.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import torch
from torch import Tensor

from orderproof.encodings._encoding import Claims, Sizes
from orderproof.encodings._offset import OffsetBias
from orderproof.encodings._operands import check_size, constant
from orderproof.encodings._registry import register
from orderproof.encodings.schedules import geometric

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@register("sandwich")
class Sandwich(OffsetBias):
    """The similarity of two sinusoidal positions."""

    claims = Claims(site="bias", relative=True, symmetric=True)

    def __init__(self, heads: int, *, width: int = 128) -> None:
        super().__init__()
        self.heads = check_size("Sandwich", "heads", heads)
        self.width = check_size("Sandwich", "width", width, even=True)
        self.frequencies = geometric(width=width, base=10_000.0).frequencies

    @classmethod
    def for_model(cls, sizes: Sizes) -> Self:
        """One rate a head."""
        return cls(sizes.heads)

    def at(self, distance: Int[Tensor, "*any"]) -> Float[Tensor, "#head *any"]:
        """The similarities, in float64, summed wave by wave: a matrix of distances needs no third dimension."""
        far = distance.to(torch.float64)
        total = torch.zeros_like(far)
        for frequency in self.frequencies:
            total = total + torch.cos(far * frequency)
        rates = [self.heads / (8 * h) for h in range(1, self.heads + 1)]
        return constant(rates, far.device).view(-1, *(1,) * far.dim()) * total

    def extra_repr(self) -> str:
        """The arguments it was made with."""
        return f"{self.heads}, width={self.width}"
