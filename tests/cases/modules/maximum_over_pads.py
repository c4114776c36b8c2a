"""Maxima over tokens whose pads are set to 0: a pad wins where all real numbers are negative.

After stanford-futuredata/ColBERT#62 (late interaction) and its like in max pooling.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class MaxPooling(nn.Module):
    """The largest number of each feature over the tokens."""

    def __init__(self, *, hidden: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.hidden = hidden
        self.words, self.places, self.out = nn.Embedding(50, 16), nn.Embedding(64, 16), nn.Linear(16, 3)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        x = self.words(input_ids) + self.places((attention_mask.cumsum(1) - 1).clamp(min=0))
        pads = attention_mask[..., None] == 0
        x = x.masked_fill(pads, -1e9) if self.hidden else x.masked_fill(pads, 0)
        return self.out(x.amax(1))


class LateInteraction(nn.Module):
    """The sum over the query of the best score in the document."""

    def __init__(self, *, hidden: bool) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.hidden = hidden
        self.words, self.places = nn.Embedding(50, 8), nn.Embedding(64, 8)

    def embed(self, ids: Tensor, real: Tensor) -> Tensor:
        x = self.words(ids) + self.places((real.long().cumsum(1) - 1).clamp(min=0))
        return x * real[..., None]

    def forward(self, query: Tensor, query_mask: Tensor, doc: Tensor, doc_mask: Tensor) -> Tensor:
        scores = self.embed(query, query_mask) @ self.embed(doc, doc_mask).mT
        if self.hidden:
            scores = scores.masked_fill(~doc_mask[:, None], -1e9).masked_fill(~query_mask[..., None], 0)
        return scores.amax(2).sum(1)


def _ids(tokens: int, rows: int = 2) -> Tensor:
    return torch.randint(0, 50, (rows, tokens))


def _one() -> dict[str, Tensor]:
    return {"input_ids": _ids(7), "attention_mask": torch.tensor([[1] * 7, [1] * 4 + [0] * 3])}


def _two() -> dict[str, Tensor]:
    query, doc = (torch.arange(n) < torch.tensor([[n], [n - 2]]) for n in (5, 8))
    return {"query": _ids(5), "query_mask": query, "doc": _ids(8), "doc_mask": doc}


def bad() -> tuple[nn.Module, dict[str, Tensor]]:
    return MaxPooling(hidden=False), _one()


def good() -> tuple[nn.Module, dict[str, Tensor]]:
    return MaxPooling(hidden=True), _one()


def bad_pair() -> tuple[nn.Module, dict[str, Tensor]]:
    return LateInteraction(hidden=False), _two()


def good_pair() -> tuple[nn.Module, dict[str, Tensor]]:
    return LateInteraction(hidden=True), _two()
