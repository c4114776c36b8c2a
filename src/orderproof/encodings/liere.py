"""LieRE: rotation by the exponential of a learned combination of the axes.

    R(p) = exp(sum_a p[a] A[a]),      A[a] = -A[a]^T learned, one per axis

R(p) is a dense rotation of all features, unlike the block-diagonal rotation of RoPE; all heads share it. On one axis it
is relative: R(m)^T R(n) = exp((n - m) A).

On two or more axes it is not relative: exp(X) exp(Y) is exp(X + Y) only if X and Y commute, and learned generators do
not have to (those of `CayleyString` do). Near initialization they almost commute.
Matrices are computed in float64 for each token, O(head_width ** 3) each. The reference draws generators up to 2 pi for
coordinates up to 1; positions here are integers, so initial values are divided by `extent`, the size of the grid.
Source: Ostmeier et al. 2024, "LieRE: Lie Rotational Positional Encodings", arXiv:2406.10322, section 4.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor, nn

from orderproof.encodings._encoding import Claims, ModelSizes
from orderproof.encodings._query_key_encoding import QueryKeyEncoding, QueryOrKey
from orderproof.encodings._registry import register
from orderproof.encodings._skew_symmetric import skew_symmetric
from orderproof.encodings.checks import check_size

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@register("lie", aliases=("liere",))
class LieRE(QueryKeyEncoding):
    """Rotations with learned generators, one per axis."""

    def __init__(self, head_width: int, *, axes: int = 2, extent: int = 16) -> None:
        super().__init__()
        self.head_width = self.output_head_dim = check_size("LieRE", "head_width", head_width)
        self.axes = check_size("LieRE", "axes", axes)
        self.extent = check_size("LieRE", "extent", extent)
        self.claims = Claims(site="rotate", relative=axes == 1, symmetric=False, ndim=axes)
        self.above = nn.Parameter(torch.empty(axes, head_width * (head_width - 1) // 2))
        self.reset_parameters()

    @classmethod
    def for_model(cls, sizes: ModelSizes, **options: Any) -> Self:
        """Two axes, with the model's length as extent if it is known."""
        extent = {} if sizes.length is None else {"extent": sizes.length}
        return cls(sizes.head_width, **{**extent, **options})

    def reset_parameters(self) -> None:
        """Reinitialize the generators: uniform in 0 .. 2 pi / extent."""
        nn.init.uniform_(self.above, 0, 2 * math.pi / self.extent)

    def rotations(self, positions: Int[Tensor, "*axes_and_batch token"]) -> Float[Tensor, "*batch token width width"]:
        """The matrix R(p) of each token, float64."""
        wide = positions.to(torch.float64)
        by_axis = wide if self.axes > 1 else wide.unsqueeze(0)
        generators = skew_symmetric(self.above, self.head_width)
        total = sum(
            (p[..., None, None] * generator for p, generator in zip(by_axis[1:], generators[1:], strict=True)),
            start=by_axis[0][..., None, None] * generators[0],
        )
        exponential: Tensor = torch.linalg.matrix_exp(total)
        return exponential

    def encode(
        self,
        x: Float[Tensor, "batch head token head_width"],
        positions: Int[Tensor, "*axes_and_batch token"],
        *,
        side: QueryOrKey,
        lengths: Int[Tensor, " row"] | None = None,
    ) -> Float[Tensor, "batch head token head_width"]:
        """Rotate queries or keys."""
        del side, lengths
        rotations = self.rotations(positions)
        if rotations.dim() == 4:
            rotations = rotations.unsqueeze(1)
        return (rotations @ x.to(torch.float64).unsqueeze(-1)).squeeze(-1).to(x.dtype)

    def extra_repr(self) -> str:
        """The constructor arguments."""
        return f"{self.head_width}, axes={self.axes}, extent={self.extent}"
