"""A complete transformer: tokens or features in, a positional encoding, a stack of layers.

    x = embedding[tokens]                 with a vocabulary; otherwise x is the input
    x = encoding.embed(x, positions)      for encodings that act on embeddings
    x = stack(x)                          other encodings act in the attention of every layer
    logits = x W + b                      one per word of the vocabulary, if there is one

Default positions count the real tokens of each row from 0, or from the end of the cache; with document ids they
restart in each document.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

import torch
from torch import Tensor, nn

from orderproof.blocks.kv_cache import KeyValueCache
from orderproof.blocks.layer import LayerOptions
from orderproof.blocks.sequence_parallel import SequenceParallel
from orderproof.blocks.stack import Decoder, Encoder
from orderproof.encodings import ModelSizes, NoEncoding, PositionalEncoding, build
from orderproof.errors import PositionError, UsageError
from orderproof.positions import from_document_ids as positions_from_document_ids
from orderproof.positions import from_mask as positions_from_mask
from orderproof.positions import offset as offset_positions

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int


class Transformer(nn.Module):
    """An encoder, or a decoder if ``causal``, with any positional encoding.

    ``encoding`` is a registered name or an instance. For names only, ``encoding_arguments`` are arguments of the
    encoding's constructor and ``length`` is the number of positions of a table.
    ``vocabulary`` is the number of words; without it, inputs and outputs are features. For other options see
    `LayerOptions`.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        layers: int,
        *,
        encoding: str | PositionalEncoding = "rotary",
        encoding_arguments: dict[str, Any] | None = None,
        causal: bool,
        vocabulary: int | None = None,
        length: int | None = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__()
        self.stack = (Decoder if causal else Encoder)(width, heads, layers, **options)
        self.width = width
        self.heads = heads
        if isinstance(encoding, str):
            sizes = ModelSizes(width=width, heads=heads, causal=causal, length=length)
            encoding = build(encoding, sizes, encoding_arguments)
        elif encoding_arguments:
            raise UsageError("encoding_arguments: expected none with an encoding instance; leave them out")
        elif length is not None:
            raise UsageError("length: expected none with an encoding instance, which has its own; leave it out")
        self.encoding = encoding
        self.embedding = None if vocabulary is None else nn.Embedding(vocabulary, width)
        self.to_scores = None if vocabulary is None else nn.Linear(width, vocabulary)

    def forward(
        self,
        x: Float[Tensor, "batch token width"] | Int[Tensor, "batch token"],
        positions: Int[Tensor, "*batch token"] | None = None,
        *,
        document_ids: Int[Tensor, "*batch token"] | None = None,
        padding_mask: Bool[Tensor, "batch token"] | None = None,
        mask: Bool[Tensor, "*batch_and_head token key"] | None = None,
        caches: list[KeyValueCache] | None = None,
        sequence_parallel: SequenceParallel | None = None,
        lengths: Int[Tensor, " batch"] | int | None = None,
    ) -> Float[Tensor, "batch token width"] | Float[Tensor, "batch token vocabulary"]:
        """Transform features, or with a vocabulary, map words to the logits of the next words.

        With ``sequence_parallel``, all tensors are those of this rank's tokens, and ``positions`` are global. For the
        other arguments see `AttentionInputs`; ``caches`` has one cache per layer.
        """
        x = self._embed(x)
        if positions is None:
            if sequence_parallel is not None:
                raise PositionError(
                    "positions: expected the global positions of this rank's tokens with sequence_parallel, got none; "
                    "local_token_indices gives their indices in the row"
                )
            positions = self._expand_position_axes(self._default_position_ids(x, document_ids, padding_mask, caches))
        in_attention = self.encoding
        if self.encoding.claims.site == "embed":
            x, in_attention = self.encoding.embed(x, positions), NoEncoding()
        x = self.stack(
            x,
            positions,
            encoding=in_attention,
            document_ids=document_ids,
            padding_mask=padding_mask,
            mask=mask,
            caches=caches,
            sequence_parallel=sequence_parallel,
            lengths=lengths,
        )
        return x if self.to_scores is None else self.to_scores(x)

    def new_caches(self, batch: int, length: int) -> list[KeyValueCache]:
        """Empty caches for ``batch`` rows of at most ``length`` tokens, one per layer."""
        weight = next(self.stack.parameters())
        axes = None if self.encoding.claims.ndim == 1 else self.encoding.claims.ndim
        head_width = self.width // self.heads
        return [
            KeyValueCache(batch, self.heads, length, head_width, axes=axes, dtype=weight.dtype, device=weight.device)
            for _ in self.stack.layers
        ]

    def _embed(self, x: Tensor) -> Tensor:
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

    def _default_position_ids(
        self,
        x: Tensor,
        document_ids: Tensor | None,
        padding_mask: Tensor | None,
        caches: list[KeyValueCache] | None,
    ) -> Tensor:
        if document_ids is not None:
            if padding_mask is not None or caches is not None:
                raise PositionError("positions: expected with document_ids and pad tokens or a cache, got none")
            return positions_from_document_ids(document_ids)
        past = caches[0].num_real_tokens if caches else 0
        if padding_mask is None:
            return offset_positions(past, x.shape[1], device=x.device)
        before = past.unsqueeze(-1) if isinstance(past, Tensor) else past
        return positions_from_mask(padding_mask) + before

    def _expand_position_axes(self, count: Int[Tensor, "*batch token"]) -> Int[Tensor, "*axes_and_batch token"]:
        axes = self.encoding.claims.ndim
        if axes != 1:
            raise PositionError(
                f"positions: expected for an encoding of {axes} axes, got none; pass them, as from positions.grid"
            )
        return count
