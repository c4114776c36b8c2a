"""As packed_delta_rule, with the row axis of 1 that flash-linear-attention and Megatron's thd layout require."""

import torch
from torch import nn


class Mixer(nn.Module):
    def __init__(self, reset):
        super().__init__()
        torch.manual_seed(0)
        self.reset = reset
        self.qkv, self.out = nn.Linear(12, 36), nn.Linear(12, 12)

    def forward(self, x, cu_seqlens):
        n = x.shape[1]
        doc = torch.bucketize(torch.arange(n), cu_seqlens[1:], right=True)
        q, k, v = self.qkv(x).chunk(3, -1)
        hidden = torch.ones(n, n, dtype=torch.bool).triu(1)
        if self.reset:
            hidden = hidden | (doc[:, None] != doc)
        return x + self.out((q @ k.mT).masked_fill(hidden, 0.0) @ v / 8)


def bad():
    return Mixer(False), {"x": torch.randn(1, 7, 12), "cu_seqlens": torch.tensor([0, 3, 7])}


def good():
    return Mixer(True), {"x": torch.randn(1, 7, 12), "cu_seqlens": torch.tensor([0, 3, 7])}
