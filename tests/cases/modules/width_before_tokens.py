"""Inputs [row, width, token] with lengths, as in libraries for speech: statistics must not run over pads.

After NVIDIA-NeMo/Speech#3216 (squeeze-and-excite averages padded frames) and jik876/hifi-gan#177 (a convolution after
another one reads the bias at pads).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


def _real(x: Tensor, length: Tensor) -> Tensor:
    return (torch.arange(x.shape[-1]) < length[:, None])[:, None].to(x.dtype)


class SqueezeExcite(nn.Module):
    """Scales each channel by its average over time."""

    def __init__(self, *, by_length: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.by_length = by_length
        self.conv, self.scale = nn.Conv1d(6, 6, 3, padding=1), nn.Linear(6, 6)

    def forward(self, audio_signal: Tensor, length: Tensor) -> Tensor:
        real = _real(audio_signal, length)
        x = self.conv(audio_signal * real).relu() * real
        mean = x.sum(-1) / length[:, None] if self.by_length else x.mean(-1)
        return x * torch.sigmoid(self.scale(mean))[..., None]


class Convolutions(nn.Module):
    """Two convolutions; the bias of the first makes pads nonzero unless they are masked again."""

    def __init__(self, *, masked_again: bool) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.masked_again = masked_again
        self.first, self.second = nn.Conv1d(6, 8, 3, padding=1), nn.Conv1d(8, 6, 3, padding=1)

    def forward(self, mel: Tensor, valid: Tensor) -> Tensor:
        real = valid[:, None].to(mel.dtype)
        x = self.first(mel * real).relu()
        if self.masked_again:
            x = x * real
        return self.second(x) * real


def _lengths() -> dict[str, Tensor]:
    return {"audio_signal": torch.randn(3, 6, 10), "length": torch.tensor([10, 7, 4])}


def _mask() -> tuple[Tensor, Tensor]:
    return torch.randn(2, 6, 9), torch.tensor([[True] * 9, [True] * 5 + [False] * 4])


def bad() -> tuple[nn.Module, dict[str, Tensor]]:
    return SqueezeExcite(by_length=False), _lengths()


def good() -> tuple[nn.Module, dict[str, Tensor]]:
    return SqueezeExcite(by_length=True), _lengths()


def bad_mask() -> tuple[nn.Module, tuple[Tensor, Tensor]]:
    return Convolutions(masked_again=False), _mask()


def good_mask() -> tuple[nn.Module, tuple[Tensor, Tensor]]:
    return Convolutions(masked_again=True), _mask()
