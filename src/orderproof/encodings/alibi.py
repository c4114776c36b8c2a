"""ALiBi: lower each score in proportion to the distance, at a rate of the head's own.

    b[h](m, n) = -slope[h] * |m - n|

    slope[h] = 2 ** (-8h / H),  h = 1 .. H           where the number of heads H is a power of two
    otherwise the slopes of the next lower power of two, P, then every second slope of 2P, until there are H

The distance is taken first, in integers, so that near keys stay exact however far out they are (a slope times
an absolute position does not: in bfloat16 the nearest keys tie). b sees the distance only, so it is relative;
it does not see the direction, so a bidirectional encoder cannot tell a sentence from its reverse (mirror-blind).
Source: Press et al. 2021, "Train Short, Test Long", arXiv:2108.12409, section 3 and the authors' get_slopes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import torch
from torch import Tensor

from orderproof.encodings._encoding import Claims, PositionalEncoding, ScoreMod, Sizes
from orderproof.encodings._operands import check_size, distance_at, distances
from orderproof.encodings._registry import register

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@register("alibi")
class ALiBi(PositionalEncoding):
    """A penalty that grows with the distance."""

    claims = Claims(site="bias", relative=True, symmetric=True)

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.heads = check_size("ALiBi", "heads", heads)
        self.slopes = slopes(heads)

    @classmethod
    def for_model(cls, sizes: Sizes) -> Self:
        """One slope a head."""
        return cls(sizes.heads)

    def bias(
        self,
        q_positions: Int[Tensor, "*batch query"],
        k_positions: Int[Tensor, "*batch key"],
        *,
        dtype: torch.dtype = torch.float32,
    ) -> Float[Tensor, "batch head query key"]:
        """The penalties, made in float64 and rounded once to ``dtype``."""
        distance = distances(q_positions, k_positions).abs().unsqueeze(1)
        return (distance * self._slopes(distance.device)).to(dtype)

    def score_mod(self, q_positions: Int[Tensor, "*batch query"], k_positions: Int[Tensor, "*batch key"]) -> ScoreMod:
        """The same penalties, one score at a time."""
        distance = distance_at(q_positions, k_positions)
        rate = self._slopes(q_positions.device).flatten().to(torch.float32)

        def lower(score: Tensor, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
            return score + rate[head] * distance(batch, query, key).abs()

        return lower

    def _slopes(self, device: torch.device) -> Float[Tensor, "head 1 1"]:
        """The slopes with their sign, as they multiply a distance."""
        return torch.tensor([[[-slope]] for slope in self.slopes], dtype=torch.float64, device=device)

    def extra_repr(self) -> str:
        """The arguments it was made with."""
        return f"{self.heads}"


def slopes(heads: int) -> tuple[float, ...]:
    """The slope of each head."""
    power = 2 ** (heads.bit_length() - 1)
    first = [2.0 ** (-8 * h / power) for h in range(1, power + 1)]
    between = [2.0 ** (-8 * h / (2 * power)) for h in range(1, 2 * power, 2)]
    return tuple((first + between)[:heads])
