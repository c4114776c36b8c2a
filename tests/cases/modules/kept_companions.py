"""What follows from a second input is kept from the first call on (after guandeh17/Self-Forcing#78)."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Denoiser(nn.Module):
    """Frames attend to a prompt, whose keys are kept."""

    def __init__(self, *, right: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.right = right
        self.kept: dict[str, Tensor | None] = {"k": None, "v": None}
        self.places, self.query = nn.Embedding(256, 12), nn.Linear(12, 12)
        self.prompt = nn.Linear(7, 24)

    def forward(self, frames: Tensor, prompt: Tensor) -> Tensor:
        x = frames + self.places(torch.arange(frames.shape[1]))
        if self.kept["k"] is None:
            self.kept["k"], self.kept["v"] = self.prompt(prompt).chunk(2, -1)
        k, v = self.kept["k"], self.kept["v"]
        if self.right:
            self.kept["k"] = self.kept["v"] = None
        return x + (self.query(x) @ k.mT).softmax(-1) @ v


class Conditioned(nn.Module):
    """A scale [row, width] of a condition is kept as an attribute, by its shape unless right."""

    def __init__(self, *, right: bool) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.right = right
        self.scale: Tensor | None = None
        self.layer, self.condition = nn.GRU(12, 12, batch_first=True), nn.Linear(5, 12)

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        if self.right or self.scale is None or len(self.scale) != len(condition):
            self.scale = self.condition(condition)
        return self.layer(x)[0] * self.scale[:, None]


def bad():
    return Denoiser(right=False), (torch.randn(2, 8, 12), torch.randn(2, 5, 7))


def good():
    return Denoiser(right=True), (torch.randn(2, 8, 12), torch.randn(2, 5, 7))


def bad_scale():
    return Conditioned(right=False), (torch.randn(2, 8, 12), torch.randn(2, 5))


def good_scale():
    return Conditioned(right=True), (torch.randn(2, 8, 12), torch.randn(2, 5))
