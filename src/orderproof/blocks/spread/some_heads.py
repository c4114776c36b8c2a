"""An encoding as some of its heads see it: for a rank that has all tokens, but not all heads.

    b'[h] = b[first + h]          h = 0 .. heads - 1

A bias that sees positions alone is worked out for all heads and cut; where it is one vector of distances, that is all
there is to work out. One that depends on what tokens hold is given zeros for what they hold in the other heads, whose
share is then cut off again. Parameters get the gradient of these heads, and zeros for the rest.
What follows only where heads do not mix: with zeros in its place another head says something else. An encoding that
claims to mix them is refused.
"""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor
from torch.nn import functional

from orderproof.encodings import Content, OffsetBias, PositionalEncoding
from orderproof.encodings._encoding import ScoreMod
from orderproof.errors import EncodingError


def some_heads(encoding: PositionalEncoding, *, first: int, heads: int) -> PositionalEncoding:
    """The encoding in so many heads from ``first`` on; itself where it serves any number of heads."""
    of_all = getattr(encoding, "heads", None)
    if encoding.claims.mixes_heads and of_all != heads:
        name = type(encoding).__name__
        raise EncodingError(f"{name}: it mixes heads, which Ulysses holds apart on different ranks; use Gather")
    if of_all is None or of_all == heads:
        return encoding
    if isinstance(encoding, OffsetBias):
        return _SomeDistances(encoding, first, heads)
    return _SomeHeads(encoding, first, heads)


class _SomeDistances(OffsetBias):
    """Some heads of a bias that sees distances alone."""

    def __init__(self, whole: OffsetBias, first: int, heads: int) -> None:
        super().__init__()
        self.whole, self.first, self.heads = whole, first, heads
        self.claims = whole.claims

    def at(self, distance: Tensor) -> Tensor:
        """The bias of these heads at each distance."""
        return _cut(self.whole.at(distance), 0, self.whole.heads, self.first, self.heads)


class _SomeHeads(PositionalEncoding):
    """Some heads of any other bias."""

    def __init__(self, whole: PositionalEncoding, first: int, heads: int) -> None:
        super().__init__()
        self.whole, self.first, self.heads = whole, first, heads
        self.of_all = int(whole.heads)  # type: ignore[arg-type]
        self.claims = whole.claims

    def bias(
        self,
        q_positions: Tensor,
        k_positions: Tensor,
        *,
        content: Content | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> Tensor:
        """The bias of these heads."""
        if content is not None:
            notes = content.notes
            content = dataclasses.replace(
                content,
                q=self._among_zeros(content.q),
                k=self._among_zeros(content.k),
                notes=None if notes is None else self._among_zeros(notes),
            )
        return self._own(self.whole.bias(q_positions, k_positions, content=content, dtype=dtype))

    def score_mod(self, q_positions: Tensor, k_positions: Tensor) -> ScoreMod:
        """The same, one score at a time."""
        added = self.whole.score_mod(q_positions, k_positions)

        def at_own_head(score: Tensor, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
            return added(score, batch, head + self.first, query, key)

        return at_own_head

    def values(self, weights: Tensor, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        """What to add to the mixed values of these heads."""
        return self._own(self.whole.values(self._among_zeros(weights), q_positions, k_positions))

    def _own(self, x: Tensor) -> Tensor:
        return _cut(x, 1, self.of_all, self.first, self.heads)

    def _among_zeros(self, x: Tensor) -> Tensor:
        after = self.of_all - self.first - self.heads
        return functional.pad(x, (0, 0, 0, 0, self.first, after))


def _cut(x: Tensor, axis: int, of_all: int, first: int, heads: int) -> Tensor:
    """These heads along an axis that has them all, or one for all."""
    return x.narrow(axis, first, heads) if x.shape[axis] == of_all else x
