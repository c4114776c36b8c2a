"""Rows padded on the left: positions, and what pads leave behind, must not depend on the number of pads.

After ndif-team/nnsight#673 and huggingface/peft#54 (absolute positions count pads), huggingface/transformers#32677 (a
bias makes pads nonzero after a convolution) and UKPLab/sentence-transformers#3208 (the first column is a pad).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class TableDecoder(nn.Module):
    """A table of positions; `by_mask` counts the real tokens."""

    def __init__(self, *, by_mask: bool) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.by_mask = by_mask
        self.words, self.places = nn.Embedding(50, 16), nn.Embedding(64, 16)
        self.mix, self.head = nn.Linear(16, 48), nn.Linear(16, 50)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        real = torch.ones_like(input_ids) if attention_mask is None else attention_mask.long()
        tokens = input_ids.shape[1]
        places = (real.cumsum(1) - 1).clamp(min=0) if self.by_mask else torch.arange(tokens).expand_as(input_ids)
        x = self.words(input_ids) + self.places(places)
        q, k, v = self.mix(x).chunk(3, -1)
        seen = torch.ones(tokens, tokens, dtype=torch.bool).tril() & real.bool()[:, None]
        return self.head(x + (q @ k.mT / 4).masked_fill(~seen, -1e9).softmax(-1) @ v)


class SoftPrompt(nn.Module):
    """Two learned vectors before the pads: the positions after them must be those without pads."""

    def __init__(self, *, by_mask: bool) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.by_mask = by_mask
        self.prompt, self.width = nn.Parameter(torch.randn(2, 16)), 16
        self.words, self.mix, self.head = nn.Embedding(50, 16), nn.Linear(16, 48), nn.Linear(16, 50)
        self.rate = nn.Parameter(torch.randn(16))

    def forward(self, ids: Tensor, padding_mask: Tensor) -> Tensor:  # True at pads
        rows = len(ids)
        x = torch.cat([self.prompt.expand(rows, -1, -1), self.words(ids)], 1)
        pads = torch.cat([torch.zeros(rows, 2, dtype=torch.bool), padding_mask], 1)
        tokens = x.shape[1]
        places = ((~pads).cumsum(1) - 1).clamp(min=0) if self.by_mask else torch.arange(tokens).expand(rows, -1)
        x = x + torch.sin(places[..., None] * self.rate)
        q, k, v = self.mix(x).chunk(3, -1)
        hidden = ~torch.ones(tokens, tokens, dtype=torch.bool).tril() | pads[:, None]
        return self.head((q @ k.mT / 4).masked_fill(hidden, -1e9).softmax(-1) @ v)[:, 2:]


class ShortConvolution(nn.Module):
    """A causal convolution and a recurrence; its bias makes pads nonzero unless they are masked again."""

    def __init__(self, *, masked_again: bool) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.masked_again = masked_again
        self.words, self.conv, self.head = nn.Embedding(50, 8), nn.Conv1d(8, 8, 3), nn.Linear(8, 50)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        real = torch.ones(input_ids.shape) if attention_mask is None else attention_mask.float()
        x = self.words(input_ids) * real[..., None]
        x = self.conv(nn.functional.pad(x.mT, (2, 0))).mT.tanh()
        if self.masked_again:
            x = x * real[..., None]
        state = x.new_zeros(len(x), 8)
        states = []
        for token in x.unbind(1):
            state = 0.8 * state + token
            states.append(state)
        return self.head(torch.stack(states, 1))


class FirstToken(nn.Module):
    """Pools the first column, or the first real token; positions follow the mask."""

    def __init__(self, *, by_mask: bool) -> None:
        super().__init__()
        torch.manual_seed(4)
        self.by_mask = by_mask
        self.words, self.places = nn.Embedding(50, 16), nn.Embedding(64, 16)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)

    def forward(self, features: dict[str, Tensor]) -> dict[str, Tensor]:
        mask = features["attention_mask"]
        x = self.words(features["input_ids"]) + self.places((mask.cumsum(1) - 1).clamp(min=0))
        x = self.layer(x, src_key_padding_mask=mask == 0)
        first = mask.long().argmax(1) if self.by_mask else torch.zeros(len(x), dtype=torch.long)
        return {"sentence": x.gather(1, first[:, None, None].expand(-1, 1, 16))[:, 0]}


class TableEncoder(nn.Module):
    """As BERT: a table by columns, documented for pads on the right."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.words, self.places = nn.Embedding(50, 16), nn.Embedding(64, 16)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        x = self.words(input_ids) + self.places(torch.arange(input_ids.shape[1]))
        return self.layer(x, src_key_padding_mask=attention_mask == 0)


def batch(*, left: int = 0, right: int = 0) -> dict[str, Tensor]:
    """Ids and the mask of the tokenizer; the second row has pads."""
    mask = torch.ones(2, 8, dtype=torch.long)
    mask[1, :left], mask[1, 8 - right :] = 0, 0
    return {"input_ids": torch.randint(50, (2, 8)), "attention_mask": mask}


def bad_table():
    return TableDecoder(by_mask=False), batch()


def good_table():
    return TableDecoder(by_mask=True), batch()


def good_table_padded_right():
    return TableDecoder(by_mask=False), batch(right=3)


def bad_prompt():
    return SoftPrompt(by_mask=False), (torch.randint(50, (2, 8)), torch.zeros(2, 8, dtype=torch.bool))


def good_prompt():
    return SoftPrompt(by_mask=True), (torch.randint(50, (2, 8)), torch.zeros(2, 8, dtype=torch.bool))


def bad_convolution():
    return ShortConvolution(masked_again=False), batch()


def good_convolution():
    return ShortConvolution(masked_again=True), batch()


def bad_first():
    return FirstToken(by_mask=False), (batch(left=3),)


def good_first():
    return FirstToken(by_mask=True), (batch(left=3),)


def good_first_padded_right():
    return FirstToken(by_mask=False), (batch(right=3),)


def bad_encoder_padded_left():
    return TableEncoder(), batch(left=3)


def good_encoder():
    return TableEncoder(), batch()
