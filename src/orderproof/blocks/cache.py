"""The cache of keys and values: what earlier tokens offered, kept so that it is worked out once.

In causal attention the key and value of a token depend on that token and those before it only, so they stay true
when the row grows. Room for ``length`` tokens is taken once; appending writes into it.
Keys are kept as they were before any rotation, with their positions and whether they are real tokens, so that
every encoding decodes exactly as it reads. (A cache of rotated keys saves work and is wrong for encodings
whose frequencies depend on the length.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from orderproof import positions as place
from orderproof.encodings._documents import check_documents
from orderproof.encodings.sight import check_masks
from orderproof.errors import UsageError

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int


class Cached(NamedTuple):
    """All that was appended so far; None for what was never given: documents, pad tokens, notes."""

    keys: Float[Tensor, "batch head key head_width"]
    values: Float[Tensor, "batch head key head_width"]
    positions: Int[Tensor, "*axis batch key"]
    documents: Int[Tensor, "batch key"] | None
    padding_mask: Bool[Tensor, "batch key"] | None
    notes: Float[Tensor, "batch head key note"] | None


class KeyValueCache:
    """The cache of one layer."""

    def __init__(
        self,
        batch: int,
        heads: int,
        length: int,
        head_width: int,
        *,
        axes: int | None = None,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str | None = None,
    ) -> None:
        self.length = length
        self.used = 0
        self.padded = False
        self.keys = torch.zeros(batch, heads, length, head_width, dtype=dtype, device=device)
        self.values = torch.zeros_like(self.keys)
        shape = (batch, length) if axes is None else (axes, batch, length)
        self.positions = torch.zeros(shape, dtype=torch.int64, device=device)
        self.real = torch.ones(batch, length, dtype=torch.bool, device=device)
        self.documents: Tensor | None = None
        self.notes: Tensor | None = None

    @property
    def seen(self) -> int | Int[Tensor, " batch"]:
        """How many real tokens it holds: one number, or one for each row where there are pad tokens."""
        return self.real[:, : self.used].sum(-1) if self.padded else self.used

    def append(
        self,
        keys: Float[Tensor, "batch head token head_width"],
        values: Float[Tensor, "batch head token head_width"],
        positions: Int[Tensor, "*axes_and_batch token"],
        padding_mask: Bool[Tensor, "batch token"] | None = None,
        notes: Float[Tensor, "batch head token note"] | None = None,
        *,
        documents: Int[Tensor, "*batch token"] | None = None,
    ) -> Cached:
        """Add new tokens, with the notes their encoding made of them where it makes any; return all tokens so far.

        ``documents`` numbers the documents of packed rows, for all tokens of the cache or for none.
        """
        start, stop = self.used, self.used + keys.shape[2]
        if stop > self.length:
            raise UsageError(f"cache: {self.used} of {self.length} places are used, {keys.shape[2]} more do not fit")
        room = self.keys[:, :, start:stop]
        if (room.shape, room.dtype) != (keys.shape, keys.dtype):
            came = f"{keys.dtype} {list(keys.shape)}"
            raise UsageError(f"cache: expected keys {room.dtype} {list(room.shape)}, got {came}")
        if torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in (keys, values, notes)):
            raise UsageError("cache: it records no gradient; decode under torch.no_grad()")
        batch, _, tokens, _ = keys.shape
        axes = len(self.positions) if self.positions.dim() == 3 else None
        positions = place.check(positions, axes=axes, batch=batch, tokens=tokens, device=self.positions.device)
        check_masks(padding_mask, None, batch=batch, heads=1, queries=tokens, keys=tokens, device=room.device)
        numbers = check_documents(documents, None, batch=batch, queries=tokens, keys=tokens, device=room.device)
        if start == 0:
            self.notes = None if notes is None else notes.new_zeros(*notes.shape[:2], self.length, notes.shape[3])
            self.documents = None if numbers is None else torch.zeros_like(self.real, dtype=torch.int64)
        if (notes is None) != (self.notes is None):
            raise UsageError("cache: expected notes with all tokens or with none; one cache serves one encoding")
        if (numbers is None) != (self.documents is None):
            raise UsageError("cache: expected documents with all tokens or with none")
        room.copy_(keys)
        self.values[:, :, start:stop] = values
        if notes is not None and self.notes is not None:
            self.notes[:, :, start:stop] = notes
        if numbers is not None and self.documents is not None:
            self.documents[:, start:stop] = numbers[0]
        if axes is not None and positions.dim() == 2:
            positions = positions.unsqueeze(1)
        self.positions[..., start:stop] = positions
        self.real[:, start:stop] = True if padding_mask is None else padding_mask
        self.padded = self.padded or padding_mask is not None
        self.used = stop
        return self.contents()

    def contents(self) -> Cached:
        """All tokens so far, as views."""
        n = self.used
        real = self.real[:, :n] if self.padded else None
        notes = None if self.notes is None else self.notes[:, :, :n]
        documents = None if self.documents is None else self.documents[:, :n]
        return Cached(self.keys[:, :, :n], self.values[:, :, :n], self.positions[..., :n], documents, real, notes)

    def crop(self, length: int) -> None:
        """Forget all tokens but the first ``length``."""
        if not 0 <= length <= self.used:
            raise UsageError(f"cache: expected a length from 0 to the {self.used} places in use, got {length}")
        self.used = length

    def reorder(self, rows: Int[Tensor, " batch"]) -> None:
        """Let row i go on from what row ``rows[i]`` was, as beam search does."""
        if rows.shape != self.real.shape[:1]:
            raise UsageError(f"cache: expected {len(self.real)} row numbers, got shape {list(rows.shape)}")
        for held in (self.keys, self.values, self.real, self.documents, self.notes):
            if held is not None:
                held.copy_(held[rows])
        self.positions.copy_(self.positions[..., rows, :])
