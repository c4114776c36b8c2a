"""Linear attention over packed documents: boundaries reach the short convolution, not the recurrence
(THUDM/slime#1686).
"""

import torch
from torch import nn


def document_of(n, cu_seqlens):
    return torch.bucketize(torch.arange(n), cu_seqlens[1:], right=True)


class Mixer(nn.Module):
    def __init__(self, reset):
        super().__init__()
        torch.manual_seed(0)
        self.reset = reset
        self.taps = nn.Parameter(torch.randn(3, 12))
        self.qkv = nn.Linear(12, 36)
        self.decay = nn.Linear(12, 1)
        self.out = nn.Linear(12, 12)

    def short_convolution(self, x, doc):
        y = x * self.taps[0]
        for back in (1, 2):
            same = torch.zeros_like(x[:, :1])
            same[back:] = (doc[back:] == doc[:-back]).to(x.dtype)[:, None]
            y = y + x.roll(back, 0) * same * self.taps[back]
        return y

    def forward(self, x, cu_seqlens):
        doc = document_of(len(x), cu_seqlens)
        h = self.short_convolution(x, doc)
        q, k, v = self.qkv(h).chunk(3, -1)
        keep = self.decay(h).sigmoid()
        if self.reset:
            first = torch.ones_like(keep)
            first[1:] = (doc[1:] == doc[:-1]).to(x.dtype)[:, None]
            keep = keep * first
        state, rows = x.new_zeros(12, 12), []
        for t in range(len(x)):
            state = keep[t] * state + torch.outer(k[t], v[t])
            rows.append(q[t] @ state)
        return x + self.out(torch.stack(rows))


def inputs():
    return {"x": torch.randn(7, 12), "cu_seqlens": torch.tensor([0, 3, 7])}


def bad():
    return Mixer(False), inputs()


def good():
    return Mixer(True), inputs()
