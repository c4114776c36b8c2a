"""Rotary tables that are rounded when they are made: angles in half precision (EleutherAI/gpt-neox#1003).

Also huggingface/candle#3520 and sgl-project/sglang-jax#1473. Tables of absolute positions and slow drifts stay lawful.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Decoder(nn.Module):
    """Causal attention over ids; `turned` rotates queries and keys [row, token, width] at positions [row, token]."""

    def __init__(self, *, rounded: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.max_position_embeddings = 4096
        self.dtype_of_angles = torch.bfloat16 if rounded else torch.float32
        self.words, self.mix, self.head = nn.Embedding(50, 16), nn.Linear(16, 48), nn.Linear(16, 50)
        self.prepare(10000 ** (-torch.arange(0, 16, 2) / 16))

    def forward(self, input_ids: Tensor, position_ids: Tensor | None = None) -> Tensor:
        tokens = input_ids.shape[1]
        places = torch.arange(tokens).expand_as(input_ids) if position_ids is None else position_ids
        q, k, v = self.mix(self.words(input_ids)).chunk(3, -1)
        q, k = self.turned(q, places), self.turned(k, places)
        hidden = torch.ones(tokens, tokens, dtype=torch.bool).triu(1)
        return self.head((q @ k.mT / 4).masked_fill(hidden, -1e9).softmax(-1) @ v)


class Halves(Decoder):
    """Tables of cosines and sines."""

    def prepare(self, rate: Tensor) -> None:
        angle = torch.arange(4096).to(self.dtype_of_angles)[:, None] * rate.to(self.dtype_of_angles)
        self.register_buffer("cos", angle.cos().float(), persistent=False)
        self.register_buffer("sin", angle.sin().float(), persistent=False)

    def turned(self, x: Tensor, places: Tensor) -> Tensor:
        cos, sin = self.cos[places], self.sin[places]
        a, b = x.chunk(2, -1)
        return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


class Joined(Halves):
    """One table in float16, cosines and sines next to each other, pairs interleaved."""

    def prepare(self, rate: Tensor) -> None:
        dtype = torch.float16 if self.dtype_of_angles is torch.bfloat16 else torch.float32
        angle = torch.outer(torch.arange(4096).to(dtype), rate.to(dtype))
        self.table = torch.cat([angle.cos(), angle.sin()], -1).float()

    def turned(self, x: Tensor, places: Tensor) -> Tensor:
        cos, sin = nn.functional.embedding(places, self.table).chunk(2, -1)
        a, b = x.unflatten(-1, (-1, 2)).unbind(-1)
        return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2)


class InForward(Decoder):
    """Angles of each call."""

    def prepare(self, rate: Tensor) -> None:
        self.rate = rate

    def turned(self, x: Tensor, places: Tensor) -> Tensor:
        angle = places.to(self.dtype_of_angles)[..., None] * self.rate.to(self.dtype_of_angles)
        cos, sin = angle.float().cos(), angle.float().sin()
        a, b = x.chunk(2, -1)
        return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


class Absolute(Decoder):
    """A learned table, or a number that grows slowly along the context."""

    def __init__(self, *, drifts: bool) -> None:
        super().__init__(rounded=False)
        self.drifts = drifts
        self.table = nn.Embedding(4096, 16)

    def prepare(self, rate: Tensor) -> None:
        self.rate = rate

    def turned(self, x: Tensor, places: Tensor) -> Tensor:
        return x + (places[..., None] / 100 * self.table.weight[0] if self.drifts else self.table(places))


def ids() -> Tensor:
    return torch.randint(50, (2, 8))


def bad_halves():
    return Halves(rounded=True), ids()


def good_halves():
    return Halves(rounded=False), ids()


def bad_joined():
    return Joined(rounded=True), ids()


def good_joined():
    return Joined(rounded=False), ids()


def bad_in_forward():
    return InForward(rounded=True), ids()


def good_in_forward():
    return InForward(rounded=False), ids()


def good_learned():
    return Absolute(drifts=False), ids()


def good_drift():
    return Absolute(drifts=True), ids()
