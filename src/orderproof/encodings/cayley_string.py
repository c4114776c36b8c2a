"""STRING in Cayley form: axial rotary encoding in a learned basis per head.

    T(p) = R(p) P^T,      P = (1 - S)(1 + S)^-1,   S = -S^T learned,   R(p) the axial rotation

The paper rotates by P R(p) P^T. In q^T P R(m)^T P^T P R(n) P^T k the inner product P^T P is 1, so R(p) P^T gives the
same scores with one product less. It is relative for any S, since R is and P is the same at all positions. Every
family of rotations exp(sum_a p[a] A[a]) with commuting generators A has this form, with its own frequencies.
At S = 0, the initial value, it is axial RoPE. Queries and keys of a head share P, so there are as many key heads as
query heads. (Another encoding named STRING shifts positions; it is not this one.)
Source: Schenck et al. 2025, "Learning the RoPEs: Better 2D and 3D Position Encodings with STRING", arXiv:2502.02562,
section 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor, nn

from orderproof.encodings._encoding import Claims, ModelSizes
from orderproof.encodings._query_key_encoding import QueryOrKey
from orderproof.encodings._registry import register
from orderproof.encodings._rotary_base import RotaryBase
from orderproof.encodings._rotary_pairs import RotaryLayout
from orderproof.encodings._skew_symmetric import skew_symmetric
from orderproof.encodings.axial_rotary import axial_spectrum
from orderproof.encodings.checks import check_size, working_dtype

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@register("string")
class CayleyString(RotaryBase):
    """Axial rotary encoding in a learned basis per head."""

    def __init__(
        self, head_width: int, heads: int, *, axes: int = 2, base: float = 100.0, layout: RotaryLayout = "half"
    ) -> None:
        spectrum, pair_axes = axial_spectrum("CayleyString", head_width, axes=axes, base=base)
        super().__init__(head_width, spectrum, layout=layout, pair_axes=pair_axes if axes > 1 else None)
        self.claims = Claims(site="rotate", relative=True, symmetric=False, ndim=axes)
        self._plan = None  # the kernels support only the standard basis
        self.heads: int = check_size("CayleyString", "heads", heads)
        self.axes = axes
        self.base = base
        self.above = nn.Parameter(torch.empty(heads, head_width * (head_width - 1) // 2))
        self.reset_parameters()

    @classmethod
    def for_model(cls, sizes: ModelSizes, **options: Any) -> Self:
        """Two axes, in layout "half"."""
        return cls(sizes.head_width, sizes.heads, **options)

    def reset_parameters(self) -> None:
        """Initialize as axial RoPE."""
        nn.init.zeros_(self.above)

    def basis(self) -> Float[Tensor, "head head_width head_width"]:
        """The matrix P of each head, float64."""
        matrix, one = skew_symmetric(self.above, self.head_width), torch.eye(self.head_width, dtype=torch.float64)
        one = one.to(matrix.device)
        # 1 - S and the inverse of 1 + S commute, so their order does not matter.
        rotation: Tensor = torch.linalg.solve(one + matrix, one - matrix)
        return rotation

    def encode(
        self,
        x: Float[Tensor, "batch head token head_width"],
        positions: Int[Tensor, "*axes_and_batch token"],
        *,
        side: QueryOrKey,
        lengths: Int[Tensor, " row"] | None = None,
    ) -> Float[Tensor, "batch head token head_width"]:
        """Change the basis of queries or keys, then rotate them."""
        # In float64, which autocast does not lower; a row vector times P is P^T times the vector.
        mixed = (x.to(torch.float64) @ self.basis()).to(working_dtype(x))
        return super().encode(mixed, positions, side=side, lengths=lengths).to(x.dtype)

    def extra_repr(self) -> str:
        """The constructor arguments."""
        return f"{super().extra_repr()}, heads={self.heads}, axes={self.axes}, base={self.base}"
