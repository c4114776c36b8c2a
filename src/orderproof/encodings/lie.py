"""LieRE: queries and keys turned by the exponential of a learned combination of the axes.

    R(p) = exp(sum_a p[a] A[a]),      A[a] = -A[a]^T learned, one for each axis

R(p) is a rotation of all features together, dense where RoPE's is made of pairs; all heads share it. On one axis it is
relative: R(m)^T R(n) = exp((n - m) A).

What does not follow: that it is relative on two axes or more. exp(X) exp(Y) is exp(X + Y) only where X and Y commute,
and nothing makes the learned generators commute (`String` does). Near the start of training they almost do.
Matrices are worked out in float64, token by token: O(head_width ** 3) each. The reference draws generators up to 2 pi
for coordinates up to 1; positions here are integers, so the start is divided by `extent`, the size of the grid that is
to be the unit.
Source: Ostmeier et al. 2024, "LieRE: Lie Rotational Positional Encodings", arXiv:2406.10322, section 4.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Self

import torch
from torch import Tensor, nn

from orderproof.encodings._at_rotate import AtRotate, Side
from orderproof.encodings._encoding import Claims, Sizes
from orderproof.encodings._operands import check_size
from orderproof.encodings._registry import register
from orderproof.encodings._skew import skew

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@register("lie", called=("liere",))
class Lie(AtRotate):
    """Queries and keys turned by learned generators, one for each axis."""

    def __init__(self, head_width: int, *, axes: int = 2, extent: int = 16) -> None:
        super().__init__()
        self.head_width = self.turned_width = check_size("Lie", "head_width", head_width)
        self.axes = check_size("Lie", "axes", axes)
        self.extent = check_size("Lie", "extent", extent)
        self.claims = Claims(site="rotate", relative=axes == 1, symmetric=False, ndim=axes)
        self.above = nn.Parameter(torch.empty(axes, head_width * (head_width - 1) // 2))
        self.reset_parameters()

    @classmethod
    def for_model(cls, sizes: Sizes) -> Self:
        """Two axes, which the model's length divides where it is stated."""
        return cls(sizes.head_width) if sizes.length is None else cls(sizes.head_width, extent=sizes.length)

    def reset_parameters(self) -> None:
        """Draw the generators anew: uniform from 0 to 2 pi / extent."""
        nn.init.uniform_(self.above, 0, 2 * math.pi / self.extent)

    def rotations(self, positions: Int[Tensor, "*axes_and_batch token"]) -> Float[Tensor, "*batch token width width"]:
        """The matrix R(p) of each token, float64."""
        wide = positions.to(torch.float64)
        by_axis = wide if self.axes > 1 else wide.unsqueeze(0)
        generators = skew(self.above, self.head_width)
        total = sum(
            (p[..., None, None] * generator for p, generator in zip(by_axis[1:], generators[1:], strict=True)),
            start=by_axis[0][..., None, None] * generators[0],
        )
        exponential: Tensor = torch.linalg.matrix_exp(total)
        return exponential

    def turned(
        self,
        x: Float[Tensor, "batch head token head_width"],
        positions: Int[Tensor, "*axes_and_batch token"],
        *,
        side: Side,
        lengths: Int[Tensor, " row"] | None = None,
    ) -> Float[Tensor, "batch head token head_width"]:
        """Queries and keys, turned alike."""
        del side, lengths
        rotations = self.rotations(positions)
        if rotations.dim() == 4:
            rotations = rotations.unsqueeze(1)
        return (rotations @ x.to(torch.float64).unsqueeze(-1)).squeeze(-1).to(x.dtype)

    def extra_repr(self) -> str:
        """The arguments it was made with."""
        return f"{self.head_width}, axes={self.axes}, extent={self.extent}"
