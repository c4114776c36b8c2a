"""What the tests of encodings and blocks share: every registered encoding, seeded tensors, derived tolerances."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from orderproof import encodings
from orderproof.encodings import PositionalEncoding, Sizes

torch.set_num_threads(1)  # the tensors here are so small that a second thread only waits

WIDTH, HEADS, LENGTH = 32, 4, 64
HEAD_WIDTH = WIDTH // HEADS

every_encoding = pytest.mark.parametrize("name", encodings.names())
every_mask = pytest.mark.parametrize("causal", [True, False], ids=["causal", "bidirectional"])
# torch.export copies a tree specification through a class it has itself marked as deprecated (torch 2.13).
exports = pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning")


def build(name: str, *, causal: bool = True, seed: int = 0) -> PositionalEncoding:
    """The encoding a small model would have, its parameters drawn with deviation 1."""
    torch.manual_seed(seed)
    sizes = Sizes(width=WIDTH, heads=HEADS, causal=causal, length=LENGTH)
    encoding = encodings.get(name).for_model(sizes)
    for parameter in encoding.parameters():
        torch.nn.init.normal_(parameter)
    return encoding


def normal(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    """Normal numbers, the same ones for the same seed."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def tolerance(dtype: torch.dtype, *, terms: int, scale: float = 1.0) -> float:
    """What a result of this size may be off by after a sum of so many rounded terms."""
    return 4 * torch.finfo(dtype).eps * math.sqrt(terms) * max(scale, 1.0)


def operands(encoding: PositionalEncoding, tokens: int, *, dtype: torch.dtype = torch.float64) -> tuple[Tensor, ...]:
    """What the encoding's hook takes before the positions."""
    if encoding.claims.site == "embed":
        return (normal(2, tokens, WIDTH, dtype=dtype),)
    if encoding.claims.site == "rotate":
        q, k = (normal(2, HEADS, tokens, HEAD_WIDTH, seed=seed, dtype=dtype) for seed in (1, 2))
        return q, k
    return (torch.zeros((), dtype=dtype),)


def call(encoding: PositionalEncoding, given: tuple[Tensor, ...], positions: Tensor) -> Tensor:
    """Whatever the encoding's hook gives, as one tensor."""
    site = encoding.claims.site
    if site == "embed":
        return encoding.embed(given[0], positions)
    if site == "rotate":
        return torch.stack(encoding.rotate(given[0], given[1], positions))
    if site == "bias":
        return encoding.bias(positions, positions, dtype=given[0].dtype)
    return given[0]


def apply(encoding: PositionalEncoding, positions: Tensor, *, dtype: torch.dtype = torch.float64) -> Tensor:
    """Whatever the encoding's hook gives on fixed inputs."""
    return call(encoding, operands(encoding, positions.shape[-1], dtype=dtype), positions)
