"""Axial rotary encoding: one share of the feature pairs for each axis of a position.

    angle of pair j of axis a at position p:  p[a] * base ** (-2j / w),   w = head_width / axes,   j = 0 .. w/2 - 1

so a score sees how far two patches are apart along each axis, and nothing else. The first share of the pairs is
turned by axis `order[0]`, the next by `order[1]`, and so on: (0, 1) is rows, then columns, of `positions.grid`, as in
Qwen2-VL's vision and DINOv3; (1, 0) is columns first, as in rope-vit. A token at position 0 on all axes is not turned:
the place of class and register tokens. (Pixtral gives its axes alternate frequencies of one longer series: another
function.)
Source: Heo et al. 2024, "Rotary Position Embedding for Vision Transformer", arXiv:2403.13298, section 3.2.
"""

from __future__ import annotations

from typing import Self

from orderproof.encodings._encoding import Claims, Sizes
from orderproof.encodings._frequencies import Spectrum
from orderproof.encodings._operands import check_size
from orderproof.encodings._pairs import Layout
from orderproof.encodings._registry import register
from orderproof.encodings._rotation import Rotation, spectrum_of
from orderproof.errors import EncodingError


@register("axial")
class Axial(Rotation):
    """Queries and keys turned by each axis in a share of their features."""

    def __init__(
        self,
        head_width: int,
        *,
        axes: int = 2,
        base: float = 100.0,
        layout: Layout = "half",
        order: tuple[int, ...] | None = None,
    ) -> None:
        spectrum, axis = axial_spectrum("Axial", head_width, axes=axes, base=base, order=order)
        super().__init__(head_width, spectrum, layout=layout, axis=axis if axes > 1 else None)
        self.claims = Claims(site="rotate", relative=True, symmetric=False, ndim=axes)
        self.axes = axes
        self.base = base
        self.order = order

    @classmethod
    def for_model(cls, sizes: Sizes) -> Self:
        """Two axes, in layout "half"."""
        return cls(sizes.head_width)

    def extra_repr(self) -> str:
        """The arguments it was made with."""
        order = "" if self.order is None else f", order={self.order}"
        return f"{super().extra_repr()}, axes={self.axes}, base={self.base}{order}"


def axial_spectrum(
    owner: str, head_width: int, *, axes: int, base: float, order: tuple[int, ...] | None = None
) -> tuple[Spectrum, tuple[int, ...]]:
    """The frequencies of an equal share of pairs for each axis, and the axis of each pair."""
    check_size(owner, "head_width", head_width, even=True)
    check_size(owner, "axes", axes)
    if head_width % (2 * axes):
        raise EncodingError(f"{owner}: head_width must be a multiple of {2 * axes} for {axes} axes, got {head_width}")
    if order is not None and sorted(order) != list(range(axes)):
        raise EncodingError(f"{owner}: order must name each axis from 0 to {axes - 1} once, got {order!r}")
    share = spectrum_of(owner, None, width=head_width // axes, base=base).frequencies
    axis = tuple(a for a in (order or range(axes)) for _ in share)
    return Spectrum(frequencies=share * axes), axis
