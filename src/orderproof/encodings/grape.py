"""GRAPE, multiplicative, with commuting planes: a rotation with learned frequencies.

    G(p) = exp(p L),    L = sum over pairs i of  frequency[h, i] * (the generator of the rotation in plane i)
    <G(p) q, G(s) k> = <q, G(s - p) k>     because     G(p)^T G(s) = G(s - p)

Powers of one matrix commute, so a score depends only on the distance s - p, for any frequencies. The planes are those
of coordinate pairs, so G(p) rotates pair i by p * frequency[h, i] radians. Frequencies are exp(log_frequencies) and
therefore positive: a negative frequency would be redundant, and zero would carry no position.
They are initialized as RoPE's, base ** (-2i / width), which makes it RoPE; heads share them, or each learns its own.

Training does not preserve the resolution of far positions: nothing keeps two frequencies distinct, or one of them low.
In bfloat16 the frequencies are rounded like all weights, by 2^-9 of an angle that grows with p. (The authors rotate
in the opposite direction, which is this encoding with the two features of each pair exchanged. Learned planes that
commute are those of `string`; content-dependent rotations are not implemented.)
Source: Zhang et al. 2025, "Group Representational Position Encoding", arXiv:2512.07805, section 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor, nn

from orderproof.encodings._encoding import Claims, ModelSizes
from orderproof.encodings._query_key_encoding import QueryKeyEncoding, QueryOrKey
from orderproof.encodings._registry import register
from orderproof.encodings._rotary_base import rotary_spectrum
from orderproof.encodings._rotary_pairs import RotaryLayout, apply_rotary, check_rotary_layout
from orderproof.encodings.checks import check_flag, check_size, device_constant, working_dtype

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@register("grape")
class GRAPE(QueryKeyEncoding):
    """Rotary encoding with learned frequencies."""

    claims = Claims(site="rotate", relative=True, symmetric=False)

    def __init__(
        self,
        head_width: int,
        heads: int,
        *,
        shared: bool = True,
        base: float = 10_000.0,
        layout: RotaryLayout = "half",
    ) -> None:
        super().__init__()
        self.head_width = self.output_head_dim = check_size("GRAPE", "head_width", head_width, even=True)
        self.shared = check_flag("GRAPE", "shared", shared)
        number = check_size("GRAPE", "heads", heads)
        self.heads = None if shared else number
        self.initial_frequencies = rotary_spectrum("GRAPE", None, width=head_width, base=base).frequencies
        check_rotary_layout("GRAPE", layout)
        self.base = base
        self.layout: RotaryLayout = layout
        self.log_frequencies = nn.Parameter(torch.empty(1 if shared else number, head_width // 2))
        self.reset_parameters()

    @classmethod
    def for_model(cls, sizes: ModelSizes, **options: Any) -> Self:
        """One set of frequencies for all heads, as in the authors' models."""
        return cls(sizes.head_width, sizes.heads, **options)

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Initialize as RoPE."""
        self.log_frequencies.copy_(device_constant(self.initial_frequencies, self.log_frequencies.device).log())

    def encode(
        self,
        x: Float[Tensor, "batch head token head_width"],
        positions: Int[Tensor, "*batch token"],
        *,
        side: QueryOrKey,
        lengths: Int[Tensor, " row"] | None = None,
    ) -> Float[Tensor, "batch head token head_width"]:
        """Rotate queries or keys."""
        del side, lengths
        angles = positions.to(torch.float64)[..., None, :, None] * self.log_frequencies.to(torch.float64).exp()[:, None]
        dtype = working_dtype(x)
        return apply_rotary(x, angles.cos().to(dtype), angles.sin().to(dtype), layout=self.layout)

    def extra_repr(self) -> str:
        """The constructor arguments."""
        heads = "" if self.heads is None else f"{self.heads}, shared=False, "
        return f"{self.head_width}, {heads}base={self.base}, layout={self.layout!r}"
