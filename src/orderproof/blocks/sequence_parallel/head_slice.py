"""A slice of the heads of an encoding, for a rank that has all tokens but not all heads.

    b'[h] = b[first + h]          h = 0 .. heads - 1

A bias of positions is computed for all heads and sliced; for a relative bias this is one vector of distances per head.
A content-dependent bias gets zeros for queries and keys of the other heads, and its output is sliced. Parameters of
the other heads get zero gradients.
This is correct only if heads are independent. An encoding that mixes heads is rejected.
"""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor
from torch.nn import functional

from orderproof.encodings import AttentionContent, PositionalEncoding, RelativeBias, ScoreMod
from orderproof.errors import EncodingError


def slice_heads(encoding: PositionalEncoding, *, first: int, heads: int) -> PositionalEncoding:
    """The encoding of ``heads`` heads starting at ``first``; the encoding itself if it is the same for all heads."""
    total_heads = getattr(encoding, "heads", None)
    if encoding.claims.mixes_heads and total_heads != heads:
        name = type(encoding).__name__
        raise EncodingError(f"{name}: it mixes heads, which Ulysses splits over ranks; use AllGatherKV")
    if total_heads is None or total_heads == heads:
        return encoding
    if isinstance(encoding, RelativeBias):
        return _RelativeBiasHeadSlice(encoding, first, heads)
    return _HeadSlice(encoding, first, heads)


class _RelativeBiasHeadSlice(RelativeBias):
    """Some heads of a relative bias."""

    def __init__(self, encoding: RelativeBias, first: int, heads: int) -> None:
        super().__init__()
        self.encoding, self.first, self.heads = encoding, first, heads
        self.claims = encoding.claims

    def bias_at_distance(self, distance: Tensor) -> Tensor:
        """The bias of these heads at each distance."""
        return _slice_axis(self.encoding.bias_at_distance(distance), 0, self.encoding.heads, self.first, self.heads)


class _HeadSlice(PositionalEncoding):
    """Some heads of any other bias."""

    def __init__(self, encoding: PositionalEncoding, first: int, heads: int) -> None:
        super().__init__()
        self.encoding, self.first, self.heads = encoding, first, heads
        self.total_heads = int(encoding.heads)  # type: ignore[arg-type]
        self.claims = encoding.claims

    def bias(
        self,
        q_positions: Tensor,
        k_positions: Tensor,
        *,
        content: AttentionContent | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> Tensor:
        """The bias of these heads."""
        if content is not None:
            token_state = content.token_state
            content = dataclasses.replace(
                content,
                q=self._pad_heads(content.q),
                k=self._pad_heads(content.k),
                token_state=None if token_state is None else self._pad_heads(token_state),
            )
        return self._slice_output(self.encoding.bias(q_positions, k_positions, content=content, dtype=dtype))

    def score_mod(self, q_positions: Tensor, k_positions: Tensor) -> ScoreMod:
        """The bias of these heads, one score at a time."""
        added = self.encoding.score_mod(q_positions, k_positions)

        def at_global_head(score: Tensor, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
            return added(score, batch, head + self.first, query, key)

        return at_global_head

    def value_bias(self, weights: Tensor, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        """The value bias of these heads."""
        return self._slice_output(self.encoding.value_bias(self._pad_heads(weights), q_positions, k_positions))

    def _slice_output(self, x: Tensor) -> Tensor:
        return _slice_axis(x, 1, self.total_heads, self.first, self.heads)

    def _pad_heads(self, x: Tensor) -> Tensor:
        after = self.total_heads - self.first - self.heads
        return functional.pad(x, (0, 0, 0, 0, self.first, after))


def _slice_axis(x: Tensor, axis: int, total_heads: int, first: int, heads: int) -> Tensor:
    """These heads along an axis of all heads; an axis of size 1 is shared by all."""
    return x.narrow(axis, first, heads) if x.shape[axis] == total_heads else x
