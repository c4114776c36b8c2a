"""Biases that depend on the distance alone: one vector holds all that a matrix would.

    b[h](m, n) = at[h](n - m)

For queries and keys whose positions each rise by one, n - m takes Q + K - 1 values, and the matrix is that vector
read along its diagonals (a Toeplitz matrix): O(H (Q + K)) numbers instead of O(H Q K). `attention` uses it.
An encoding of this kind says what `at` is; the matrix, the vector and FlexAttention's function follow from it.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from orderproof import positions as place
from orderproof.encodings._encoding import Content, PositionalEncoding, ScoreMod
from orderproof.encodings._operands import check_dtype, distance_at, distances

if TYPE_CHECKING:
    from jaxtyping import Float, Int


class OffsetBias(PositionalEncoding):
    """A bias that sees the distance n - m from query to key, and nothing else."""

    heads: int

    @abstractmethod
    def at(self, distance: Int[Tensor, "*any"]) -> Float[Tensor, "#head *any"]:
        """The bias of each head at each distance n - m, as exactly as its parameters allow."""

    def bias(
        self,
        q_positions: Int[Tensor, "*batch query"],
        k_positions: Int[Tensor, "*batch key"],
        *,
        content: Content | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> Float[Tensor, "batch head query key"]:
        """The bias of every query and key, rounded once to ``dtype``."""
        del content
        check_dtype(type(self).__name__, dtype)
        return self.at(distances(q_positions, k_positions)).movedim(0, 1).to(dtype)

    def score_mod(self, q_positions: Int[Tensor, "*batch query"], k_positions: Int[Tensor, "*batch key"]) -> ScoreMod:
        """The same bias, one score at a time."""
        distance = distance_at(q_positions, k_positions)
        traced = not place.readable(q_positions) and q_positions.device.type in ("cpu", "meta")
        if traced or not (q_positions.numel() and k_positions.numel()):

            def work_out(score: Tensor, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
                return score + self.at(distance(batch, query, key))[head].to(score.dtype)

            return work_out
        first = int(k_positions.min() - q_positions.max())
        last = int(k_positions.max() - q_positions.min())
        table = self.diagonals(first, last, dtype=torch.float32, device=q_positions.device)

        def look_up(score: Tensor, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
            return score + table[head, distance(batch, query, key) - first]

        return look_up

    def diagonals(
        self, first: int, last: int, *, dtype: torch.dtype, device: torch.device
    ) -> Float[Tensor, "head distance"]:
        """The bias at the distances first, first + 1, ..., last."""
        return self.at(torch.arange(first, last + 1, device=device)).to(dtype)
