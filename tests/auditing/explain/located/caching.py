"""Layers with a cache, in the layouts of several libraries: a call goes on where the cache ends, or does not."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import conv1d

from orderproof.adapter import ModelAdapter, ModelOutput

WIDTH, HEADS, KERNEL, WINDOW = 8, 2, 3, 4


class Cached(nn.Module):
    """Ids to logits with a cache; `faulty` is the module with the fault."""

    def __init__(self, faulty: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.faulty = faulty
        self.words = nn.Embedding(50, WIDTH)
        self.places = nn.Embedding(512, WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.kernel = nn.Parameter(torch.randn(WIDTH, 1, KERNEL))
        self.head = nn.Linear(WIDTH, 50)

    def heads(self, x: Tensor) -> tuple[Tensor, ...]:
        """Queries, keys and values `[row, head, token, width]`."""
        parts = self.qkv(x).chunk(3, -1)
        return tuple(part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in parts)


class CachedAdapter(ModelAdapter):
    """Calls it."""

    supported_inputs = frozenset({"cache"})
    causal = True
    default_length = 9

    def __init__(self, module: nn.Module) -> None:
        self.module = module.eval()

    def sample_tokens(self, rows: int, tokens: int, seed: int) -> Tensor:
        drawn = torch.randint(0, 50, (rows, tokens), generator=torch.Generator().manual_seed(0))
        return (drawn + seed) % 50

    def call(self, tokens: Tensor, *, past: Any = None, **_: Any) -> ModelOutput:
        return ModelOutput(*self.module(tokens, past))


def rotate(x: Tensor, positions: Tensor) -> Tensor:
    """Rotary positions in halves; positions `[token]`."""
    rate = 50.0 ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    angle = positions[:, None].to(x.dtype) * rate.to(x.dtype)
    a, b = x.chunk(2, -1)
    return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)


def attend(q: Tensor, k: Tensor, v: Tensor, seen: Tensor) -> Tensor:
    """Attention of heads, as `[row, token, width]`."""
    scores = (q @ k.transpose(-1, -2) / 2).masked_fill(~seen, -torch.inf)
    return (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)


class GPT2Positions(Cached):
    """A table of positions that each call reads from its start."""

    def forward(self, input_ids: Tensor, layer_past: Any = None) -> tuple[Tensor, Any]:
        n, before = input_ids.shape[1], 0 if layer_past is None else layer_past[0].shape[2]
        position_ids = torch.arange(n) + (0 if self.faulty else before)  # here
        x = self.words(input_ids) + self.places(position_ids)
        q, k, v = self.heads(x)
        if layer_past is not None:
            k, v = torch.cat([layer_past[0], k], 2), torch.cat([layer_past[1], v], 2)
        seen = torch.ones(n, before + n, dtype=torch.bool).tril(before)
        return self.head(x + attend(q, k, v, seen)), (k, v)


class KeysFromZero(Cached):
    """Queries are rotated by their positions, keys as if each call started at 0."""

    def forward(self, input_ids: Tensor, past_key_values: Any = None) -> tuple[Tensor, Any]:
        x = self.words(input_ids)
        n, before = x.shape[1], 0 if past_key_values is None else past_key_values[0].shape[2]
        q, k, v = self.heads(x)
        cache_position = torch.arange(before, before + n)
        q = rotate(q, cache_position)
        key_position = cache_position - (cache_position[0] if self.faulty else 0)  # here
        k = rotate(k, key_position)
        if past_key_values is not None:
            k, v = torch.cat([past_key_values[0], k], 2), torch.cat([past_key_values[1], v], 2)
        seen = torch.ones(n, before + n, dtype=torch.bool).tril(before)
        return self.head(x + attend(q, k, v, seen)), (k, v)


class TopLeftMask(Cached):
    """The causal mask of a call is aligned to the first key."""

    def forward(self, input_ids: Tensor, past: Any = None) -> tuple[Tensor, Any]:
        x = self.words(input_ids)
        n, before = x.shape[1], 0 if past is None else past["k"].shape[2]
        q, k, v = self.heads(x)
        if past is not None:
            k, v = torch.cat([past["k"], k], 2), torch.cat([past["v"], v], 2)
        full = torch.ones(n, before + n, dtype=torch.bool)
        seen = full.tril(0 if self.faulty else before)  # here
        return self.head(x + attend(q, k, v, seen)), {"k": k, "v": v}


class ShortConvolution(Cached):
    """The convolution of Mamba: a call starts with the last inputs of the calls before it."""

    def forward(self, input_ids: Tensor, conv_state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        x = self.words(input_ids).transpose(1, 2)
        if conv_state is None or self.faulty:
            conv_state = x.new_zeros(len(x), WIDTH, KERNEL - 1)
        padded = torch.cat([conv_state, x], -1)  # here
        y = conv1d(padded, self.kernel, groups=WIDTH)
        return self.head((x + y).transpose(1, 2)), padded[..., -(KERNEL - 1) :]


class GatedScan(Cached):
    """A recurrence: a call starts with the state of the call before it, or from zero."""

    def forward(self, input_ids: Tensor, recurrent_state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        x = self.words(input_ids)
        q, k, v = self.qkv(x).chunk(3, -1)
        outputs, state = [], recurrent_state
        if state is None or (self.faulty and x.shape[1] > 1):
            state = x.new_zeros(len(x), WIDTH, WIDTH)
        for t in range(x.shape[1]):
            state = 0.9 * state + k[:, t, :, None] * v[:, t, None, :]  # here
            outputs.append((q[:, t, None, :] @ state)[:, 0])
        return self.head(x + torch.stack(outputs, 1)), state


class RunningSum(Cached):
    """A running sum that starts again in each call."""

    def forward(self, input_ids: Tensor, total: Tensor | None = None) -> tuple[Tensor, Tensor]:
        x = self.words(input_ids)
        sums = x.cumsum(1)  # here
        if total is not None and not self.faulty:
            sums = sums + total
        return self.head(x + sums), sums[:, -1:]


class NormalisedCall(Cached):
    """Tokens are centred by the mean of their call, or by the sum of the tokens before them."""

    def forward(self, input_ids: Tensor, before: Any = None) -> tuple[Tensor, Any]:
        x = self.words(input_ids)
        total, count = (x.new_zeros(len(x), 1, WIDTH), 0) if before is None else before
        if self.faulty:
            return self.head(x - x.mean(1, keepdim=True)), (total, count)  # here
        sums = total + x.cumsum(1)
        return self.head(x - sums / torch.arange(count + 1, count + x.shape[1] + 1)[:, None]), (
            sums[:, -1:],
            count + x.shape[1],
        )


class WindowCutFirst(Cached):
    """Keys outside the window of the last token are dropped before the chunk attends, not after."""

    def forward(self, input_ids: Tensor, past: Any = None) -> tuple[Tensor, Any]:
        x = self.words(input_ids)
        n, (before, k0, v0) = x.shape[1], (0, None, None) if past is None else past
        q, k, v = self.heads(x)
        if k0 is not None:
            k, v = torch.cat([k0, k], 2), torch.cat([v0, v], 2)
        if self.faulty and k0 is not None:
            k, v = k[:, :, -WINDOW:], v[:, :, -WINDOW:]  # here
        at = torch.arange(before, before + n)[:, None]
        key_at = torch.arange(before + n - k.shape[2], before + n)
        seen = (key_at <= at) & (at - key_at < WINDOW)
        y = attend(q, k, v, seen) if bool(seen.any(-1).all()) else attend(q, k, v, seen | ~seen.any(-1, keepdim=True))
        return self.head(x + y), (before + n, k[:, :, -WINDOW + 1 :], v[:, :, -WINDOW + 1 :])
