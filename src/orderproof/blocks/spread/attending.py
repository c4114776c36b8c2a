"""What the ways of attending to a sequence that is spread over ranks have in common.

Each rank holds some tokens of every row, with their global positions. Everything outside of attention looks at one
token at a time and needs to know nothing of ranks. So does a rotation: each rank turns its own queries and keys, by
positions that are already global. What is left is to bring queries and keys together, and that is where the ways
differ (`gather`, `ulysses`). Who sees whom goes by positions, documents and padding, never by which rank has what.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from orderproof import positions as place
from orderproof.blocks.spread.apart import check_apart
from orderproof.blocks.spread.gathering import gathered
from orderproof.blocks.spread.ranks import Ranks
from orderproof.encodings import Backend, NoEncoding, PositionalEncoding
from orderproof.encodings._attention_arguments import check_encoding
from orderproof.encodings._documents import check_documents
from orderproof.encodings.sight import check_masks

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int


@dataclass(frozen=True, kw_only=True)
class Order:
    """Where some tokens stand, and which of them may be seen at all."""

    positions: Int[Tensor, "*axes_and_batch token"]
    documents: Int[Tensor, "*batch token"] | None
    padding_mask: Bool[Tensor, "batch token"] | None

    def of_all(self, ranks: Ranks) -> Order:
        """The same of the tokens of all ranks, in the order of the ranks."""
        documents, real = (None if x is None else gathered(x, -1, ranks) for x in (self.documents, self.padding_mask))
        return Order(positions=gathered(self.positions, -1, ranks), documents=documents, padding_mask=real)


@dataclass(frozen=True, kw_only=True)
class How:
    """How to attend, once queries and keys have been brought together."""

    encoding: PositionalEncoding
    """What has still to be added; not a rotation, which has been done."""
    causal: bool
    scale: float
    backend: Backend


class Spread(ABC):
    """A way to attend to the tokens of all ranks."""

    def __init__(self, ranks: Ranks | None = None) -> None:
        self.ranks = Ranks.here() if ranks is None else ranks

    def attend(
        self,
        q: Float[Tensor, "batch head token head_width"],
        k: Float[Tensor, "batch head token head_width"],
        v: Float[Tensor, "batch head token head_width"],
        *,
        encoding: PositionalEncoding,
        positions: Int[Tensor, "*axes_and_batch token"],
        causal: bool,
        documents: Int[Tensor, "*batch token"] | None = None,
        padding_mask: Bool[Tensor, "batch token"] | None = None,
        notes: Float[Tensor, "batch head token note"] | None = None,
        lengths: Int[Tensor, " batch"] | int | None = None,
        backend: Backend = "sdpa",
    ) -> Float[Tensor, "batch head token head_width"]:
        """Attend from the tokens of this rank to those of all ranks.

        All that is given is of this rank's tokens, their positions among all of them; what one rank is given
        (documents, padding), all are.
        """
        check_encoding(encoding, q, causal=causal, notes=notes, lengths=lengths)
        own = _checked(q, encoding, positions, documents, padding_mask)
        scale = encoding.scale(q.shape[-1])
        if encoding.claims.site == "rotate":
            p = own.positions
            q, k = encoding.rotate(q, k, p) if lengths is None else encoding.rotate(q, k, p, lengths=lengths)
            if encoding.claims.ndim > 1:
                own = Order(positions=own.positions[0], documents=own.documents, padding_mask=own.padding_mask)
            encoding = NoEncoding()
        everyone = own.of_all(self.ranks)
        if causal:
            order = everyone.positions if encoding.claims.ndim == 1 else everyone.positions[0]
            check_apart(order, everyone.documents, everyone.padding_mask)
        how = How(encoding=encoding, causal=causal, scale=scale, backend=backend)
        return self._mixed(q, k, v, notes, own, everyone, how)

    @abstractmethod
    def _mixed(
        self, q: Tensor, k: Tensor, v: Tensor, notes: Tensor | None, own: Order, everyone: Order, how: How
    ) -> Tensor:
        """The values of the tokens of all ranks, mixed for each query of this one."""


def _checked(
    q: Tensor,
    encoding: PositionalEncoding,
    positions: Tensor,
    documents: Tensor | None,
    padding_mask: Tensor | None,
) -> Order:
    batch, heads, tokens, _ = q.shape
    axes = None if encoding.claims.ndim == 1 else encoding.claims.ndim
    positions = place.check(positions, axes=axes, batch=batch, tokens=tokens, device=q.device)
    numbers = check_documents(documents, None, batch=batch, queries=tokens, keys=tokens, device=q.device)
    check_masks(padding_mask, None, batch=batch, heads=heads, queries=tokens, keys=tokens, device=q.device)
    return Order(positions=positions, documents=None if numbers is None else numbers[0], padding_mask=padding_mask)


def together(*parts: Float[Tensor, "batch head token _"]) -> tuple[Tensor, list[int]]:
    """Some tensors side by side, to be sent as one; and the widths to cut them apart by."""
    return torch.cat(parts, dim=-1), [part.shape[-1] for part in parts]
