"""Packed images of several sizes: each image reads the rotary table from its start (NVIDIA-NeMo/Speech#14611)."""

import torch
from torch import nn


def rotate(x, rows, cols):
    rate = 30.0 ** (-torch.arange(0, 4, dtype=x.dtype) / 4)
    angle = torch.cat([rows.to(x.dtype)[:, None] * rate, cols.to(x.dtype)[:, None] * rate], -1)
    a, b = x.chunk(2, -1)
    return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)


class Vision(nn.Module):
    def __init__(self, from_start):
        super().__init__()
        torch.manual_seed(0)
        self.from_start = from_start
        self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16)

    def forward(self, x, cu_seqlens, widths=(2, 3)):
        n = len(x)
        image = torch.bucketize(torch.arange(n), cu_seqlens[1:], right=True)
        index = torch.arange(n) - cu_seqlens[image]
        width = torch.tensor(widths)[image]
        rows, cols = index // width, index % width
        if self.from_start:  # the table of all images, read from its first row for every image
            rows, cols = rows[index], cols[index]
        q, k, v = self.qkv(x).chunk(3, -1)
        score = rotate(q, rows, cols) @ rotate(k, rows, cols).T / 4
        return x + self.out(score.masked_fill(image[:, None] != image, -torch.inf).softmax(-1) @ v)


def bad():
    return Vision(True), {"x": torch.randn(7, 16), "cu_seqlens": torch.tensor([0, 3, 7])}


def good():
    return Vision(False), {"x": torch.randn(7, 16), "cu_seqlens": torch.tensor([0, 3, 7])}
