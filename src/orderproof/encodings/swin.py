"""Swin window bias: a learned number per head for each offset of two patches in a window.

    b[h](m, n) = weight[(m_y - n_y + H - 1) (2W - 1) + m_x - n_x + W - 1, h]       for patches in a window of H x W

The bias depends only on the offset in rows and columns, so it is relative; it distinguishes all directions. Entries of
offsets that did not occur in training are arbitrary. All windows and, here, all layers share one table.
Source: Liu et al. 2021, "Swin Transformer", arXiv:2103.14030, section 3.2, "Relative position bias".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor, nn

from orderproof.encodings._encoding import ModelSizes
from orderproof.encodings._registry import register
from orderproof.encodings._relative_bias_2d import RelativeBias2D, smallest_square_grid

if TYPE_CHECKING:
    from jaxtyping import Float


@register("grid_table", aliases=("swin",))
class SwinBias(RelativeBias2D):
    """A learned table of biases per patch offset."""

    def __init__(self, heads: int, *, window: tuple[int, int]) -> None:
        super().__init__(heads, window=window)
        rows, columns = self.window
        self.weight = nn.Parameter(torch.empty((2 * rows - 1) * (2 * columns - 1), heads))
        self.reset_parameters()

    @classmethod
    def for_model(cls, sizes: ModelSizes, **options: Any) -> Self:
        """A square window that holds the model's length."""
        return cls(sizes.heads, **{"window": smallest_square_grid("SwinBias", sizes), **options})

    def reset_parameters(self) -> None:
        """Reinitialize the table: truncated normal, standard deviation 0.02."""
        nn.init.trunc_normal_(self.weight, std=0.02)

    def bias_table(self) -> Float[Tensor, "offset head"]:
        """The learned table."""
        return self.weight
