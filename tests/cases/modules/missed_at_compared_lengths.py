"""'proved' at 7, 'compared at up to 320': at the compared lengths 33, 64, ..., 320 the law is false for every
weight, and the open walk had said so. Output 30 reads token 31 (one hole in a stored mask).
"""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        m = torch.ones(700, 700).tril().bool()
        m[30, 31] = True
        self.register_buffer("m", m)

    def forward(self, x):
        n = x.shape[1]
        return (x @ x.mT).masked_fill(~self.m[:n, :n], -torch.inf).softmax(-1) @ x


def build():
    return M(), torch.randn(2, 7, 8)
