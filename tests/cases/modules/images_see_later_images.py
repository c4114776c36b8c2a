"""Prefix blocks: every image token sees every other, also of later images (huggingface/transformers#38053)."""

import torch
from torch import nn

from orderproof import ModelAdapter, ModelOutput

try:
    from orderproof.adapter import AttentionPattern
except ImportError:
    AttentionPattern = None


class Decoder(nn.Module):
    def __init__(self, all_images):
        super().__init__()
        torch.manual_seed(0)
        self.all_images = all_images
        self.words, self.places = nn.Embedding(60, 16), nn.Embedding(512, 16)
        self.qkv = nn.Linear(16, 48)

    def visible(self, token_type_ids):
        n = token_type_ids.shape[1]
        image = token_type_ids == 1
        first = image & ~torch.cat([torch.zeros_like(image[:, :1]), image[:, :-1]], 1)
        group = torch.where(image, first.long().cumsum(1), 0)
        same = (
            image[:, :, None] & image[:, None]
            if self.all_images
            else (group[:, :, None] == group[:, None]) & image[:, :, None]
        )
        return same | torch.ones(n, n, dtype=torch.bool).tril()

    def forward(self, input_ids, token_type_ids):
        x = self.words(input_ids) + self.places(torch.arange(input_ids.shape[1]))
        q, k, v = self.qkv(x).chunk(3, -1)
        return x + (q @ k.mT / 4).masked_fill(~self.visible(token_type_ids), -torch.inf).softmax(-1) @ v


def types(n):
    row = torch.zeros(n, dtype=torch.long)
    row[1:4], row[6:9] = 1, 1
    return row


class Adapter(ModelAdapter):
    causal = False
    default_length = 11

    def __init__(self, module):
        self.module = module

    def sample_tokens(self, rows, tokens, seed):
        base = torch.randint(0, 60, (rows, tokens), generator=torch.Generator().manual_seed(0))
        return (base + seed) % 60

    def call(self, tokens, *, positions=None, mask=None, past=None, keep=None):
        return ModelOutput(self.module(tokens, types(tokens.shape[1]).expand_as(tokens)))

    def attention_pattern(self, tokens):
        seen = Decoder(False).visible(types(tokens)[None])[0]
        return AttentionPattern(seen, torch.eye(tokens, dtype=torch.bool))


def inputs():
    return {"input_ids": torch.randint(60, (2, 11)), "token_type_ids": types(11).expand(2, -1).clone()}


def bad():
    return Decoder(True), inputs()


def good():
    return Decoder(False), inputs()


def bad_adapter():
    return Adapter(Decoder(True))


def good_adapter():
    return Adapter(Decoder(False))
