"""Rotary position encoding (RoPE): turn feature pairs by an angle set by position.

    <R(p) q, R(s) k> = <q, R(s - p) k>     because     R(p)^T R(s) = R(s - p)

so a score sees the distance s - p only. R(p) turns pair i by p * frequency[i] radians,
frequency[i] = base ** (-2i / width):

A schedule gives other frequencies, for sequences longer than those a model was trained on. Of `rotary_width`
features only those are turned, with frequencies base ** (-2i / rotary_width) (GPT-J, GPT-NeoX, Phi).
Source: Su et al. 2021, "RoFormer", arXiv:2104.09864, section 3.2.2.
"""

from __future__ import annotations

from typing import Self

from orderproof.encodings._encoding import Claims, Sizes
from orderproof.encodings._frequencies import Schedule, geometric
from orderproof.encodings._operands import check_size
from orderproof.encodings._registry import register
from orderproof.encodings._rotation import Layout, Rotation
from orderproof.errors import EncodingError


@register("rotary")
class Rotary(Rotation):
    """Queries and keys turned by position."""

    claims = Claims(site="rotate", relative=True, symmetric=False)

    def __init__(
        self,
        head_width: int,
        *,
        base: float = 10_000.0,
        layout: Layout = "half",
        rotary_width: int | None = None,
        schedule: Schedule | None = None,
    ) -> None:
        if not base > 0:
            raise EncodingError(f"Rotary: base must be positive, got {base!r}")
        width = check_size(
            "Rotary", "head_width" if rotary_width is None else "rotary_width", rotary_width or head_width, even=True
        )
        spectrum = (schedule or geometric)(width=width, base=base)
        super().__init__(head_width, spectrum, layout=layout, rotary_width=rotary_width)
        self.base = base

    @classmethod
    def for_model(cls, sizes: Sizes) -> Self:
        """The encoding of the paper, in layout "half"."""
        return cls(sizes.head_width)

    def extra_repr(self) -> str:
        """The arguments it was made with."""
        return f"{super().extra_repr()}, base={self.base}"
