"""Encoders and decoders of padded rows, in the layouts of several libraries: pads and other rows matter, or do not."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool1d, conv1d

from orderproof.adapter import ModelOutput
from tests.auditing.explain.located.caching import CachedAdapter

WIDTH = 8


class Padded(nn.Module):
    """Embeddings and a layer that mixes tokens; `faulty` is the module with the fault."""

    def __init__(self, faulty: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.faulty = faulty
        self.words = nn.Embedding(50, WIDTH)
        self.places = nn.Embedding(64, WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.kernel = nn.Parameter(torch.randn(WIDTH, 1, 3))

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        real = torch.ones_like(input_ids) if attention_mask is None else attention_mask.long()
        x = self.words(input_ids)
        return x + self.mix(x, real)

    def mix(self, x: Tensor, real: Tensor) -> Tensor:
        """The output of the layer."""
        raise NotImplementedError


class BertAttention(Padded):
    """An additive mask `[row, 1, 1, key]` that is dropped for a single row."""

    def mix(self, x: Tensor, real: Tensor) -> Tensor:
        b, n, _ = x.shape
        q, k, v = (part.view(b, n, 2, 4).permute(0, 2, 1, 3) for part in self.qkv(x).chunk(3, -1))
        scores = torch.matmul(q, k.transpose(-1, -2))  # here
        if not self.faulty:
            scores = scores + (1.0 - real[:, None, None, :].to(x.dtype)) * torch.finfo(x.dtype).min
        return torch.matmul(scores.softmax(-1), v).permute(0, 2, 1, 3).reshape(b, n, WIDTH)


class ConvolutionModule(Padded):
    """The convolution of a Conformer, channels first."""

    def mix(self, x: Tensor, real: Tensor) -> Tensor:
        if not self.faulty:
            x = x.masked_fill(real[..., None] == 0, 0.0)
        return conv1d(x.transpose(1, 2), self.kernel, padding=1, groups=WIDTH).transpose(1, 2)  # here


class Recurrent(Padded):
    """A recurrence, steps first, whose state pads should leave as it is."""

    def mix(self, x: Tensor, real: Tensor) -> Tensor:
        steps, alive = x.unbind(1), real.unbind(1)
        h, outputs = torch.zeros_like(steps[0]), []
        for token, is_real in zip(steps, alive, strict=True):
            keep = torch.ones_like(is_real) if self.faulty else is_real
            h = torch.where(keep[:, None] == 1, torch.tanh(0.5 * h + token), h)  # here
            outputs.append(h)
        return torch.stack(outputs, dim=1)


class QuantisedTensor(Padded):
    """A scale over a whole tensor, as in dynamic int8, or over a token."""

    def mix(self, x: Tensor, real: Tensor) -> Tensor:
        scale = x.abs().amax(-1, keepdim=True)
        if self.faulty:
            scale = x.abs().amax()  # here
        return torch.round(x / scale * 127) * scale / 127


class PooledWindow(Padded):
    """The mean of three tokens."""

    def mix(self, x: Tensor, real: Tensor) -> Tensor:
        if not self.faulty:
            x = x * real[..., None]
        return avg_pool1d(x.transpose(1, 2), 3, 1, 1).transpose(1, 2)  # here


class Mixed(Padded):
    """Fourier mixing of FNet."""

    def mix(self, x: Tensor, real: Tensor) -> Tensor:
        if self.faulty:
            return torch.fft.fft(x, dim=1).real  # here
        return torch.fft.fft(x, dim=-1).real


class RowsAsTokens(Padded):
    """torch's attention, which takes tokens first unless an argument says otherwise."""

    def __init__(self, faulty: bool) -> None:
        super().__init__(faulty)
        self.attention = nn.MultiheadAttention(WIDTH, 2, batch_first=not faulty)

    def mix(self, x: Tensor, real: Tensor) -> Tensor:
        hidden = None if self.faulty else real == 0
        return self.attention(x, x, x, key_padding_mask=hidden)[0]  # here


class PaddedAdapter(CachedAdapter):
    """Calls it with a cache and a mask."""

    supported_inputs = frozenset({"cache", "mask"})

    def call(self, tokens: Tensor, *, mask: Tensor | None = None, past: Any = None, **_: Any) -> ModelOutput:
        return ModelOutput(*self.module(tokens, mask, past))


class CachedAndPadded(Padded):
    """A decoder with a cache and a mask of pads."""

    def forward(self, input_ids: Tensor, mask: Tensor | None = None, past: Any = None) -> tuple[Tensor, Any]:  # type: ignore[override]
        n, before = input_ids.shape[1], 0 if past is None else past[0].shape[1]
        real = torch.ones(len(input_ids), before + n) if mask is None else mask
        x = self.words(input_ids) + self.places(self.positions(real, n)[:, -n:])
        q, k, v = self.qkv(x).chunk(3, -1)
        if past is not None:
            k, v = torch.cat([past[0], k], 1), torch.cat([past[1], v], 1)
        seen = torch.ones(n, before + n, dtype=torch.bool).tril(before) & self.visible(real, n)
        seen = seen | ~seen.any(-1, keepdim=True)
        scores = (q @ k.mT / 2).masked_fill(~seen, -torch.inf)
        return x + scores.softmax(-1) @ v, (k, v)

    def positions(self, real: Tensor, n: int) -> Tensor:
        """The positions of all tokens, with pads at 0."""
        del n
        return (real.long().cumsum(-1) - 1).clamp(min=0)

    def visible(self, real: Tensor, n: int) -> Tensor:
        """The keys that a query sees `[row, query, key]`."""
        del n
        return real.bool()[:, None]


class PadsCounted(CachedAndPadded):
    """Positions of a call on a cache count the pads."""

    def positions(self, real: Tensor, n: int) -> Tensor:
        if self.faulty and real.shape[1] > n:
            return torch.arange(real.shape[1]).expand(len(real), -1)  # here
        return super().positions(real, n)


class MaskDroppedOnCache(CachedAndPadded):
    """The mask of pads is dropped for a single token on a cache."""

    def visible(self, real: Tensor, n: int) -> Tensor:
        hidden = ~real.bool()[:, None]
        if self.faulty and n == 1:
            hidden = torch.zeros_like(hidden)  # here
        return ~hidden
