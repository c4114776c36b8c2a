"""Masks and tables that a model makes with numpy, recorded with open sizes, are those of numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import orderproof.diagnosis.rule  # noqa: F401 - a recording needs its rules
from orderproof.errors import CaptureError
from orderproof.recording.open_recording import OpenGraph, OpenInput, record_open
from orderproof.theorems.open_execution import execute_open

WIDTH = 4


class Made(nn.Module):
    """A module that adds what a function makes of the number of tokens to each row of scores."""

    def __init__(self, make: Callable[[int], Any]) -> None:
        super().__init__()
        self.make = make

    def forward(self, x: Tensor) -> Tensor:
        """Scores [row, query, key]."""
        made = torch.from_numpy(self.make(x.shape[1]))
        return x @ x.mT + made.to(x.dtype)


def table(n: int) -> Any:
    angle = np.arange(n)[:, None] / np.power(100.0, np.arange(n) / 7)
    return np.sin(angle)


def written(n: int) -> Any:
    mask = np.zeros((n, n), dtype=np.float32)
    mask[:, 0] = 1
    return mask


def converted_and_written(n: int) -> Any:
    table = np.ones((n, n))
    copied = table.astype(np.float64)
    copied[:] = np.tri(n)
    return table


class WrittenLater(nn.Module):
    """An array is written after a tensor of its memory was made, and after one that copies it."""

    def forward(self, x: Tensor) -> Tensor:
        """Scores [row, query, key]."""
        table = np.tri(x.shape[1])
        shared, copied, converted = torch.from_numpy(table), torch.tensor(table), torch.as_tensor(table, dtype=x.dtype)
        table[:] = 2.0
        return x @ x.mT + shared + 3 * copied + 5 * converted


MADE: dict[str, Callable[[int], Any]] = {
    "triangle": lambda n: np.tril(np.ones((n, n))),
    "bytes": lambda n: np.triu(np.ones((1, n, n)), k=1).astype("uint8"),
    "tri": lambda n: (1 - np.tri(n, k=0)) * -1e9,
    "identity": lambda n: np.eye(n, dtype=np.float32) + np.identity(n),
    "infinite": lambda n: np.triu(np.full((n, n), 5.5), 1).astype(np.float32),
    "compared": lambda n: np.arange(n)[None, :] <= np.arange(n)[:, None],
    "distances": lambda n: -np.abs(np.arange(n)[:, np.newaxis] - np.arange(n)) * 0.5,
    "halves": lambda n: np.arange(1, n + 1)[:, None] / np.arange(1, n + 1),
    "outer": lambda n: np.outer(np.arange(n), 1.0 / (1 + np.arange(n))),
    "chosen": lambda n: np.where(np.logical_not(np.tri(n) > 0), -3.0, 0.0),
    "times an array": lambda n: np.expand_dims(np.arange(n), 1) * np.array([2.0]),
    "chosen of an array": lambda n: np.where(np.tri(n) > 0, np.tri(n, dtype=np.float32), 0.1).astype(np.float64),
    "chosen of truths": lambda n: np.where(np.tri(n) > 0, np.tri(n, dtype=bool), 2) / np.where(np.tri(n) > 0, 4, True),
    "bounded": lambda n: np.minimum(np.arange(n), 7) * np.maximum(0.1, np.tri(n)),
    "a row": lambda n: np.full(n, 2),
    "written": written,
    "converted and written": converted_and_written,
    "transposed": lambda n: np.log(1 + np.tri(n).T),
    "of numbers only": lambda n: np.cumsum(np.ones(1)),
}


def recorded(module: nn.Module) -> list[OpenGraph]:
    inputs = [OpenInput("x", ("batch", "tokens", WIDTH), torch.float64)]
    return record_open(module, inputs, {"batch": 3, "tokens": 13})


MODULES = {name: Made(make) for name, make in MADE.items()} | {"written later": WrittenLater()}


@pytest.mark.parametrize("name", MODULES)
def test_a_recording_computes_what_numpy_computes(name: str) -> None:
    (graph,) = recorded(MODULES[name])
    for tokens in (2, 5, 17):
        x = torch.randn(2, tokens, WIDTH, dtype=torch.float64)
        found = execute_open(graph, (x,), {"batch": 2, "tokens": tokens})
        assert found is not None
        torch.testing.assert_close(found["output"], MODULES[name](x), atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize(
    "make", [lambda n: np.cumsum(np.ones((n, n)), 0), lambda n: np.eye(n, k=1), lambda n: np.tri(n).mean(0)]
)
def test_what_is_not_covered_is_for_one_length(make: Callable[[int], Any]) -> None:
    with pytest.raises(CaptureError):
        recorded(Made(make))


def test_a_number_that_numpy_makes_of_a_size_is_for_one_length() -> None:
    with pytest.raises(CaptureError, match="13 tokens only"):
        recorded(Made(lambda n: np.sqrt(n) * np.ones((1, 1))))


def test_numpy_and_torch_are_as_before() -> None:
    before = np.ones, torch.from_numpy, torch.tensor
    recorded(MODULES["triangle"])
    assert (np.ones, torch.from_numpy, torch.tensor) == before
    assert globals()["np"] is __import__("numpy")
