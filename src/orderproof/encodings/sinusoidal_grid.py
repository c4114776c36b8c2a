"""Sinusoidal grid encoding: an equal share of sinusoidal features for each axis of a position.

    e(p) = [ w(p[axis_order[0]]),  w(p[axis_order[1]]),  ... ]

    w(n)[i] = sin(n * frequency[i])       w(n)[share/2 + i] = cos(n * frequency[i])       layout "concatenated"

    frequency[i] = base ** (-2i / share),   i = 0 .. share/2 - 1,   share = width / axes

Positions have one number per axis: (row, column) in an image (`positions.grid`), (time, row, column) in a video
(`positions.mrope`), one in a text. `axis_order` gives the axis of each share. Two conventions are in use for images,
and weights trained with one are wrong with the other:

    axis_order (1, 0)   column first    MAE, whose meshgrid "goes w first"; transformers' ViT-MAE
    axis_order (0, 1)   row first       MoCo-v3, whose "w" runs over the rows of its token order

Source: Chen et al. 2021, "An Empirical Study of Training Self-Supervised Vision Transformers" (MoCo v3),
arXiv:2104.02057, moco-v3/vits.py, build_2d_sincos_position_embedding; He et al. 2021, "Masked Autoencoders Are Scalable
Vision Learners", arXiv:2111.06377, mae/util/pos_embed.py, get_2d_sincos_pos_embed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor

from orderproof.encodings._encoding import Claims, ModelSizes, PositionalEncoding
from orderproof.encodings._registry import register
from orderproof.encodings.checks import check_dtype, check_features, check_size, working_dtype
from orderproof.encodings.sinusoidal import FrequencySpacing, SinusoidalLayout, sinusoidal_spectrum, sinusoids
from orderproof.errors import EncodingError
from orderproof.positions import validate as validate_positions

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@register("sinusoidal_grid")
class SinusoidalGrid(PositionalEncoding):
    """Sinusoids of each axis, added to the embeddings."""

    def __init__(
        self,
        width: int,
        *,
        axis_order: tuple[int, ...],
        base: float = 10_000.0,
        layout: SinusoidalLayout = "concatenated",
        spacing: FrequencySpacing = "open",
    ) -> None:
        super().__init__()
        self.axis_order = tuple(axis_order)
        axes = len(self.axis_order)
        if not 1 <= axes <= 3 or sorted(self.axis_order) != list(range(axes)):
            raise EncodingError(
                f"SinusoidalGrid: axis_order must name each axis once, such as (1, 0), got {axis_order}"
            )
        self.width = check_size("SinusoidalGrid", "width", width)
        if width % (2 * axes):
            raise EncodingError(f"SinusoidalGrid: width must be a multiple of {2 * axes} for {axes} axes, got {width}")
        share = width // axes
        self.spectrum = sinusoidal_spectrum("SinusoidalGrid", share, base=base, layout=layout, spacing=spacing)
        self.claims = Claims(site="embed", relative=False, symmetric=False, ndim=axes)
        self.base = base
        self.layout: SinusoidalLayout = layout
        self.spacing: FrequencySpacing = spacing

    @classmethod
    def for_model(cls, sizes: ModelSizes, **options: Any) -> Self:
        """One axis, for text."""
        return cls(sizes.width, **{"axis_order": (0,), **options})

    def encoding_table(
        self, positions: Int[Tensor, "*axes_and_batch token"], *, dtype: torch.dtype = torch.float32
    ) -> Float[Tensor, "*batch token width"]:
        """The row e(p) of each position, rounded once to ``dtype``."""
        check_dtype("SinusoidalGrid", dtype)
        positions = validate_positions(positions, axes=self._position_axes())
        each = positions.unsqueeze(0) if self._position_axes() is None else positions
        shares = [sinusoids(each[axis], self.spectrum, layout=self.layout, dtype=dtype) for axis in self.axis_order]
        return torch.cat(shares, dim=-1)

    def embed(
        self, x: Float[Tensor, "batch token width"], positions: Int[Tensor, "*axes_and_batch token"]
    ) -> Float[Tensor, "batch token width"]:
        """Add each position's row. The sum is computed in float32 or float64 and rounded once."""
        check_features("SinusoidalGrid", x, self.width)
        positions = validate_positions(
            positions, axes=self._position_axes(), batch=x.shape[0], tokens=x.shape[1], device=x.device
        )
        wide = working_dtype(x)
        return (x.to(wide) + self.encoding_table(positions, dtype=wide)).to(x.dtype)

    def extra_repr(self) -> str:
        """The constructor arguments."""
        options = f"base={self.base}, layout={self.layout!r}, spacing={self.spacing!r}"
        return f"{self.width}, axis_order={self.axis_order}, {options}"

    def _position_axes(self) -> int | None:
        """The number of axes for `positions.validate`."""
        return None if self.claims.ndim == 1 else self.claims.ndim
