"""A whole transformer: tokens or features in, an encoding of their order, a stack of layers.

    x = embedding[tokens]                 where there is a vocabulary; otherwise x is given
    x = encoding.embed(x, positions)      where the encoding acts on embeddings
    x = stack(x)                          where it acts in attention, it does so in every layer
    scores = x W + b                      one for each word, where there is a vocabulary

Positions are stated, or else counted: 0, 1, 2, ... over the real tokens of each row, on from those in the cache; or,
where documents are numbered, over the tokens of each document.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from orderproof import positions as place
from orderproof.blocks.add_norm import Norm, Order
from orderproof.blocks.cache import KeyValueCache
from orderproof.blocks.spread import Spread
from orderproof.blocks.stack import Decoder, Encoder
from orderproof.encodings import Backend, NoEncoding, PositionalEncoding, Sizes, get
from orderproof.errors import PositionError, UsageError

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int


class Transformer(nn.Module):
    """An encoder, or where ``causal`` a decoder, with any positional encoding."""

    def __init__(
        self,
        width: int,
        heads: int,
        layers: int,
        *,
        encoding: str | PositionalEncoding = "rotary",
        causal: bool,
        vocabulary: int | None = None,
        length: int | None = None,
        hidden: int | None = None,
        norm: Norm = "layer",
        order: Order = "before",
        backend: Backend = "sdpa",
    ) -> None:
        super().__init__()
        stack = Decoder if causal else Encoder
        self.stack = stack(width, heads, layers, hidden=hidden, norm=norm, order=order, backend=backend)
        self.width = width
        self.heads = heads
        if isinstance(encoding, str):
            encoding = get(encoding).for_model(Sizes(width=width, heads=heads, causal=causal, length=length))
        elif length is not None:
            raise UsageError("length: expected none beside a finished encoding, which has its own; leave it out")
        self.encoding = encoding
        self.embedding = None if vocabulary is None else nn.Embedding(vocabulary, width)
        self.to_scores = None if vocabulary is None else nn.Linear(width, vocabulary)

    def forward(
        self,
        x: Float[Tensor, "batch token width"] | Int[Tensor, "batch token"],
        positions: Int[Tensor, "*batch token"] | None = None,
        *,
        documents: Int[Tensor, "*batch token"] | None = None,
        padding_mask: Bool[Tensor, "batch token"] | None = None,
        mask: Bool[Tensor, "*batch_and_head token key"] | None = None,
        caches: list[KeyValueCache] | None = None,
        spread: Spread | None = None,
        lengths: Int[Tensor, " batch"] | int | None = None,
    ) -> Float[Tensor, "batch token width"] | Float[Tensor, "batch token vocabulary"]:
        """Transform features; or, where there is a vocabulary, read words and score the next ones.

        With ``spread``, a row is spread over ranks: all that is given is of this rank's tokens, ``positions`` among
        all of them.
        """
        x = self._features(x)
        if positions is None:
            if spread is not None:
                raise PositionError(
                    "positions: expected the global ones of this rank's tokens beside spread, got none; "
                    "own_places gives their places in the row"
                )
            positions = self._place(self._count(x, documents, padding_mask, caches))
        in_attention = self.encoding
        if self.encoding.claims.site == "embed":
            x, in_attention = self.encoding.embed(x, positions), NoEncoding()
        x = self.stack(
            x,
            positions,
            encoding=in_attention,
            documents=documents,
            padding_mask=padding_mask,
            mask=mask,
            caches=caches,
            spread=spread,
            lengths=lengths,
        )
        return x if self.to_scores is None else self.to_scores(x)

    def new_caches(self, batch: int, length: int) -> list[KeyValueCache]:
        """Empty caches for ``batch`` rows of at most ``length`` tokens, one a layer."""
        weight = next(self.stack.parameters())
        axes = None if self.encoding.claims.ndim == 1 else self.encoding.claims.ndim
        head_width = self.width // self.heads
        return [
            KeyValueCache(batch, self.heads, length, head_width, axes=axes, dtype=weight.dtype, device=weight.device)
            for _ in self.stack.layers
        ]

    def _features(self, x: Tensor) -> Tensor:
        if self.embedding is None:
            if not x.is_floating_point() or x.dim() != 3 or x.shape[-1] != self.width:
                came = f"{x.dtype} {list(x.shape)}"
                raise UsageError(
                    f"x: expected floating [batch, token, {self.width}], got {came}; words need vocabulary="
                )
            return x
        if x.dtype not in (torch.int32, torch.int64) or x.dim() != 2:
            raise UsageError(f"x: expected words as integers [batch, token], got {x.dtype} {list(x.shape)}")
        embedded: Tensor = self.embedding(x)
        return embedded

    def _count(
        self,
        x: Tensor,
        documents: Tensor | None,
        padding_mask: Tensor | None,
        caches: list[KeyValueCache] | None,
    ) -> Tensor:
        if documents is not None:
            if padding_mask is not None or caches is not None:
                raise PositionError("positions: expected beside documents with pad tokens or a cache, got none")
            return place.from_documents(documents)
        past = caches[0].seen if caches else 0
        if padding_mask is None:
            return place.offset(past, x.shape[1], device=x.device)
        before = past.unsqueeze(-1) if isinstance(past, Tensor) else past
        return place.from_mask(padding_mask) + before

    def _place(self, count: Int[Tensor, "*batch token"]) -> Int[Tensor, "*axes_and_batch token"]:
        axes = self.encoding.claims.ndim
        if axes != 1:
            raise PositionError(
                f"positions: an encoding of {axes} axes cannot count them; pass positions, as from grid"
            )
        return count
