"""ALiBi: a bias proportional to the distance, with one slope per head.

    b[h](m, n) = -slope[h] * |m - n|

    slope[h] = 2 ** (-8h / H),  h = 1 .. H           if the number of heads H is a power of two
    otherwise the slopes of the next lower power of two, P, then every second slope of 2P, until there are H

The distance is computed first, in integers, so near keys stay exact at any position (a slope times an absolute
position does not: in bfloat16 the nearest keys get equal scores). The bias depends only on the distance, so it is
relative; it is the same in both directions, so a bidirectional encoder cannot tell a sentence from its reverse.
Source: Press et al. 2021, "Train Short, Test Long", arXiv:2108.12409, section 3 and the authors' get_slopes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from torch import Tensor

from orderproof.encodings._encoding import Claims, ModelSizes
from orderproof.encodings._registry import register
from orderproof.encodings._relative_bias import RelativeBias
from orderproof.encodings.checks import check_size, device_constant

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@register("alibi")
class ALiBi(RelativeBias):
    """A penalty proportional to the distance."""

    claims = Claims(site="bias", relative=True, symmetric=True)

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.heads = check_size("ALiBi", "heads", heads)
        self.slopes = slopes(heads)

    @classmethod
    def for_model(cls, sizes: ModelSizes, **options: Any) -> Self:
        """One slope per head."""
        return cls(sizes.heads, **options)

    def bias_at_distance(self, distance: Int[Tensor, "*any"]) -> Float[Tensor, "#head *any"]:
        """The penalties, in float64."""
        rates = device_constant([-slope for slope in self.slopes], distance.device)
        return rates.view(-1, *(1,) * distance.dim()) * distance.abs()

    def extra_repr(self) -> str:
        """The constructor arguments."""
        return f"{self.heads}"


def slopes(heads: int) -> tuple[float, ...]:
    """The slope of each head."""
    power = 2 ** (heads.bit_length() - 1)
    first = [2.0 ** (-8 * h / power) for h in range(1, power + 1)]
    between = [2.0 ** (-8 * h / (2 * power)) for h in range(1, 2 * power, 2)]
    return tuple((first + between)[:heads])
