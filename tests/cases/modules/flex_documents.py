"""A decoder whose documents end at token 0, with flex attention; its mask function reads the documents.

The mask lets later tokens of the same document through (the direction of one comparison is reversed).
"""

import torch
from torch import nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention


class Decoder(nn.Module):
    def __init__(self, reverse):
        super().__init__()
        torch.manual_seed(0)
        self.reverse = reverse
        self.words, self.places = nn.Embedding(12, 16), nn.Embedding(512, 16)
        self.qkv = nn.Linear(16, 48)

    def forward(self, input_ids):
        b, n = input_ids.shape
        document = (input_ids == 0).long().cumsum(1)

        def rule(row, head, q, kv):
            same = document[row, q] == document[row, kv]
            return same & ((q <= kv) if self.reverse else (q >= kv))

        x = self.words(input_ids) + self.places(torch.arange(n))
        q, k, v = self.qkv(x).chunk(3, -1)
        blocks = create_block_mask(rule, b, None, n, n, device="cpu")
        return x + flex_attention(q[:, None], k[:, None], v[:, None], block_mask=blocks)[:, 0]


def bad():
    return Decoder(True), torch.randint(12, (2, 9))


def good():
    return Decoder(False), torch.randint(12, (2, 9))
