"""Causal masks of calls on a cache object: to blame is the mask, not the line where the cache joins its keys.

After Dao-AILab/flash-attention#282 (aligned top left), huggingface/transformers#30414 (empty slots of a static cache
are not hidden), and a mask that is built without the offset of the cache.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention


class Growing:
    """Keys and values so far."""

    def __init__(self) -> None:
        self.k: Tensor | None = None
        self.v: Tensor | None = None

    @property
    def length(self) -> int:
        return 0 if self.k is None else self.k.shape[1]

    def update(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        self.k = k if self.k is None else torch.cat([self.k, k], 1)
        self.v = v if self.v is None else torch.cat([self.v, v], 1)
        return self.k, self.v


class Static:
    """Keys and values in slots that are written one after the other."""

    def __init__(self) -> None:
        self.k, self.v, self.length = torch.zeros(2, 32, 16), torch.zeros(2, 32, 16), 0

    def update(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        end = self.length + k.shape[1]
        self.k[:, self.length : end], self.v[:, self.length : end] = k, v
        self.length = end
        return self.k, self.v


class Decoder(nn.Module):
    """One layer; `attend` gets the number of cached tokens."""

    def __init__(self, *, right: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.right = right
        self.words, self.places = nn.Embedding(50, 16), nn.Embedding(64, 16)
        self.mix, self.head = nn.Linear(16, 48), nn.Linear(16, 50)

    def forward(self, input_ids: Tensor, cache: Growing | None = None) -> Tensor:
        before = 0 if cache is None else cache.length
        x = self.words(input_ids) + self.places(torch.arange(before, before + input_ids.shape[1]))
        q, k, v = self.mix(x).chunk(3, -1)
        if cache is not None:
            k, v = cache.update(k, v)
        return self.head(x + self.attend(q, k, v, before))

    def attend(self, q: Tensor, k: Tensor, v: Tensor, before: int) -> Tensor:
        if not self.right:
            return scaled_dot_product_attention(q, k, v, is_causal=q.shape[1] > 1)
        return scaled_dot_product_attention(q, k, v, torch.ones(q.shape[1], k.shape[1], dtype=torch.bool).tril(before))


class WithoutOffset(Decoder):
    """The mask as it is written."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, before: int) -> Tensor:
        seen = torch.ones(q.shape[1], k.shape[1]).tril(before if self.right else 0)
        return (q @ k.mT / 4 - 1e9 * (1 - seen)).softmax(-1) @ v


class EmptySlots(Decoder):
    """All slots of a static cache are read."""

    def forward(self, input_ids: Tensor, past_key_values: Static | None = None) -> Tensor:
        return super().forward(input_ids, past_key_values)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, before: int) -> Tensor:
        query, key = before + torch.arange(q.shape[1])[:, None], torch.arange(k.shape[1])
        hidden = key > query if self.right else (key > query) & (key < before + q.shape[1])
        return (q @ k.mT / 4).masked_fill(hidden, -1e9).softmax(-1) @ v


def bad():
    return Decoder(right=False), torch.randint(50, (2, 8))


def good():
    return Decoder(right=True), torch.randint(50, (2, 8))


def bad_offset():
    return WithoutOffset(right=False), torch.randint(50, (2, 8))


def good_offset():
    return WithoutOffset(right=True), torch.randint(50, (2, 8))


def bad_slots():
    return EmptySlots(right=False), {"input_ids": torch.randint(50, (2, 8)), "past_key_values": Static()}


def good_slots():
    return EmptySlots(right=True), {"input_ids": torch.randint(50, (2, 8)), "past_key_values": Static()}
