"""Operators of torch whose code in C++ asks for sizes as numbers: no recording with open sizes, and a reason."""

from __future__ import annotations

import torch
from torch import Tensor

from orderproof import prove
from tests.function_module import Function


def products(x: Tensor) -> Tensor:
    return torch.kron(x, torch.ones(1, 1, 2))


def test_the_reason_names_the_line() -> None:
    theorem = prove(Function(products).eval(), "causal", inputs=torch.randn(2, 7, 4)).theorem
    assert theorem is not None
    assert not theorem.proved
    assert "needs the sizes as numbers, test_sizes_as_numbers.py:" in theorem.reason
