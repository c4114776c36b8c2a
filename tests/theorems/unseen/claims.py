"""The parts that the modules of this folder share, and how their laws are stated."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

WIDTH, HEADS, LONGEST = 8, 2, 64


@dataclass(frozen=True)
class Written:
    """A module, and what is true of it.

    Attributes:
        kind: The class of the module.
        truth: Each law that is claimed, and if it holds.
        masked: The module takes an attention mask, too.
        tokens: The largest number of tokens at which runs test the claims.
        right: Its claim about pads is one about pads on the right.

    """

    kind: type[nn.Module]
    truth: dict[str, bool]
    masked: bool
    tokens: int
    right: bool = False


class Parts(nn.Module):
    """Layers and tables that a module may use."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o, self.gate = (nn.Linear(WIDTH, WIDTH) for _ in range(5))
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.cell, self.gru = nn.GRUCell(WIDTH, WIDTH), nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.conv, self.depthwise = nn.Conv1d(WIDTH, WIDTH, 3), nn.Conv1d(WIDTH, WIDTH, 4, groups=WIDTH, padding=3)
        self.table = nn.Embedding(LONGEST, WIDTH)
        self.bias = nn.Embedding(32, HEADS)
        self.router = nn.Linear(WIDTH, 4)
        self.experts = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.latents = nn.Parameter(torch.randn(3, WIDTH))
        self.decay = nn.Parameter(torch.rand(WIDTH))
        self.square = nn.Parameter(torch.randn(LONGEST, LONGEST))
        self.register_buffer("triangle", torch.ones(1, 1, LONGEST, LONGEST).tril().bool())
        self.register_buffer("slopes", 2.0 ** -torch.arange(1, HEADS + 1))
        self.register_buffer("scale", torch.linspace(0.02, 0.08, WIDTH))

    def heads(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values [row, head, token, feature]."""
        b, t, _ = x.shape
        return tuple(f(x).view(b, t, HEADS, -1).transpose(1, 2) for f in (self.q, self.k, self.v))

    def scores(self, x: Tensor) -> Tensor:
        """Scores of one head [row, query, key]."""
        return self.q(x) @ self.k(x).transpose(1, 2) / math.sqrt(WIDTH)

    def join(self, y: Tensor) -> Tensor:
        """Heads joined, and the output map."""
        b, _, t, _ = y.shape
        return self.o(y.transpose(1, 2).reshape(b, t, WIDTH))


def later(t: int, diagonal: int = 1) -> Tensor:
    """The keys after each query [query, key]."""
    return torch.ones(t, t, dtype=torch.bool).triu(diagonal)


class Corpus(dict[str, Written]):
    """The modules of a file, by the name of the function that is their call."""

    def __init__(self, parts: type[Parts] = Parts) -> None:
        super().__init__()
        self.parts = parts

    def add(
        self, *, masked: bool = False, tokens: int = 12, right: bool = False, **truth: bool
    ) -> Callable[[Callable[..., Tensor]], Callable[..., Tensor]]:
        """Add the module whose call is the decorated function of the module and its inputs."""

        def keep(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
            class Module(self.parts):
                def forward(self, x: Tensor) -> Tensor:
                    return function(self, x)

            class MaskedModule(self.parts):
                def forward(self, x: Tensor, mask: Tensor) -> Tensor:
                    return function(self, x, mask)

            self[function.__name__] = Written(MaskedModule if masked else Module, truth, masked, tokens, right)
            return function

        return keep
