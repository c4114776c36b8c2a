"""Operators of torch whose code in C++ asks for sizes as numbers: no recording with open sizes, and a reason."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from orderproof import prove
from tests.function_module import Function


def products(x: Tensor) -> Tensor:
    return torch.kron(x, torch.ones(1, 1, 2))


def chosen(x: Tensor) -> Tensor:
    return torch.take_along_dim(x, torch.tensor([[[0, 1]]]), 2)


@pytest.mark.parametrize("function", [products, chosen])
def test_the_reason_names_the_line(function: Callable[[Tensor], Tensor]) -> None:
    theorem = prove(Function(function).eval(), "causal", inputs=torch.randn(2, 7, 4)).theorem
    assert theorem is not None
    assert not theorem.proved
    assert "needs the sizes as numbers, test_sizes_as_numbers.py:" in theorem.reason
