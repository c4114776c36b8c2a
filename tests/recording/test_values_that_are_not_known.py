"""Values that a recording does not know are not read from it: written constants, chance, memory without values."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from orderproof.errors import CaptureError
from orderproof.recording.execution import execute
from orderproof.recording.open_recording import OpenInput, record_open
from orderproof.recording.recording import record
from tests.function_module import Function

TOKENS = OpenInput("x", ("batch", "tokens", 4), torch.float32)


def written(x: Tensor) -> Tensor:
    """A constant of which the call has made a token."""
    kept = torch.zeros(4)
    kept.copy_(x[0, 0])
    return x * 2 if kept.any() else x


def added(x: Tensor) -> Tensor:
    kept = torch.zeros(4)
    kept.add_(x[0, 0])
    return x * 2 if kept.any() else x


def drawn(x: Tensor) -> Tensor:
    return x * 2 if torch.rand(4).sum() > 2 else x


def drawn_in_place(x: Tensor) -> Tensor:
    return x * 2 if torch.zeros(4).uniform_().sum() > 2 else x


def without_values(x: Tensor) -> Tensor:
    return x * 2 if torch.empty(4).any() else x


@pytest.mark.parametrize("function", [written, added, drawn, drawn_in_place, without_values])
def test_a_branch_on_it_is_refused(function: Callable[[Tensor], Tensor]) -> None:
    with pytest.raises(CaptureError, match="control flow depends on data"):
        record(Function(function), (torch.randn(2, 5, 4),))


def drawn_for_each_token(x: Tensor) -> Tensor:
    return x * 2 if (torch.rand(x.shape[1]) > 0.5).any() else x


def drawn_in_place_for_each_token(x: Tensor) -> Tensor:
    return x * 2 if (torch.zeros(x.shape[1]).uniform_() > 0.5).any() else x


def without_values_for_each_token(x: Tensor) -> Tensor:
    return x * 2 if (torch.empty(x.shape[1]) > 0.5).any() else x


@pytest.mark.parametrize(
    "function", [drawn_for_each_token, drawn_in_place_for_each_token, without_values_for_each_token]
)
def test_a_branch_on_it_is_refused_where_the_length_is_open(function: Callable[[Tensor], Tensor]) -> None:
    with pytest.raises(CaptureError, match="control flow depends on data"):
        record_open(Function(function), (TOKENS,), {"batch": 3, "tokens": 13})


def counted_for_each_token(x: Tensor) -> Tensor:
    """The count is the same in both runs of a law: it may decide."""
    return x * 2 if (torch.arange(x.shape[1]) > 20).any() else x


def test_what_is_the_same_in_both_runs_may_decide() -> None:
    graphs = record_open(Function(counted_for_each_token), (TOKENS,), {"batch": 3, "tokens": 13})
    assert len(graphs) == 2


def test_a_write_keeps_the_dtype_of_its_target() -> None:
    def adds_float64(x: Tensor) -> Tensor:
        y = x.clone()
        y.add_(torch.full((4,), 1e-9, dtype=torch.float64))
        return y

    x = torch.randn(2, 5, 4)
    captured = record(Function(adds_float64), (x,))
    (found,) = execute(captured, (x,)).values()
    assert found.dtype == torch.float32
    assert torch.equal(found, adds_float64(x))
