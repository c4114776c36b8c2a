"""A module of another package that `foreign.py` audits: how it is made, and its inputs.

An output has the axes that its case states: b rows, t tokens, any other letter something else. This file does not
import orderproof.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

ROWS, TOKENS, WIDTH = 2, 12, 32


@dataclass(frozen=True)
class Case:
    """One module.

    Attributes:
        package: Its package, as it is imported.
        name: The path of its class in the package.
        make: Makes it from the class.
        inputs: Makes its inputs.
        axes: The axes of its output, one letter each.
        token_axis: The token axis of the first input.

    """

    package: str
    name: str
    make: Callable[[Any], nn.Module]
    inputs: Callable[[], tuple[Tensor, ...]]
    axes: str = "btd"
    token_axis: int = 1

    @property
    def key(self) -> str:
        """`package.path(number)`."""
        return f"{self.package}.{self.name}"

    def module(self) -> nn.Module:
        """The module with random weights."""
        torch.manual_seed(0)
        target: Any = importlib.import_module(self.package)
        for part in self.name.split("#")[0].split("."):
            if not hasattr(target, part):
                target = importlib.import_module(f"{target.__name__}.{part}")
            else:
                target = getattr(target, part)
        return self.make(target).eval()


def vectors(width: int = WIDTH, tokens: int = TOKENS) -> Callable[[], tuple[Tensor, ...]]:
    """Vectors [row, token, width]."""
    return lambda: (torch.randn(ROWS, tokens, width, generator=torch.Generator().manual_seed(1)),)


def ids(tokens: int = TOKENS, count: int = 64) -> Callable[[], tuple[Tensor, ...]]:
    """Token ids [row, token]."""
    return lambda: (torch.randint(count, (ROWS, tokens), generator=torch.Generator().manual_seed(1)),)


def pairs(other: int = 7) -> Callable[[], tuple[Tensor, ...]]:
    """Vectors, and a second sequence of another length."""
    return lambda: (*vectors()(), torch.randn(ROWS, other, WIDTH, generator=torch.Generator().manual_seed(2)))
