"""A decoder that takes a block mask of packed documents; its places must begin again in each document.

Places counted over the whole row give the second document other places than it has alone.
"""

import torch
from torch import nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

TOKENS = 12
DOCUMENT = torch.tensor([0] * 5 + [1] * 7)


class Decoder(nn.Module):
    def __init__(self, restarts):
        super().__init__()
        torch.manual_seed(0)
        self.restarts = restarts
        self.words, self.places = nn.Embedding(40, 16), nn.Embedding(512, 16)
        self.qkv = nn.Linear(16, 48)

    def forward(self, input_ids, positions, block_mask):
        if not self.restarts:
            positions = torch.arange(input_ids.shape[1])
        x = self.words(input_ids) + self.places(positions)
        q, k, v = self.qkv(x).chunk(3, -1)
        return x + flex_attention(q[:, None], k[:, None], v[:, None], block_mask=block_mask)[:, 0]


def example():
    positions = torch.cat([torch.arange(5), torch.arange(7)])[None]
    mask = create_block_mask(
        lambda _row, _head, q, kv: (q >= kv) & (DOCUMENT[q] == DOCUMENT[kv]), None, None, TOKENS, TOKENS, device="cpu"
    )
    return torch.randint(40, (1, TOKENS)), positions, mask


def bad():
    return Decoder(restarts=False), example()


def good():
    return Decoder(restarts=True), example()
