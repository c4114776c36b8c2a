"""Masks that are kept: as frozen parameters, buffers, in a cache of a function, in numpy."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor, nn

from tests.theorems.idioms.idiom import Attention, Idiom


class Buffer(Attention):
    """A buffer of -inf above the diagonal."""

    def __init__(self, diagonal: int = 1) -> None:
        super().__init__()
        self.register_buffer("bias", torch.full((32, 32), float("-inf")).triu(diagonal))

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        return (self.scores(x) + self.bias[:n, :n]).softmax(-1) @ self.v(x)


class BufferOffByOne(Buffer):
    """The same, off by one."""

    def __init__(self) -> None:
        super().__init__(2)


class Frozen(Attention):
    """A parameter without gradient."""

    def __init__(self, diagonal: int = 1) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.full((32, 32), float("-inf")).triu(diagonal), requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        return (self.scores(x) + self.bias[:n, :n]).softmax(-1) @ self.v(x)


class FrozenOffByOne(Frozen):
    """The same, off by one."""

    def __init__(self) -> None:
        super().__init__(2)


@lru_cache(maxsize=8)
def kept_mask(n: int) -> Tensor:
    """The keys that are hidden."""
    return torch.triu(torch.ones(n, n, dtype=torch.bool), diagonal=1)


class Cached(Attention):
    """A mask from a function with `lru_cache`."""

    def forward(self, x: Tensor) -> Tensor:
        return self.scores(x).masked_fill(kept_mask(x.shape[1]), float("-inf")).softmax(-1) @ self.v(x)


class OfNumpy(Attention):
    """A mask from numpy, as in the annotated transformer."""

    def forward(self, x: Tensor) -> Tensor:
        ahead = torch.from_numpy(np.triu(np.ones((1, x.shape[1], x.shape[1])), k=1).astype("uint8"))
        return self.scores(x).masked_fill(ahead != 0, -1e9).softmax(-1) @ self.v(x)


class OfNumpyOffByOne(Attention):
    """The same, off by one."""

    def forward(self, x: Tensor) -> Tensor:
        ahead = torch.from_numpy(np.triu(np.ones((1, x.shape[1], x.shape[1])), k=2).astype("uint8"))
        return self.scores(x).masked_fill(ahead != 0, -1e9).softmax(-1) @ self.v(x)


class KeptOnDemand(Attention):
    """A mask that is made once for each length, and kept in an attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.mask: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if self.mask is None or self.mask.shape[0] < n:
            self.mask = torch.ones(n, n, dtype=torch.bool).triu(1)
        return self.scores(x).masked_fill(self.mask[:n, :n], float("-inf")).softmax(-1) @ self.v(x)


class Floats(Attention):
    """Positions are compared as floats."""

    def forward(self, x: Tensor) -> Tensor:
        t = torch.arange(x.shape[1], dtype=torch.float32)
        return self.scores(x).masked_fill(t[None, :] > t[:, None], float("-inf")).softmax(-1) @ self.v(x)


class FloatsOffByOne(Attention):
    """The same, off by one."""

    def forward(self, x: Tensor) -> Tensor:
        t = torch.arange(x.shape[1], dtype=torch.float32)
        return self.scores(x).masked_fill(t[None, :] > t[:, None] + 1.0, float("-inf")).softmax(-1) @ self.v(x)


class Bits(Attention):
    """A mask of bits, as in TensorFlow's strided attention."""

    def forward(self, x: Tensor) -> Tensor:
        i = torch.arange(x.shape[1])
        visible = (i[None, :] <= i[:, None]) & ((i[None, :] ^ i[:, None]) < 4)
        return self.scores(x).masked_fill(~visible, float("-inf")).softmax(-1) @ self.v(x)


IDIOMS = {
    "buffer of -inf": Idiom(Buffer, BufferOffByOne),
    "frozen parameter": Idiom(Frozen, FrozenOffByOne),
    "lru_cache": Idiom(Cached),
    "numpy": Idiom(OfNumpy, OfNumpyOffByOne),
    "kept on demand": Idiom(KeptOnDemand),
    "positions as floats": Idiom(Floats, FloatsOffByOne),
    "bits": Idiom(Bits),
}
