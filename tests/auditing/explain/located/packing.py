"""Layers on packed documents, whose position ids restart: they keep the documents apart, or do not."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool1d, conv1d, pad

WIDTH = 8


class Packed(nn.Module):
    """A layer with tokens `[row, token, width]` and position ids; `faulty` is the module with the fault."""

    def __init__(self, faulty: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.faulty = faulty
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.kernel = nn.Parameter(torch.randn(WIDTH, 1, 3))

    def forward(self, x: Tensor, position_ids: Tensor) -> Tensor:
        return x + self.mix(x, (position_ids == 0).cumsum(-1))

    def mix(self, x: Tensor, document: Tensor) -> Tensor:
        """The output of the layer; `document` [row, token] numbers the documents of a row."""
        raise NotImplementedError


class GPTNeoXAttention(Packed):
    """Heads in `[row, head, token, width]`, and a causal mask that should show a token its document only."""

    def mix(self, x: Tensor, document: Tensor) -> Tensor:
        b, n, _ = x.shape
        q, k, v = self.qkv(x).view(b, n, 2, 12).transpose(1, 2).chunk(3, -1)
        seen = torch.ones(n, n, dtype=torch.bool).tril()[None]  # here
        if not self.faulty:
            seen = seen & (document[:, :, None] == document[:, None, :])
        scores = torch.matmul(q, k.transpose(-1, -2)) / 2
        scores = torch.where(seen[:, None], scores, torch.finfo(scores.dtype).min)
        return torch.matmul(scores.softmax(-1), v).transpose(1, 2).reshape(b, n, WIDTH)


class ShortConvolution(Packed):
    """The causal convolution of Mamba and of flash-linear-attention, channels first."""

    def mix(self, x: Tensor, document: Tensor) -> Tensor:
        if self.faulty:
            return conv1d(pad(x.transpose(1, 2), (2, 0)), self.kernel, groups=WIDTH).transpose(1, 2)  # here
        y = torch.zeros_like(x)
        for back in range(3):
            before = pad(x, (0, 0, back, 0))[:, : x.shape[1]]
            same = (pad(document, (back, 0))[:, : x.shape[1]] == document).to(x.dtype)
            y = y + before * same[..., None] * self.kernel[:, 0, 2 - back]
        return y


class LinearAttention(Packed):
    """A recurrence over the tokens, as flash-linear-attention writes its reference."""

    def mix(self, x: Tensor, document: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        carried = torch.ones_like(document, dtype=x.dtype)
        if not self.faulty:
            carried = pad((document[:, 1:] == document[:, :-1]).to(x.dtype), (1, 0))
        state = x.new_zeros(x.shape[0], WIDTH, WIDTH)
        outputs = []
        for t in range(x.shape[1]):
            state = 0.9 * carried[:, t, None, None] * state + k[:, t, :, None] * v[:, t, None, :]  # here
            outputs.append(torch.einsum("bk,bkv->bv", q[:, t], state))
        return torch.stack(outputs, dim=1)


class RunningMean(Packed):
    """The mean of the tokens up to each, by a running sum."""

    def mix(self, x: Tensor, document: Tensor) -> Tensor:
        if self.faulty:
            total = x.cumsum(1)  # here
            return total / torch.arange(1, x.shape[1] + 1)[:, None]
        same = (document[:, :, None] == document[:, None, :]).to(x.dtype).tril()
        return same @ x / same.sum(-1, keepdim=True)


class CentredRow(Packed):
    """Tokens without the mean of their sequence."""

    def mix(self, x: Tensor, document: Tensor) -> Tensor:
        if self.faulty:
            return x - x.mean(dim=1, keepdim=True)  # here
        same = (document[:, :, None] == document[:, None, :]).to(x.dtype)
        return x - same @ x / same.sum(-1, keepdim=True)


class Pooled(Packed):
    """The mean of a window of three tokens."""

    def mix(self, x: Tensor, document: Tensor) -> Tensor:
        if self.faulty:
            return avg_pool1d(x.transpose(1, 2), 3, 1, 1).transpose(1, 2)  # here
        near = (torch.arange(x.shape[1])[:, None] - torch.arange(x.shape[1])).abs() <= 1
        same = ((document[:, :, None] == document[:, None, :]) & near).to(x.dtype)
        return same @ x / 3
