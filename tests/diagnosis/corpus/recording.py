"""Models whose control flow reads a value while they are traced."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

ROWS, TOKENS, WIDTH = 2, 7, 4


class Model(nn.Module):
    """A function of x with a weight, a buffer and a tensor that is neither."""

    def __init__(self, function: Callable[[Model, Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function
        self.weight = nn.Parameter(torch.randn(WIDTH, WIDTH))
        self.register_buffer("table", torch.arange(float(TOKENS)))
        self.loose = torch.zeros(3)

    def forward(self, x: Tensor) -> Tensor:
        return self.function(self, x)


def doubled_if(x: Tensor, condition: object) -> Tensor:
    return x * 2 if condition else x


REFUSED: dict[str, Callable[[Model, Tensor], Tensor]] = {}
RECORDED: dict[str, Callable[[Model, Tensor], Tensor]] = {}


def refused(function: Callable[[Model, Tensor], Tensor]) -> Callable[[Model, Tensor], Tensor]:
    REFUSED[function.__name__] = function
    return function


def recorded(function: Callable[[Model, Tensor], Tensor]) -> Callable[[Model, Tensor], Tensor]:
    RECORDED[function.__name__] = function
    return function
