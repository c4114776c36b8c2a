"""Biases on a picture: a table with one row for each way that two patches can lie to each other.

    b[h](m, n) = table[(m_y - n_y + H - 1) (2W - 1) + m_x - n_x + W - 1, h]       for patches in a window of H x W

Positions have two axes, row (y) and column (x), as `positions.grid` gives them. Patches farther apart than the
window is high or wide have no row in the table, which is an error and never the nearest row.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional

from orderproof import positions as place
from orderproof.encodings._encoding import Claims, Content, PositionalEncoding, ScoreMod, Sizes
from orderproof.encodings._operands import check_dtype, check_size, distance_at, distances
from orderproof.errors import EncodingError

if TYPE_CHECKING:
    from jaxtyping import Float, Int


class WindowBias(PositionalEncoding):
    """A bias that sees how far two patches lie apart, in rows and in columns."""

    claims = Claims(site="bias", relative=True, symmetric=False, ndim=2)

    def __init__(self, heads: int, *, window: tuple[int, int]) -> None:
        super().__init__()
        self.heads = check_size(type(self).__name__, "heads", heads)
        self.window = check_window(type(self).__name__, "window", window)

    @abstractmethod
    def table(self) -> Float[Tensor, "offset head"]:
        """The bias of each head for every offset, rows of offsets one after the other."""

    def bias(
        self,
        q_positions: Int[Tensor, "2 *batch query"],
        k_positions: Int[Tensor, "2 *batch key"],
        *,
        content: Content | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> Float[Tensor, "batch head query key"]:
        """The table's number for every query and key, rounded once to ``dtype``."""
        del content
        check_dtype(type(self).__name__, dtype)
        q, k = self._checked(q_positions, k_positions)
        index = self._row(-distances(q[0], k[0]), -distances(q[1], k[1]))
        return functional.embedding(index, self.table()).movedim(-1, 1).to(dtype)

    def score_mod(
        self, q_positions: Int[Tensor, "2 *batch query"], k_positions: Int[Tensor, "2 *batch key"]
    ) -> ScoreMod:
        """The same bias, one score at a time."""
        q, k = self._checked(q_positions, k_positions)
        down, across = distance_at(q[0], k[0]), distance_at(q[1], k[1])
        table = self.table().to(torch.float32)

        def look_up(score: Tensor, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
            return score + table[self._row(-down(batch, query, key), -across(batch, query, key)), head]

        return look_up

    def _row(self, down: Int[Tensor, "*any"], across: Int[Tensor, "*any"]) -> Int[Tensor, "*any"]:
        """The row of the table; past it for patches too far apart, so that looking it up fails."""
        height, width = self.window
        inside = (down.abs() < height) & (across.abs() < width)
        row = (down + height - 1) * (2 * width - 1) + across + width - 1
        return torch.where(inside, row, (2 * height - 1) * (2 * width - 1))

    def _checked(self, q_positions: Tensor, k_positions: Tensor) -> tuple[Tensor, Tensor]:
        q = place.check(q_positions, name="q_positions", axes=2)
        k = place.check(k_positions, name="k_positions", axes=2, device=q.device)
        if place.readable(q) and place.readable(k) and q.numel() and k.numel():
            for axis, (name, size) in enumerate(zip(("rows", "columns"), self.window, strict=True)):
                far = int(distances(q[axis], k[axis]).abs().max())
                if far >= size:
                    raise EncodingError(
                        f"{type(self).__name__}: positions {far} {name} apart are past the table, "
                        f"which ends at {size - 1}; make the window larger"
                    )
        return q, k

    def extra_repr(self) -> str:
        """The arguments it was made with."""
        return f"{self.heads}, window={self.window}"


def check_window(owner: str, name: str, window: object) -> tuple[int, int]:
    """Refuse a window that is not (rows, columns)."""
    if not isinstance(window, tuple) or len(window) != 2:
        raise EncodingError(f"{owner}: {name} must be (rows, columns), got {window!r}")
    rows, columns = (check_size(owner, f"{name}[{i}]", size) for i, size in enumerate(window))
    return rows, columns


def square(owner: str, sizes: Sizes) -> tuple[int, int]:
    """The smallest square window that holds as many patches as the model's stated length."""
    if sizes.length is None:
        raise EncodingError(f"{owner}: a table needs a length; state it, as in Transformer(..., length=196)")
    side = 1
    while side * side < sizes.length:
        side += 1
    return side, side
