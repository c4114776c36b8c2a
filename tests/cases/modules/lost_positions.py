"""Encoders whose positions are lost: the same numbers are added to all tokens.

After speechbrain/speechbrain#2276 (a table times a mask that is True at pads) and DiffPoseTalk/DiffPoseTalk#20 (one row
of the table instead of the first rows).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Encoder(nn.Module):
    """`placed` adds positions to [row, token, width]; `pads` [row, token] is True at pads."""

    def __init__(self, *, right: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.right = right
        self.words = nn.Embedding(50, 16)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        angle = torch.arange(256)[:, None] * 10000 ** (-torch.arange(0, 16, 2) / 16)
        self.register_buffer("table", torch.cat([angle.sin(), angle.cos()], -1))

    def forward(self, ids: Tensor, pads: Tensor) -> Tensor:
        return self.layer(self.placed(self.words(ids), pads), src_key_padding_mask=pads)


class TimesMask(Encoder):
    def placed(self, x: Tensor, pads: Tensor) -> Tensor:
        kept = ~pads if self.right else pads
        return x + self.table[: x.shape[1]] * kept[..., None]


class MaskFilled(Encoder):
    def placed(self, x: Tensor, pads: Tensor) -> Tensor:
        places = self.table[: x.shape[1]].expand_as(x)
        return x + places.masked_fill(pads[..., None] if self.right else ~pads[..., None], 0.0)


class OneRow(Encoder):
    def placed(self, x: Tensor, pads: Tensor) -> Tensor:
        return x + (self.table[: x.shape[1]] if self.right else self.table[x.shape[1]])


def inputs() -> tuple[Tensor, Tensor]:
    pads = torch.zeros(2, 8, dtype=torch.bool)
    pads[1, 6:] = True
    return torch.randint(50, (2, 8)), pads


def bad_times():
    return TimesMask(right=False), inputs()


def good_times():
    return TimesMask(right=True), inputs()


def bad_filled():
    return MaskFilled(right=False), inputs()


def good_filled():
    return MaskFilled(right=True), inputs()


def bad_row():
    return OneRow(right=False), inputs()


def good_row():
    return OneRow(right=True), inputs()
