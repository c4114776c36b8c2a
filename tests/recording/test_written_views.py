"""A write through a view of permuted or split axes changes the part of the tensor that the model changes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from orderproof.recording.execution import execute
from orderproof.recording.recording import record
from tests.function_module import Function


def permuted(y: Tensor) -> None:
    y.permute(2, 0, 1)[0] += 1


def second_part(y: Tensor) -> None:
    y.split([1, 3], 2)[1].mul_(2)


def last_chunk(y: Tensor) -> None:
    y.chunk(3, 1)[2].add_(1)


@pytest.mark.parametrize("write", [permuted, second_part, last_chunk])
def test_a_write_changes_the_part_that_the_model_changes(write: Callable[[Tensor], None]) -> None:
    def forward(x: Tensor) -> Tensor:
        y = x.clone()
        write(y)
        return y

    x = torch.randn(2, 5, 4)
    (found,) = execute(record(Function(forward), (x,)), (x,)).values()
    assert torch.equal(found, forward(x))
