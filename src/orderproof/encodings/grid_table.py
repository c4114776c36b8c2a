"""Window bias of Swin: add to each score a trained number, looked up by how two patches lie to each other.

    b[h](m, n) = weight[(m_y - n_y + H - 1) (2W - 1) + m_x - n_x + W - 1, h]       for patches in a window of H x W

b sees the offset only, in rows and columns, so it is relative; it tells right from left and above from below.
Rows that no two patches of training had between them mean nothing. All windows and, here, all layers share one table.
Source: Liu et al. 2021, "Swin Transformer", arXiv:2103.14030, section 3.2, "Relative position bias".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import torch
from torch import Tensor, nn

from orderproof.encodings._encoding import Sizes
from orderproof.encodings._grid import WindowBias, square
from orderproof.encodings._registry import register

if TYPE_CHECKING:
    from jaxtyping import Float


@register("grid_table", called=("swin",))
class GridBias(WindowBias):
    """A trained number for each offset of two patches."""

    def __init__(self, heads: int, *, window: tuple[int, int]) -> None:
        super().__init__(heads, window=window)
        rows, columns = self.window
        self.weight = nn.Parameter(torch.empty((2 * rows - 1) * (2 * columns - 1), heads))
        self.reset_parameters()

    @classmethod
    def for_model(cls, sizes: Sizes) -> Self:
        """A square window of the model's stated length."""
        return cls(sizes.heads, window=square("GridBias", sizes))

    def reset_parameters(self) -> None:
        """Draw the numbers anew: normal, deviation 0.02."""
        nn.init.trunc_normal_(self.weight, std=0.02)

    def table(self) -> Float[Tensor, "offset head"]:
        """The trained numbers, as they are."""
        return self.weight
