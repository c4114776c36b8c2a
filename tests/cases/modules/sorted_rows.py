"""Rows that are sorted by length, as recurrences want them, and put back by the order itself instead of its inverse.

Two rows cannot show it: each order of two rows is its own inverse. And means of rows that are divided by the length of
the first row, which comparisons of the first row cannot show.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class SortedRows(nn.Module):
    """The mean of the states of the real tokens, or all states, of rows that are computed by length."""

    def __init__(self, *, undone: bool, pooled: bool, own_length: bool = True) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.undone, self.pooled, self.own_length = undone, pooled, own_length
        self.words, self.places, self.out = nn.Embedding(50, 16), nn.Embedding(64, 16), nn.Linear(16, 3)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        order = attention_mask.sum(1).argsort(descending=True, stable=True)
        back = order.argsort() if self.undone else order
        real = attention_mask[order]
        x = self.words(input_ids[order]) + self.places((real.cumsum(1) - 1).clamp(min=0))
        x = F.scaled_dot_product_attention(x, x, x, attn_mask=real[:, None].bool().expand(-1, real.shape[1], -1))
        if self.pooled:
            lengths = (real if self.own_length else attention_mask[:1]).sum(1, keepdim=True)
            x = (x * real[..., None]).sum(1) / lengths
        return self.out(x)[back]


def _case(*, undone: bool, pooled: bool, own_length: bool = True) -> tuple[nn.Module, dict[str, Tensor]]:
    inputs = {"input_ids": torch.randint(0, 50, (2, 7)), "attention_mask": torch.tensor([[1] * 7, [1] * 4 + [0] * 3])}
    return SortedRows(undone=undone, pooled=pooled, own_length=own_length), inputs


def bad() -> tuple[nn.Module, dict[str, Tensor]]:
    return _case(undone=False, pooled=True)


def good() -> tuple[nn.Module, dict[str, Tensor]]:
    return _case(undone=True, pooled=True)


def first_length() -> tuple[nn.Module, dict[str, Tensor]]:
    return _case(undone=True, pooled=True, own_length=False)


def bad_states() -> tuple[nn.Module, dict[str, Tensor]]:
    return _case(undone=False, pooled=False)


def good_states() -> tuple[nn.Module, dict[str, Tensor]]:
    return _case(undone=True, pooled=False)
