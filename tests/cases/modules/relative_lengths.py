"""Lengths relative to the padded row, which speechbrain has, do not reach a part of the encoder (#1597, #2986)."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Encoder(nn.Module):
    """Attention over vectors; `lengths` [row] are parts of the row."""

    def __init__(self, *, right: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.right = right
        self.project, self.places = nn.Linear(10, 16), nn.Embedding(256, 16)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)

    def pads(self, x: Tensor, lengths: Tensor) -> Tensor:
        """True at pads [row, token]."""
        return torch.arange(x.shape[1]) >= (lengths * x.shape[1]).round()[:, None]

    def forward(self, wavs: Tensor, wav_lens: Tensor) -> Tensor:
        x = self.project(wavs) + self.places(torch.arange(wavs.shape[1]))
        return self.layer(x, src_key_padding_mask=self.pads(x, wav_lens) if self.right else None)


class Normed(Encoder):
    """Attention is masked; the mean over time is not, unless right."""

    def forward(self, x: Tensor, rel_length: Tensor) -> Tensor:
        pads = self.pads(x, rel_length)
        kept = torch.ones_like(pads) if not self.right else ~pads
        mean = (x * kept[..., None]).sum(1, keepdim=True) / kept.sum(1)[:, None, None]
        h = self.project(x - mean) + self.places(torch.arange(x.shape[1]))
        return self.layer(h, src_key_padding_mask=pads)


def inputs() -> tuple[Tensor, Tensor]:
    return torch.randn(2, 8, 10), torch.tensor([1.0, 0.75])


def bad():
    return Encoder(right=False), inputs()


def good():
    return Encoder(right=True), inputs()


def bad_mean():
    return Normed(right=False), inputs()


def good_mean():
    return Normed(right=True), inputs()
