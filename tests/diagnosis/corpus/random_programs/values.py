"""The values of a random program, and the registry of its operations.

Sums keep odd coefficients, and operators with jumps read only values that no arithmetic has touched. So two runs
never differ by rounding alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

BATCH, TOKENS, WIDTH = 2, 5, 4
LARGEST = 1200  # [elements] of any value
ERRORS = (RuntimeError, IndexError, ValueError, TypeError, ZeroDivisionError, NotImplementedError)
Operation = tuple[str, int, int, int, int]


@dataclass(frozen=True)
class Value:
    """A tensor, and whether it holds elements of the input as they came: no arithmetic, no rounding."""

    tensor: Tensor
    exact: bool = False


class Skip(Exception):
    """The operation does not fit here."""


class Env:
    """The values made so far, and the module's own tensors."""

    def __init__(self, x: Tensor, owner: nn.Module) -> None:
        self.values = [Value(x, exact=True)]
        self.owner = owner

    def pick(self, k: int, fits: Callable[[Tensor], bool] = lambda _: True, *, exact: bool = False) -> Value:
        """The k-th latest value that fits."""
        found = [v for v in reversed(self.values) if (v.exact or not exact) and fits(v.tensor)]
        if not found:
            raise Skip
        return found[k % len(found)]

    def tensor(self, k: int, rank: int = 0) -> Tensor:
        """The k-th latest tensor of at least this rank."""
        return self.pick(k, lambda t: t.dim() >= rank).tensor


Function = Callable[[Env, int, int, int, int], Value | Tensor]
OPERATIONS: dict[str, Function] = {}


def operation(function: Function) -> Function:
    OPERATIONS[function.__name__] = function
    return function


TRIANGLE = torch.ones(TOKENS, TOKENS).triu(1).bool()


SHAPES = ((WIDTH,), (TOKENS, 1), (TOKENS, WIDTH), (TOKENS, TOKENS), (TOKENS,), (1, TOKENS, WIDTH), (1,), (BATCH, 1, 1))


def symmetric_or_not(kind: int) -> Tensor:
    """A constant over tokens: some the same for every order, some only when reversed, some never."""
    place = torch.arange(TOKENS)
    distance = place[None, :] - place[:, None]
    made = [
        lambda: torch.full((TOKENS, 1), 0.3),
        lambda: torch.eye(TOKENS),
        lambda: distance.abs().float() * -0.5,
        lambda: distance.float() * 0.3,
        lambda: (place.float() * 0.7).sin()[:, None],
        lambda: (place - 2).abs().float(),
        lambda: torch.ones(TOKENS, TOKENS).tril(),
        (place[:, None] == 0).float,
        lambda: torch.ones(WIDTH) * 0.9,
        lambda: torch.arange(WIDTH).float() * 0.2,
        lambda: torch.arange(BATCH).float()[:, None, None] + 0.4,
        lambda: torch.zeros(TOKENS, WIDTH),
    ]
    return made[kind % len(made)]()


def floating(value: Value) -> Tensor:
    return value.tensor if value.tensor.is_floating_point() else value.tensor.to(torch.get_default_dtype())


def several(t: Tensor) -> bool:
    return t.dim() >= 1


def has_tokens(t: Tensor) -> bool:
    return t.dim() >= 2 and t.shape[-2] == TOKENS
