"""FALSE REFUTATION: `padding_mask`, True at pads (torch, fairseq), is taken as True at real tokens 'for its name'."""

import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)

    def forward(self, x, padding_mask=None):
        return self.layer(x, src_key_padding_mask=padding_mask)


def build():
    return Encoder().eval(), torch.randn(2, 7, 8)
