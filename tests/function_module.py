"""A function as a module."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn


class Function(nn.Module):
    """A module whose forward call is a function."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)
