"""An encoder given as users have it, with the tokenizer's output: ids and mask. The faulty one drops the mask in
attention.
"""

import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, masked):
        super().__init__()
        torch.manual_seed(0)
        self.masked = masked
        self.words, self.places = nn.Embedding(60, 16), nn.Embedding(512, 16)
        self.qkv = nn.Linear(16, 48)

    def forward(self, input_ids, attention_mask=None):
        x = self.words(input_ids) + self.places(torch.arange(input_ids.shape[1]))
        q, k, v = self.qkv(x).chunk(3, -1)
        score = q @ k.mT / 4
        if self.masked and attention_mask is not None:
            score = score.masked_fill(~attention_mask.bool()[:, None], -torch.inf)
        return x + score.softmax(-1) @ v


def inputs():
    return {"input_ids": torch.randint(60, (2, 9)), "attention_mask": torch.ones(2, 9, dtype=torch.long)}


def bad():
    return Encoder(False), inputs()


def good():
    return Encoder(True), inputs()


def bad_ids_only():
    return Encoder(False), torch.randint(60, (2, 9))
