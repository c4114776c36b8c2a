"""Rotary position encoding (RoPE): turn feature pairs by an angle set by position.

    <R(p) q, R(s) k> = <q, R(s - p) k>     because     R(p)^T R(s) = R(s - p)

so a score sees the distance s - p only. R(p) turns pair i by p * frequency[i] radians,
frequency[i] = base ** (-2i / width):

    (a, b)  ->  (a cos - b sin,  b cos + a sin)

Pair i is features (i, i + width/2) in layout "half" (NeoX, Hugging Face) and (2i, 2i + 1) in layout "interleaved"
(the paper, GPT-J, Meta's Llama). They are the same function of q and k whose features are in another order:
weights trained with one are wrong with the other.
Source: Su et al. 2021, "RoFormer", arXiv:2104.09864, section 3.2.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Self

import torch
from torch import Tensor

from orderproof import positions as place
from orderproof.encodings._encoding import Claims, PositionalEncoding, Sizes
from orderproof.encodings._frequencies import Schedule, cos_sin, geometric
from orderproof.encodings._operands import check_heads, check_size, working_dtype
from orderproof.encodings._registry import register
from orderproof.errors import EncodingError

if TYPE_CHECKING:
    from jaxtyping import Float, Int

Layout = Literal["half", "interleaved"]


@register("rotary")
class Rotary(PositionalEncoding):
    """Queries and keys turned by position."""

    claims = Claims(site="rotate", relative=True, symmetric=False)

    def __init__(
        self, head_width: int, *, base: float = 10_000.0, layout: Layout = "half", schedule: Schedule | None = None
    ) -> None:
        super().__init__()
        self.head_width = check_size("Rotary", "head_width", head_width, even=True)
        if not base > 0:
            raise EncodingError(f"Rotary: base must be positive, got {base!r}")
        if layout not in ("half", "interleaved"):
            raise EncodingError(f"Rotary: layout must be 'half' or 'interleaved', got {layout!r}")
        self.base = base
        self.layout: Layout = layout
        self.spectrum = (schedule or geometric)(width=head_width, base=base)
        if len(self.spectrum.frequencies) != head_width // 2:
            came = len(self.spectrum.frequencies)
            raise EncodingError(f"Rotary: schedule must give {head_width // 2} frequencies, one a pair, got {came}")

    @classmethod
    def for_model(cls, sizes: Sizes) -> Self:
        """The encoding of the paper, in layout "half"."""
        return cls(sizes.head_width)

    def rotate(
        self,
        q: Float[Tensor, "batch head query head_width"],
        k: Float[Tensor, "batch head key head_width"],
        q_positions: Int[Tensor, "*batch query"],
        k_positions: Int[Tensor, "*batch key"] | None = None,
        out: tuple[Tensor, Tensor] | None = None,
    ) -> tuple[Float[Tensor, "batch head query head_width"], Float[Tensor, "batch head key head_width"]]:
        """Turn queries and keys, in float32 or float64, rounded once; keys take the queries' positions by default.

        ``out`` is a pair of buffers to write into (``q`` and ``k`` themselves will do); it records no gradient.
        """
        if out is not None:
            _check_out(out, (q, k))
        if k_positions is None:
            q_turned, k_turned = self._turn("q", q, q_positions), self._turn("k", k, q_positions)
        else:
            q_turned, k_turned = self._turn("q", q, q_positions), self._turn("k", k, k_positions)
        if out is None:
            return q_turned, k_turned
        return out[0].copy_(q_turned), out[1].copy_(k_turned)

    def _turn(self, name: str, x: Tensor, positions: Tensor) -> Tensor:
        check_heads("Rotary", name, x, self.head_width)
        positions = place.check(
            positions, name=f"{name}_positions", batch=x.shape[0], tokens=x.shape[2], device=x.device
        )
        cos, sin = cos_sin(positions, self.spectrum, dtype=working_dtype(x))
        if positions.dim() == 2:
            cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
        wide = x.to(cos.dtype)
        if self.layout == "half":
            a, b = wide.chunk(2, dim=-1)
            turned = torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)
        else:
            a, b = wide[..., 0::2], wide[..., 1::2]
            turned = torch.stack([a * cos - b * sin, b * cos + a * sin], dim=-1).flatten(-2)
        return turned.to(x.dtype)

    def extra_repr(self) -> str:
        """The arguments it was made with."""
        return f"{self.head_width}, base={self.base}, layout={self.layout!r}"


def _check_out(out: tuple[Tensor, Tensor], operands: tuple[Tensor, Tensor]) -> None:
    for name, buffer, x in zip(("q", "k"), out, operands, strict=True):
        if (buffer.shape, buffer.dtype, buffer.device) != (x.shape, x.dtype, x.device):
            came = f"{buffer.dtype} {list(buffer.shape)} on {buffer.device}"
            raise EncodingError(f"Rotary: out for {name} must be {x.dtype} {list(x.shape)} on {x.device}, got {came}")
        if torch.is_grad_enabled() and (x.requires_grad or buffer.requires_grad):
            raise EncodingError("Rotary: out records no gradient; call under torch.no_grad(), or leave out out")
