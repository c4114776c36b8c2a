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

from torch import Tensor

from orderproof.encodings._encoding import Claims, Sizes
from orderproof.encodings._offset import OffsetBias
from orderproof.encodings._operands import check_size, constant
from orderproof.encodings._registry import register

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@register("alibi")
class ALiBi(OffsetBias):
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

    def at(self, distance: Int[Tensor, "*any"]) -> Float[Tensor, "#head *any"]:
        """The penalties, in float64."""
        rates = constant([-slope for slope in self.slopes], distance.device)
        return rates.view(-1, *(1,) * distance.dim()) * distance.abs()

    def extra_repr(self) -> str:
        """The arguments it was made with."""
        return f"{self.heads}"


def slopes(heads: int) -> tuple[float, ...]:
    """The slope of each head."""
    power = 2 ** (heads.bit_length() - 1)
    first = [2.0 ** (-8 * h / power) for h in range(1, power + 1)]
    between = [2.0 ** (-8 * h / (2 * power)) for h in range(1, 2 * power, 2)]
    return tuple((first + between)[:heads])
