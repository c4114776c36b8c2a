"""Sinusoidal grid encoding: a share of the features for each axis of a position, waves in each.

    e(p) = [ w(p[order[0]]),  w(p[order[1]]),  ... ]

    w(n)[i] = sin(n * frequency[i])       w(n)[share/2 + i] = cos(n * frequency[i])       layout "concatenated"

    frequency[i] = base ** (-2i / share),   i = 0 .. share/2 - 1,   share = width / axes

A position has one number an axis: (row, column) in a picture (`positions.grid`), (time, row, column) in a film
(`positions.mrope`), one in a text. `order` says which axis each share belongs to. Two conventions are in use for
pictures, and weights trained with one are wrong with the other:

    order (1, 0)   the column first    MAE, whose meshgrid "goes w first"; transformers' ViT-MAE
    order (0, 1)   the row first       MoCo-v3, whose "w" runs over the rows of its token order

Source: Chen et al. 2021, "An Empirical Study of Training Self-Supervised Vision Transformers" (MoCo v3),
arXiv:2104.02057, moco-v3/vits.py, build_2d_sincos_position_embedding; He et al. 2021, "Masked Autoencoders Are Scalable
Vision Learners", arXiv:2111.06377, mae/util/pos_embed.py, get_2d_sincos_pos_embed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import torch
from torch import Tensor

from orderproof import positions as place
from orderproof.encodings._encoding import Claims, PositionalEncoding, Sizes
from orderproof.encodings._operands import check_dtype, check_features, check_size, working_dtype
from orderproof.encodings._registry import register
from orderproof.encodings.sinusoidal import Spacing, WaveLayout, spectrum_of, waves
from orderproof.errors import EncodingError

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@register("sinusoidal_grid")
class SinusoidalGrid(PositionalEncoding):
    """Waves for each axis, added to the embeddings."""

    def __init__(
        self,
        width: int,
        *,
        order: tuple[int, ...],
        base: float = 10_000.0,
        layout: WaveLayout = "concatenated",
        spacing: Spacing = "open",
    ) -> None:
        super().__init__()
        self.order = tuple(order)
        axes = len(self.order)
        if not 1 <= axes <= 3 or sorted(self.order) != list(range(axes)):
            raise EncodingError(
                f"SinusoidalGrid: order must name each axis once, such as (0,), (1, 0) or (0, 1, 2), got {order}"
            )
        self.width = check_size("SinusoidalGrid", "width", width)
        if width % (2 * axes):
            raise EncodingError(f"SinusoidalGrid: width must be a multiple of {2 * axes} for {axes} axes, got {width}")
        share = width // axes
        self.spectrum = spectrum_of("SinusoidalGrid", share, base=base, layout=layout, spacing=spacing)
        self.claims = Claims(site="embed", relative=False, symmetric=False, ndim=axes)
        self.base = base
        self.layout: WaveLayout = layout
        self.spacing: Spacing = spacing

    @classmethod
    def for_model(cls, sizes: Sizes) -> Self:
        """The tokens of a text have one axis."""
        return cls(sizes.width, order=(0,))

    def table(
        self, positions: Int[Tensor, "*axes_and_batch token"], *, dtype: torch.dtype = torch.float32
    ) -> Float[Tensor, "*batch token width"]:
        """The row e(p) of each position, rounded once to ``dtype``."""
        check_dtype("SinusoidalGrid", dtype)
        positions = place.check(positions, axes=self._axes())
        each = positions.unsqueeze(0) if self._axes() is None else positions
        shares = [waves(each[axis], self.spectrum, layout=self.layout, dtype=dtype) for axis in self.order]
        return torch.cat(shares, dim=-1)

    def embed(
        self, x: Float[Tensor, "batch token width"], positions: Int[Tensor, "*axes_and_batch token"]
    ) -> Float[Tensor, "batch token width"]:
        """Add each position's row; the sum is made in float32 or float64 and rounded once."""
        check_features("SinusoidalGrid", x, self.width)
        positions = place.check(positions, axes=self._axes(), batch=x.shape[0], tokens=x.shape[1], device=x.device)
        wide = working_dtype(x)
        return (x.to(wide) + self.table(positions, dtype=wide)).to(x.dtype)

    def extra_repr(self) -> str:
        """The arguments it was made with."""
        return f"{self.width}, order={self.order}, base={self.base}, layout={self.layout!r}, spacing={self.spacing!r}"

    def _axes(self) -> int | None:
        """The number of axes, as `positions.check` takes it."""
        return None if self.claims.ndim == 1 else self.claims.ndim
