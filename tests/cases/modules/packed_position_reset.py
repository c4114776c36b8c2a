"""huggingface/nanoVLM #201/#204: packed samples restart position_ids, yet attention crosses the samples."""

import torch
import torch.nn.functional as F
from torch import nn


class Lm(nn.Module):
    def __init__(self, fixed):
        super().__init__()
        torch.manual_seed(9)
        self.fixed = fixed
        self.tok, self.pos = nn.Embedding(50, 16), nn.Embedding(40, 16)
        self.qkv, self.head = nn.Linear(16, 48), nn.Linear(16, 50)

    def forward(self, input_ids, position_ids):
        n = input_ids.shape[1]
        x = self.tok(input_ids) + self.pos(position_ids)
        q, k, v = self.qkv(x).chunk(3, -1)
        see = torch.ones(n, n, dtype=torch.bool).tril()[None]
        if self.fixed:
            doc = (position_ids == 0).cumsum(1)
            see = see & (doc[:, :, None] == doc[:, None])
        return self.head(x + F.scaled_dot_product_attention(q, k, v, attn_mask=see))


def inputs():
    return (torch.randint(50, (1, 9)), torch.tensor([[0, 1, 2, 3, 0, 1, 2, 3, 4]]))


def bad():
    return Lm(False), inputs()


def good():
    return Lm(True), inputs()
