"""The KV cache: keys and values of earlier tokens, computed once.

In causal attention the key and value of a token depend only on that token and earlier ones, so they stay valid when
the row grows. Memory for ``capacity`` tokens is allocated once; appending writes into it.
Keys are stored before any rotation, with their positions and padding mask, so that decoding with any encoding gives
the result of a full forward pass. (A cache of rotated keys saves work and is wrong for encodings whose frequencies
depend on the context length.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from orderproof.encodings.packed_documents import check_document_ids
from orderproof.encodings.visibility_mask import check_masks
from orderproof.errors import UsageError
from orderproof.positions import validate as validate_positions

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int


class KVCacheContents(NamedTuple):
    """All cached tokens. ``document_ids``, ``padding_mask`` and ``token_state`` are None if none were appended."""

    keys: Float[Tensor, "batch head key head_width"]
    values: Float[Tensor, "batch head key head_width"]
    positions: Int[Tensor, "*axis batch key"]
    document_ids: Int[Tensor, "batch key"] | None
    padding_mask: Bool[Tensor, "batch key"] | None
    token_state: Float[Tensor, "batch head key state"] | None


class KeyValueCache:
    """The KV cache of one layer, for at most ``capacity`` tokens per row."""

    def __init__(
        self,
        batch: int,
        heads: int,
        capacity: int,
        head_width: int,
        *,
        axes: int | None = None,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str | None = None,
    ) -> None:
        self.capacity = capacity
        self.length = 0
        self.has_padding = False
        self.keys = torch.zeros(batch, heads, capacity, head_width, dtype=dtype, device=device)
        self.values = torch.zeros_like(self.keys)
        shape = (batch, capacity) if axes is None else (axes, batch, capacity)
        self.positions = torch.zeros(shape, dtype=torch.int64, device=device)
        self.padding_mask = torch.ones(batch, capacity, dtype=torch.bool, device=device)
        self.document_ids: Tensor | None = None
        self.token_state: Tensor | None = None

    @property
    def num_real_tokens(self) -> int | Int[Tensor, " batch"]:
        """Number of cached real tokens: one number, or one per row if there are pad tokens."""
        return self.padding_mask[:, : self.length].sum(-1) if self.has_padding else self.length

    def append(
        self,
        keys: Float[Tensor, "batch head token head_width"],
        values: Float[Tensor, "batch head token head_width"],
        positions: Int[Tensor, "*axes_and_batch token"],
        padding_mask: Bool[Tensor, "batch token"] | None = None,
        token_state: Float[Tensor, "batch head token state"] | None = None,
        *,
        document_ids: Int[Tensor, "*batch token"] | None = None,
    ) -> KVCacheContents:
        """Append new tokens and return all cached tokens, as views.

        ``token_state`` is the output of the encoding's `token_state`, if it has any. It and ``document_ids`` must come
        with all tokens of the cache or with none. Raises `UsageError` if the tokens do not fit or require gradients.
        """
        start, stop = self.length, self.length + keys.shape[2]
        if stop > self.capacity:
            raise UsageError(
                f"cache: {self.length} of {self.capacity} tokens are in use, {keys.shape[2]} more do not fit"
            )
        slot = self.keys[:, :, start:stop]
        if (slot.shape, slot.dtype) != (keys.shape, keys.dtype):
            came = f"{keys.dtype} {list(keys.shape)}"
            raise UsageError(f"cache: expected keys {slot.dtype} {list(slot.shape)}, got {came}")
        if torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in (keys, values, token_state)):
            raise UsageError("cache: expected tensors without gradient; decode under torch.no_grad()")
        batch, _, tokens, _ = keys.shape
        axes = len(self.positions) if self.positions.dim() == 3 else None
        positions = validate_positions(positions, axes=axes, batch=batch, tokens=tokens, device=self.positions.device)
        check_masks(padding_mask, None, batch=batch, heads=1, queries=tokens, keys=tokens, device=slot.device)
        ids = check_document_ids(document_ids, None, batch=batch, queries=tokens, keys=tokens, device=slot.device)
        if start == 0:
            self.token_state = (
                None
                if token_state is None
                else token_state.new_zeros(*token_state.shape[:2], self.capacity, token_state.shape[3])
            )
            self.document_ids = None if ids is None else torch.zeros_like(self.padding_mask, dtype=torch.int64)
        if (token_state is None) != (self.token_state is None):
            raise UsageError("cache: expected token_state with all tokens or with none; use one cache per encoding")
        if (ids is None) != (self.document_ids is None):
            raise UsageError("cache: expected document_ids with all tokens or with none")
        slot.copy_(keys)
        self.values[:, :, start:stop] = values
        if token_state is not None and self.token_state is not None:
            self.token_state[:, :, start:stop] = token_state
        if ids is not None and self.document_ids is not None:
            self.document_ids[:, start:stop] = ids[0]
        if axes is not None and positions.dim() == 2:
            positions = positions.unsqueeze(1)
        self.positions[..., start:stop] = positions
        self.padding_mask[:, start:stop] = True if padding_mask is None else padding_mask
        self.has_padding = self.has_padding or padding_mask is not None
        self.length = stop
        return self.contents()

    def contents(self) -> KVCacheContents:
        """All cached tokens, as views."""
        n = self.length
        real = self.padding_mask[:, :n] if self.has_padding else None
        token_state = None if self.token_state is None else self.token_state[:, :, :n]
        document_ids = None if self.document_ids is None else self.document_ids[:, :n]
        return KVCacheContents(
            self.keys[:, :, :n], self.values[:, :, :n], self.positions[..., :n], document_ids, real, token_state
        )

    def crop(self, length: int) -> None:
        """Keep the first ``length`` tokens and discard the rest."""
        if not 0 <= length <= self.length:
            raise UsageError(f"cache: expected a length from 0 to {self.length}, the tokens in use, got {length}")
        self.length = length

    def reorder(self, rows: Int[Tensor, " batch"]) -> None:
        """Replace row i by row ``rows[i]``, as in beam search."""
        if rows.shape != self.padding_mask.shape[:1]:
            raise UsageError(f"cache: expected {len(self.padding_mask)} row indices, got shape {list(rows.shape)}")
        for tensor in (self.keys, self.values, self.padding_mask, self.document_ids, self.token_state):
            if tensor is not None:
                tensor.copy_(tensor[rows])
        self.positions.copy_(self.positions[..., rows, :])
