"""Grounds that are looked at in numbers, in float64.

A difference between two runs that is far beyond rounding settles that something is *not* the same: one example is
enough, and it is a witness as the prover's are. That two runs agree to rounding shows something and proves nothing:
it is never more than *shown*.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from orderproof.claims.bench import Bench
from orderproof.claims.claim import Make, Outcome
from orderproof.record import Deviation
from orderproof.report import words

ROUNDING = 1e-11  # relative, in float64, of a few layers a few dozen features wide
REAL = 1e-6  # relative, in float64: no rounding


def apart(first: Tensor, second: Tensor) -> float:
    """The largest difference, relative to the largest value."""
    return float((first - second).abs().max() / first.abs().max())


def judged(gap: float, evidence: tuple[str, ...]) -> Outcome:
    """The same to rounding, really different, or neither."""
    found: Any = "shown" if gap <= ROUNDING else "refuted" if gap >= REAL else "undecided"
    return Outcome(found=found, method="numbers", evidence=evidence, deviation=Deviation(float64=gap))


def rows_swapped(x: Tensor) -> Tensor:
    """The same rows, the first two of them exchanged."""
    return x[:, [1, 0, *range(2, x.shape[1])]]


@torch.no_grad()
def unchanged(make: Make, bench: Bench) -> Outcome:
    """Whether the output, as it lies there, is the same after two rows of the input were exchanged."""
    module, x = made_in_float64(make)
    first, second = module(x), module(rows_swapped(x))
    gap = apart(first, second)
    at = tuple(int(i) for i in torch.unravel_index((first - second).abs().argmax(), first.shape))
    lines = (
        f"rows 0 and 1 exchanged: the output differs by {words.size(gap)}",
        f"output{list(at)} was {words.number(float(first[at]))} and is {words.number(float(second[at]))}",
    )
    return judged(gap, lines)


def made_in_float64(make: Make) -> tuple[nn.Module, Tensor]:
    """The module and its first example input, in float64 where they have fractions."""
    module, (x, *_) = made(make)
    return module.double(), x.double() if x.is_floating_point() else x


def made(make: Make) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """The module and its example inputs."""
    module, inputs = make()
    return module.eval(), inputs if isinstance(inputs, tuple) else (inputs,)
