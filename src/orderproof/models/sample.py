"""Inputs of one call, and the random generators that draw them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor

BATCH_SIZE = 2  # of every drawn input


@dataclass(frozen=True)
class Sample:
    """Inputs for one call, and a label for each token."""

    inputs: tuple[Tensor, ...]  # positional arguments of Subject.module
    labels: tuple[str, ...]  # one per token of row 0: its text where it has one, else x0, x1, ...


def token_labels(count: int) -> tuple[str, ...]:
    """Labels for tokens without text: x0, x1, ..."""
    return tuple(f"x{index}" for index in range(count))


def seeded_generator(seed: int) -> torch.Generator:
    """A generator separate from the global one, whose state it neither reads nor changes."""
    return torch.Generator().manual_seed(seed)
