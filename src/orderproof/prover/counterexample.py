"""Search for a counterexample: the smallest pair of runs whose outputs violate a law by more than rounding.

Lengths are tried from the shortest, and changes from the smallest, so the first counterexample is a small one. The
precision of the runs separates rounding from dependence (`tolerances.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from orderproof.prover.execution import relative_difference
from orderproof.prover.tolerances import FLOAT32_SUSPICION, FLOAT64_DIFFERENCE, FLOAT64_TO_FLOAT32_RATIO


@dataclass(frozen=True)
class Counterexample:
    """One pair of runs that violates the law, and the output element with the largest difference."""

    change: Any
    length: int
    index: tuple[int, ...]
    expected: float
    found: float
    float32: float  # relative difference
    float64: float


OutputPair = tuple[Tensor, Tensor]  # expected by the law, observed


class PairRunner(Protocol):
    """Runs a change at a length: the output that the law expects and the observed one; None if it cannot run."""

    def __call__(self, length: int, change: Any, *, double: bool) -> OutputPair | None:
        """Run it, in float64 if `double`."""


def find_counterexample(
    lengths: Iterable[int], changes: Callable[[int], Iterable[Any]], run_pair: PairRunner
) -> Counterexample | None:
    """The first change, at the shortest length, whose outputs differ by more than rounding; None if none does."""
    for length in lengths:
        for change in changes(length):
            single = run_pair(length, change, double=False)
            if single is None:
                break
            float32 = relative_difference(*single)
            if not float32 > FLOAT32_SUSPICION or float32 == float("inf"):
                continue
            double = run_pair(length, change, double=True)
            if double is None:
                continue
            float64 = relative_difference(*double)
            # A run that overflows or divides by zero shows no dependence.
            if math.isfinite(float64) and float64 > FLOAT64_DIFFERENCE and float64 > FLOAT64_TO_FLOAT32_RATIO * float32:
                return _counterexample(change, length, double, float32, float64)
    return None


def _counterexample(change: Any, length: int, pair: OutputPair, float32: float, float64: float) -> Counterexample:
    expected, found = pair
    flat = int(torch.argmax((expected - found).abs().flatten()))
    index = tuple(int(i) for i in torch.unravel_index(torch.tensor(flat), expected.shape))
    return Counterexample(change, length, index, float(expected[index]), float(found[index]), float32, float64)
