"""A write at a mask that depends on tokens is recorded where each of these elements gets the same values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from orderproof import prove
from orderproof.errors import CaptureError
from orderproof.recording.recording import record
from orderproof.records.audit import Finding
from tests.function_module import Function

VALUES = torch.arange(4.0)


def of(function: Callable[[Tensor], Tensor], law: str = "causal") -> Finding:
    finding = prove(Function(function).eval(), law, inputs=torch.randn(2, 7, 4))
    assert isinstance(finding, Finding)
    return finding


def vector(x: Tensor) -> Tensor:
    y = x * 2
    y[x[..., 0] > 0] = VALUES
    return y


def row_of_one(x: Tensor) -> Tensor:
    y = x * 2
    y[x[..., 0] > 0] = VALUES[None]
    return y


def number(x: Tensor) -> Tensor:
    y = x * 2
    y[x > 0] = 0.5
    return y


def functional(x: Tensor) -> Tensor:
    return torch.index_put(x, (x[..., 0] > 0,), VALUES)


def scores(x: Tensor, hidden: Tensor) -> Tensor:
    """Attention whose scores get a number where a mask says so."""
    w = x @ x.mT
    w[:, hidden] = float("-inf")
    return w.softmax(-1) @ x


def later_keys(x: Tensor) -> Tensor:
    return scores(x, torch.ones(x.shape[1], x.shape[1]).triu(1) == 1)


def later_keys_of_heads(x: Tensor) -> Tensor:
    w = x[:, None] @ x[:, None].mT
    w[..., torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)] = -1e9
    return (w.softmax(-1) @ x[:, None]).flatten(1, 2)


def mask_made_by_a_mask(x: Tensor) -> Tensor:
    bias = torch.zeros(x.shape[1], x.shape[1])
    bias[torch.ones_like(bias).triu(1) > 0] = float("-inf")
    return (x @ x.mT + bias).softmax(-1) @ x


@pytest.mark.parametrize(
    "function", [vector, row_of_one, number, functional, later_keys, later_keys_of_heads, mask_made_by_a_mask]
)
def test_the_same_values_at_a_mask_are_recorded(function: Callable[[Tensor], Tensor]) -> None:
    finding = of(function)
    assert finding.verdict == "proved"
    assert finding.theorem is not None
    assert finding.theorem.proved, finding.theorem.reason


def by_the_next_token(x: Tensor) -> Tensor:
    y = x * 2
    y[x.roll(-1, 1)[..., 0] > 0] = VALUES
    return y


def later_keys_by_indices(x: Tensor) -> Tensor:
    w = x @ x.mT
    i, j = torch.triu_indices(x.shape[1], x.shape[1], 1)
    w[:, i, j] = float("-inf")
    return w.softmax(-1) @ x


def later_keys_by_indices_of_numpy(x: Tensor) -> Tensor:
    w = x[:, None] @ x[:, None].mT
    i, j = np.triu_indices(x.shape[1], 1)
    w[:, :, i, j] = -1e9
    return (w.softmax(-1) @ x[:, None]).flatten(1, 2)


def last_rows_by_indices(x: Tensor) -> Tensor:
    w = (x @ x.mT).tril()
    w[:, [1, 2, -1], [0, 1, 0]] = 0.5
    return w @ x


@pytest.mark.parametrize("function", [later_keys_by_indices, later_keys_by_indices_of_numpy, last_rows_by_indices])
def test_a_number_at_known_indices_is_recorded(function: Callable[[Tensor], Tensor]) -> None:
    assert of(function).verdict == "proved"


def two_keys_by_indices(x: Tensor) -> Tensor:
    w = x @ x.mT
    i, j = torch.triu_indices(x.shape[1], x.shape[1], 2)
    w[:, i, j] = float("-inf")
    return w.softmax(-1) @ x


def at_later_indices(x: Tensor) -> Tensor:
    y = x * 2
    place = x[0, :, 0].argsort()
    y[:, place, place % 4] = 0.5
    return y


def test_indices_that_depend_on_tokens_prove_nothing() -> None:
    assert of(at_later_indices).verdict != "proved"


def keys_after_the_next(x: Tensor) -> Tensor:
    return scores(x, torch.ones(x.shape[1], x.shape[1]).triu(2) == 1)


@pytest.mark.parametrize("function", [by_the_next_token, keys_after_the_next, two_keys_by_indices])
def test_a_mask_of_later_tokens_is_a_leak(function: Callable[[Tensor], Tensor]) -> None:
    assert of(function).verdict == "refuted"


def other_values(x: Tensor) -> Tensor:
    y, mask = x * 2, x[..., 0] > 0
    y[mask] = x.flip(1)[mask]
    return y


def added(x: Tensor) -> Tensor:
    return torch.index_put(x, (x[..., 0] > 0,), VALUES, accumulate=True)


def a_row_of_its_own(x: Tensor) -> Tensor:
    """Torch takes as many rows as there are true elements, in their order."""
    y = x * 2
    y[x[..., 0] > 0] = torch.arange(28.0).view(7, 4)
    return y


def vector_after_a_dimension(x: Tensor) -> Tensor:
    y = x * 2
    y[:, x[0, :, 0] > 0] = VALUES
    return y


@pytest.mark.parametrize("function", [other_values, added, a_row_of_its_own, vector_after_a_dimension])
def test_other_writes_at_a_mask_are_refused(function: Callable[[Tensor], Tensor]) -> None:
    with pytest.raises(CaptureError, match="the size of a tensor depends on data"):
        record(Function(function), (torch.randn(2, 7, 4),))
