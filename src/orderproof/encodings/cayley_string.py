"""STRING, in Cayley's form: axial rotary encoding in a basis that each head learns.

    T(p) = R(p) P^T,      P = (1 - S)(1 + S)^-1,   S = -S^T learned,   R(p) the axial rotation

The paper turns by P R(p) P^T; of q^T P R(m)^T P^T P R(n) P^T k the inner pair is 1, and what is left is the same score
as with R(p) P^T, one product less. It is relative for any S, since R is and P is the same at all positions. Every
family of rotations exp(sum_a p[a] A[a]) whose generators A commute has this form, with frequencies of its own.
S = 0, where it starts, is axial RoPE itself. Queries and keys of a head share P, so there are as many key heads as
query heads. (Another STRING, of shifted positions, is not this one.)
Source: Schenck et al. 2025, "Learning the RoPEs: Better 2D and 3D Position Encodings with STRING", arXiv:2502.02562,
section 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import torch
from torch import Tensor, nn

from orderproof.encodings._at_rotate import Side
from orderproof.encodings._encoding import Claims, Sizes
from orderproof.encodings._operands import check_size, working_dtype
from orderproof.encodings._pairs import Layout
from orderproof.encodings._registry import register
from orderproof.encodings._rotation import Rotation
from orderproof.encodings._skew import skew
from orderproof.encodings.axial import axial_spectrum

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@register("string")
class String(Rotation):
    """Queries and keys turned by each axis, in a learned basis."""

    def __init__(
        self, head_width: int, heads: int, *, axes: int = 2, base: float = 100.0, layout: Layout = "half"
    ) -> None:
        spectrum, axis = axial_spectrum("String", head_width, axes=axes, base=base)
        super().__init__(head_width, spectrum, layout=layout, axis=axis if axes > 1 else None)
        self.claims = Claims(site="rotate", relative=True, symmetric=False, ndim=axes)
        self._plan = None  # the kernel knows no basis but the features themselves
        self.heads: int = check_size("String", "heads", heads)
        self.axes = axes
        self.base = base
        self.above = nn.Parameter(torch.empty(heads, head_width * (head_width - 1) // 2))
        self.reset_parameters()

    @classmethod
    def for_model(cls, sizes: Sizes) -> Self:
        """Two axes, in layout "half"."""
        return cls(sizes.head_width, sizes.heads)

    def reset_parameters(self) -> None:
        """Start as axial RoPE."""
        nn.init.zeros_(self.above)

    def basis(self) -> Float[Tensor, "head head_width head_width"]:
        """The matrix P of each head, float64."""
        matrix, one = skew(self.above, self.head_width), torch.eye(self.head_width, dtype=torch.float64)
        one = one.to(matrix.device)
        # 1 - S and the inverse of 1 + S commute, so the inverse may stand on either side.
        rotation: Tensor = torch.linalg.solve(one + matrix, one - matrix)
        return rotation

    def turned(
        self,
        x: Float[Tensor, "batch head token head_width"],
        positions: Int[Tensor, "*axes_and_batch token"],
        *,
        side: Side,
        lengths: Int[Tensor, " row"] | None = None,
    ) -> Float[Tensor, "batch head token head_width"]:
        """Queries and keys, brought into the basis and turned."""
        # In float64, which no autocast lowers; a row vector times P is P^T times the vector.
        mixed = (x.to(torch.float64) @ self.basis()).to(working_dtype(x))
        return super().turned(mixed, positions, side=side, lengths=lengths).to(x.dtype)

    def extra_repr(self) -> str:
        """The arguments it was made with."""
        return f"{super().extra_repr()}, heads={self.heads}, axes={self.axes}, base={self.base}"
