"""A paged cache, whose table of blocks no call changes: an emptied copy of the example keeps it.

After vllm-project/vllm-gaudi#1323 (prefill and decode address the cache with two block sizes).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Paged:
    """Keys in blocks of 4 slots, in the order of a table."""

    def __init__(self, prefill_block: int) -> None:
        self.prefill_block = prefill_block
        self.table = torch.tensor([3, 0, 5, 1, 7, 2, 6, 4, 11, 8, 10, 9])
        self.keys, self.length = torch.zeros(2, 96, 12), 0

    def slots(self, places: Tensor, block: int) -> Tensor:
        return self.table[places // block] * block + places % block

    def update(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        new = self.slots(torch.arange(self.length, self.length + n), self.prefill_block if n > 1 else 4)
        old = self.slots(torch.arange(self.length), 4)
        seen = torch.cat([self.keys[: len(x), old], x], 1)
        self.keys[: len(x), new] = x
        self.length += n
        return seen


class Decoder(nn.Module):
    """One layer of attention on what the cache returns."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.words, self.places = nn.Embedding(50, 12), nn.Embedding(64, 12)
        self.mix, self.head = nn.Linear(12, 24), nn.Linear(12, 50)

    def forward(self, input_ids: Tensor, kv_cache: Paged | None = None) -> Tensor:
        n, start = input_ids.shape[1], 0 if kv_cache is None else kv_cache.length
        x = self.words(input_ids) + self.places(torch.arange(start, start + n))
        q, k = self.mix(x).chunk(2, -1)
        if kv_cache is not None:
            k = kv_cache.update(k)
        seen = torch.arange(k.shape[1]) <= torch.arange(start, start + n)[:, None]
        return self.head(x + (q @ k.mT / 3.5).masked_fill(~seen, -1e9).softmax(-1) @ k)


def _with(cache: Paged) -> tuple[nn.Module, dict[str, object]]:
    return Decoder(), {"input_ids": torch.randint(0, 50, (2, 9)), "kv_cache": cache}


def bad() -> tuple[nn.Module, dict[str, object]]:
    return _with(Paged(8))


def good() -> tuple[nn.Module, dict[str, object]]:
    return _with(Paged(4))
