"""pytorch/audio #4205: the conformer's convolution module ignores `lengths`; padded frames bleed into valid ones."""

import torch
import torch.nn.functional as F
from torch import nn


class Conformer(nn.Module):
    def __init__(self, fixed):
        super().__init__()
        torch.manual_seed(2)
        self.fixed = fixed
        self.inp = nn.Linear(10, 16)
        self.att = nn.MultiheadAttention(16, 2, batch_first=True)
        self.n1, self.n2 = nn.LayerNorm(16), nn.LayerNorm(16)
        self.pw = nn.Conv1d(16, 32, 1)
        self.dw = nn.Conv1d(16, 16, 5, padding=2, groups=16)
        self.pw2 = nn.Conv1d(16, 16, 1)

    def forward(self, frames, lengths):
        pad = torch.arange(frames.shape[1])[None] >= lengths[:, None]
        x = self.inp(frames)
        h = self.n1(x)
        x = x + self.att(h, h, h, key_padding_mask=pad, need_weights=False)[0]
        y = F.glu(self.pw(self.n2(x).transpose(1, 2)), 1)
        if self.fixed:
            y = y.masked_fill(pad[:, None], 0.0)
        y = self.pw2(F.silu(self.dw(y)))
        return x + y.transpose(1, 2), lengths


def bad():
    return Conformer(False), (torch.randn(2, 9, 10), torch.tensor([9, 9]))


def good():
    return Conformer(True), (torch.randn(2, 9, 10), torch.tensor([9, 9]))
