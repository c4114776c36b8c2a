"""Base class of relative biases: functions of the distance n - m alone.

    b[h](m, n) = bias_at_distance[h](n - m)

If the positions of queries and keys each rise by one, n - m takes Q + K - 1 values and the bias matrix is a Toeplitz
matrix of that vector: O(H (Q + K)) numbers instead of O(H Q K), which `attention` uses. A subclass defines
`bias_at_distance`; the matrix, the vector and FlexAttention's score function follow.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from orderproof.encodings._encoding import AttentionContent, PositionalEncoding, ScoreMod
from orderproof.encodings.checks import check_dtype, distance_at, distances
from orderproof.positions import has_readable_values

if TYPE_CHECKING:
    from jaxtyping import Float, Int


class RelativeBias(PositionalEncoding):
    """A bias that depends only on the distance n - m from query to key."""

    heads: int

    @abstractmethod
    def bias_at_distance(self, distance: Int[Tensor, "*any"]) -> Float[Tensor, "#head *any"]:
        """The bias of each head at each distance n - m, in the precision of the parameters or better."""

    def bias(
        self,
        q_positions: Int[Tensor, "*batch query"],
        k_positions: Int[Tensor, "*batch key"],
        *,
        content: AttentionContent | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> Float[Tensor, "batch head query key"]:
        """The bias of every query and key, rounded once to ``dtype``."""
        del content
        check_dtype(type(self).__name__, dtype)
        return self.bias_at_distance(distances(q_positions, k_positions)).movedim(0, 1).to(dtype)

    def score_mod(self, q_positions: Int[Tensor, "*batch query"], k_positions: Int[Tensor, "*batch key"]) -> ScoreMod:
        """The same bias as a score function."""
        distance = distance_at(q_positions, k_positions)
        traced = not has_readable_values(q_positions) and q_positions.device.type in ("cpu", "meta")
        if traced or not (q_positions.numel() and k_positions.numel()):

            def compute(score: Tensor, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
                return score + self.bias_at_distance(distance(batch, query, key))[head].to(score.dtype)

            return compute
        first = int(k_positions.min() - q_positions.max())
        last = int(k_positions.max() - q_positions.min())
        table = self.bias_for_distances(first, last, dtype=torch.float32, device=q_positions.device)

        def look_up(score: Tensor, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
            return score + table[head, distance(batch, query, key) - first]

        return look_up

    def bias_for_distances(
        self, first: int, last: int, *, dtype: torch.dtype, device: torch.device
    ) -> Float[Tensor, "head distance"]:
        """The bias at the distances first, first + 1, ..., last."""
        return self.bias_at_distance(torch.arange(first, last + 1, device=device)).to(dtype)
