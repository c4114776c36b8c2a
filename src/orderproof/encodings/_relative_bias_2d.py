"""Base class of relative biases on images: a table with one row per offset of two patches.

    b[h](m, n) = table[(m_y - n_y + H - 1) (2W - 1) + m_x - n_x + W - 1, h]       for patches in a window of H x W

Positions have two axes, row (y) and column (x), as in `positions.grid`. Patches farther apart than the window have no
table row, which raises an error; the offset is never clamped.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional

from orderproof.encodings._encoding import AttentionContent, Claims, ModelSizes, PositionalEncoding, ScoreMod
from orderproof.encodings.checks import check_dtype, check_size, distance_at, distances
from orderproof.errors import EncodingError
from orderproof.positions import has_readable_values
from orderproof.positions import validate as validate_positions

if TYPE_CHECKING:
    from jaxtyping import Float, Int


class RelativeBias2D(PositionalEncoding):
    """A bias that depends only on the offset of two patches, in rows and columns."""

    claims = Claims(site="bias", relative=True, symmetric=False, ndim=2)

    def __init__(self, heads: int, *, window: tuple[int, int]) -> None:
        super().__init__()
        self.heads = check_size(type(self).__name__, "heads", heads)
        self.window = check_grid(type(self).__name__, "window", window)

    @abstractmethod
    def bias_table(self) -> Float[Tensor, "offset head"]:
        """The bias of each head for every offset, in raster order."""

    def bias(
        self,
        q_positions: Int[Tensor, "2 *batch query"],
        k_positions: Int[Tensor, "2 *batch key"],
        *,
        content: AttentionContent | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> Float[Tensor, "batch head query key"]:
        """The table entry for every query and key, rounded once to ``dtype``."""
        del content
        check_dtype(type(self).__name__, dtype)
        q, k = self._check_positions(q_positions, k_positions)
        index = self._table_index(-distances(q[0], k[0]), -distances(q[1], k[1]))
        return functional.embedding(index, self.bias_table()).movedim(-1, 1).to(dtype)

    def score_mod(
        self, q_positions: Int[Tensor, "2 *batch query"], k_positions: Int[Tensor, "2 *batch key"]
    ) -> ScoreMod:
        """The same bias as a score function."""
        q, k = self._check_positions(q_positions, k_positions)
        down, across = distance_at(q[0], k[0]), distance_at(q[1], k[1])
        table = self.bias_table().to(torch.float32)

        def look_up(score: Tensor, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
            return score + table[self._table_index(-down(batch, query, key), -across(batch, query, key)), head]

        return look_up

    def _table_index(self, down: Int[Tensor, "*any"], across: Int[Tensor, "*any"]) -> Int[Tensor, "*any"]:
        """The table row; out of range for offsets outside the window, so that indexing fails."""
        height, width = self.window
        inside = (down.abs() < height) & (across.abs() < width)
        row = (down + height - 1) * (2 * width - 1) + across + width - 1
        return torch.where(inside, row, (2 * height - 1) * (2 * width - 1))

    def _check_positions(self, q_positions: Tensor, k_positions: Tensor) -> tuple[Tensor, Tensor]:
        q = validate_positions(q_positions, name="q_positions", axes=2)
        k = validate_positions(k_positions, name="k_positions", axes=2, device=q.device)
        if has_readable_values(q) and has_readable_values(k) and q.numel() and k.numel():
            for axis, (name, size) in enumerate(zip(("rows", "columns"), self.window, strict=True)):
                far = int(distances(q[axis], k[axis]).abs().max())
                if far >= size:
                    raise EncodingError(
                        f"{type(self).__name__}: expected positions at most {size - 1} {name} apart, got {far}; "
                        "use a larger window"
                    )
        return q, k

    def extra_repr(self) -> str:
        """The constructor arguments."""
        return f"{self.heads}, window={self.window}"


def check_grid(owner: str, name: str, window: object) -> tuple[int, int]:
    """Reject a window that is not (rows, columns)."""
    if not isinstance(window, tuple) or len(window) != 2:
        raise EncodingError(f"{owner}: {name} must be (rows, columns), got {window!r}")
    rows, columns = (check_size(owner, f"{name}[{i}]", size) for i, size in enumerate(window))
    return rows, columns


def smallest_square_grid(owner: str, sizes: ModelSizes) -> tuple[int, int]:
    """The smallest square window with at least as many patches as the model's length."""
    if sizes.length is None:
        raise EncodingError(f"{owner}: a table needs a length; pass it, as in Transformer(..., length=196)")
    side = 1
    while side * side < sizes.length:
        side += 1
    return side, side
