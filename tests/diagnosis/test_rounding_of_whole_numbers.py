"""Counts and masks in floating point are exact: measured rounding must not change them, or a router flips."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from orderproof.diagnosis.rounding_noise import PerturbedRounding

MASK = torch.tensor([1.0, 0.0, 1.0, 1.0, 0.0, 1.0])
VALUES = torch.linspace(0.1, 0.9, 6)
EXACT: dict[str, Callable[[], Tensor]] = {
    "queue": lambda: MASK.cumsum(0).sub(1).mul(MASK).long().double(),
    "one_hot": lambda: torch.nn.functional.one_hot(MASK.cumsum(0).long(), 6).float().sum(0),
    "product": lambda: (MASK[:, None] @ MASK[None] + 3.0).long().double(),
    "floor": lambda: (MASK * 2.0 + 1.0).floor().long().double(),
}
ROUNDED: dict[str, Callable[[], Tensor]] = {
    "fraction": lambda: VALUES.cumsum(0),
    "scaled": lambda: MASK * 0.3,
    "beyond the mantissa": lambda: (MASK * 2.0**24).cumsum(0).add(1.0),
    "large partial sums": lambda: torch.cat([MASK * 2.0**23, -MASK * 2.0**23]).sum() + MASK,
    "not a sum": lambda: torch.log(MASK + 2.0),
    "half": lambda: (MASK.to(torch.bfloat16) * 300.0).cumsum(0),
}


def _perturbed(run: Callable[[], Tensor]) -> Tensor:
    with PerturbedRounding(0):
        return run()


@pytest.mark.parametrize("name", EXACT)
def test_whole_numbers_are_exact(name: str) -> None:
    assert torch.equal(_perturbed(EXACT[name]), EXACT[name]())


@pytest.mark.parametrize("name", ROUNDED)
def test_everything_else_is_perturbed(name: str) -> None:
    assert not torch.equal(_perturbed(ROUNDED[name]), ROUNDED[name]())
