"""A model that torch.compile has compiled is recorded without it, and the proof says so."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from orderproof import prove


def flipped(y: Tensor) -> Tensor:
    return torch.where(y.cumsum(1) > 1000.0, (y * 1).flip(1), y.cumsum(1))


class Compiled(nn.Module):
    """Is compiled by a backend that computes something else."""

    def __init__(self) -> None:
        super().__init__()
        self.call = torch.compile(
            lambda y: torch.where(y.cumsum(1) > 1000.0, (y * 1).flip(2), y.cumsum(1)),
            backend=lambda *_: lambda *tensors: (flipped(tensors[0]),),
            dynamic=False,
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.call(x)  # type: ignore[no-any-return]


def test_code_of_the_compiler_is_off_and_named() -> None:
    finding = prove(Compiled().eval(), "causal", inputs=torch.randn(2, 7, 6))
    assert any(text.startswith("torch.compile off") for text in finding.scope.assumptions)
