"""Axial rotary encoding: an equal share of the feature pairs for each axis of a position.

    angle of pair j of axis a at position p:  p[a] * base ** (-2j / w),   w = head_width / axes,   j = 0 .. w/2 - 1

A score depends only on the distance of two patches along each axis. The first share of the pairs is rotated by axis
`axis_order[0]`, the next by `axis_order[1]`, and so on: (0, 1) is rows, then columns, of `positions.grid`, as in
Qwen2-VL's vision encoder and DINOv3; (1, 0) is columns first, as in rope-vit. A token at position 0 on all axes, such
as a class or register token, is not rotated. (Pixtral interleaves its axes in one longer series of frequencies, which
is another function.)
Source: Heo et al. 2024, "Rotary Position Embedding for Vision Transformer", arXiv:2403.13298, section 3.2.
"""

from __future__ import annotations

from typing import Any, Self

from orderproof.encodings._encoding import Claims, ModelSizes
from orderproof.encodings._frequencies import Spectrum
from orderproof.encodings._registry import register
from orderproof.encodings._rotary_base import RotaryBase, rotary_spectrum
from orderproof.encodings._rotary_pairs import RotaryLayout
from orderproof.encodings.checks import check_size
from orderproof.errors import EncodingError


@register("axial")
class AxialRotary(RotaryBase):
    """Rotary encoding with a share of the feature pairs per axis."""

    def __init__(
        self,
        head_width: int,
        *,
        axes: int = 2,
        base: float = 100.0,
        layout: RotaryLayout = "half",
        axis_order: tuple[int, ...] | None = None,
    ) -> None:
        spectrum, pair_axes = axial_spectrum("AxialRotary", head_width, axes=axes, base=base, axis_order=axis_order)
        super().__init__(head_width, spectrum, layout=layout, pair_axes=pair_axes if axes > 1 else None)
        self.claims = Claims(site="rotate", relative=True, symmetric=False, ndim=axes)
        self.axes = axes
        self.base = base
        self.axis_order = axis_order

    @classmethod
    def for_model(cls, sizes: ModelSizes, **options: Any) -> Self:
        """Two axes, in layout "half"."""
        return cls(sizes.head_width, **options)

    def extra_repr(self) -> str:
        """The constructor arguments."""
        axis_order = "" if self.axis_order is None else f", axis_order={self.axis_order}"
        return f"{super().extra_repr()}, axes={self.axes}, base={self.base}{axis_order}"


def axial_spectrum(
    owner: str, head_width: int, *, axes: int, base: float, axis_order: tuple[int, ...] | None = None
) -> tuple[Spectrum, tuple[int, ...]]:
    """The frequencies of all pairs, in equal shares per axis, and the axis of each pair."""
    check_size(owner, "head_width", head_width, even=True)
    check_size(owner, "axes", axes)
    if head_width % (2 * axes):
        raise EncodingError(f"{owner}: head_width must be a multiple of {2 * axes} for {axes} axes, got {head_width}")
    if axis_order is not None and sorted(axis_order) != list(range(axes)):
        raise EncodingError(f"{owner}: axis_order must name each axis from 0 to {axes - 1} once, got {axis_order!r}")
    share = rotary_spectrum(owner, None, width=head_width // axes, base=base).frequencies
    pair_axes = tuple(a for a in (axis_order or range(axes)) for _ in share)
    return Spectrum(frequencies=share * axes), pair_axes
