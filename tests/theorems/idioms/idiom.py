"""The parts that the small modules of this folder share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

WIDTH = 6


@dataclass(frozen=True)
class Idiom:
    """A module as engineers write it, and one with a fault in the same lines.

    Attributes:
        good: A module that fulfils the law.
        bad: One that does not; None where no fault of this kind exists.
        law: The law.
        masked: The modules take an attention mask, too.

    """

    good: type[nn.Module]
    bad: type[nn.Module] | None = None
    law: str = "causal"
    masked: bool = False


class Attention(nn.Module):
    """Three linear maps."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(WIDTH, WIDTH) for _ in range(3))

    def scores(self, x: Tensor) -> Tensor:
        """Scores of queries and keys."""
        return self.q(x) @ self.k(x).transpose(1, 2) / WIDTH**0.5


def hidden(x: Tensor, diagonal: int = 1) -> Tensor:
    """The keys that a causal mask hides."""
    return torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(diagonal)


def of(function: Callable[..., Tensor]) -> type[Attention]:
    """The class of modules whose call is this function of the module and its inputs."""

    class Written(Attention):
        def __init__(self) -> None:
            super().__init__()
            self.o, self.cell = nn.Linear(WIDTH, WIDTH), nn.GRUCell(WIDTH, WIDTH)
            self.table = nn.Embedding(64, WIDTH)
            self.decay = nn.Parameter(torch.rand(WIDTH))
            self.register_buffer("triangle", torch.ones(64, 64).tril())

        def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
            return function(self, x) if mask is None else function(self, x, mask)

    return Written
