"""A decoder that numbers every call of several tokens from zero (Blaizzy/mlx-vlm#1621)."""

import torch
from torch import nn

from orderproof import ModelAdapter, ModelOutput


def rotate(x, pos):
    rate = 50.0 ** (-torch.arange(0, x.shape[-1], 2, dtype=x.dtype) / x.shape[-1])
    angle = pos.to(x.dtype)[:, None] * rate
    a, b = x.chunk(2, -1)
    return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)


class Decoder(nn.Module):
    def __init__(self, restart):
        super().__init__()
        torch.manual_seed(0)
        self.restart = restart
        self.words = nn.Embedding(60, 16)
        self.qkv = nn.Linear(16, 48)
        self.head = nn.Linear(16, 60)

    def forward(self, input_ids, past_key_values=None):
        x = self.words(input_ids)
        n, before = x.shape[1], 0 if past_key_values is None else past_key_values[0].shape[1]
        start = 0 if self.restart and n > 1 else before
        q, k, v = self.qkv(x).chunk(3, -1)
        pos = torch.arange(start, start + n)
        q, k = rotate(q, pos), rotate(k, pos)
        if past_key_values is not None:
            k, v = torch.cat([past_key_values[0], k], 1), torch.cat([past_key_values[1], v], 1)
        seen = torch.ones(n, before + n, dtype=torch.bool).tril(before)
        h = x + (q @ k.mT / 4).masked_fill(~seen, -torch.inf).softmax(-1) @ v
        return self.head(h), (k, v)


class Adapter(ModelAdapter):
    supported_inputs = frozenset({"cache"})
    causal = True
    default_length = 11

    def __init__(self, module):
        self.module = module

    def sample_tokens(self, rows, tokens, seed):
        base = torch.randint(0, 60, (rows, tokens), generator=torch.Generator().manual_seed(0))
        return (base + seed) % 60

    def call(self, tokens, *, positions=None, mask=None, past=None, keep=None):
        return ModelOutput(*self.module(tokens, past))


def bad():
    return Adapter(Decoder(True))


def good():
    return Adapter(Decoder(False))


def bad_plain():  # as most users give it: the module and ids
    return Decoder(True), torch.randint(60, (2, 9))


def good_plain():
    return Decoder(False), torch.randint(60, (2, 9))
