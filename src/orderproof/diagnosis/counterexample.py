"""Search for a counterexample: the smallest pair of runs whose outputs violate a law by more than rounding.

Lengths are tried from the shortest, and changes from the smallest, so the first counterexample is a small one. The
precision of the runs separates rounding from dependence (`tolerances.py`): a difference of the model itself is repeated
on a float64 copy of it. If there is none, or a part of it computes in a narrower dtype, the recorded graph is run in
float64. Without that too, the difference is compared with the measured rounding error of the model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import torch
from torch import Tensor

from orderproof.diagnosis.tolerances import (
    FLOAT32_DIFFERENCE,
    FLOAT32_SUSPICION,
    FLOAT64_DIFFERENCE,
    FLOAT64_TO_FLOAT32_RATIO,
    ROUNDING_FACTOR,
)
from orderproof.recording.execution import differing_parts, relative_difference

# The model in its own dtype; its copy in float64; the recorded graph in float64.
Executor = Literal["model", "float64 copy", "float64 graph"]
FLOAT64_EXECUTORS: tuple[Executor, ...] = ("float64 copy", "float64 graph")


@dataclass(frozen=True)
class Counterexample:
    """One pair of runs that violates the law, and the output element with the largest difference."""

    change: Any
    length: int
    index: tuple[int, ...]
    expected: float
    found: float
    float32: float  # relative difference of the model itself
    float64: float | None  # None if the model itself is the evidence
    executor: Executor  # of the runs that are the evidence
    noise: float  # the rounding error of these runs


OutputPair = tuple[Tensor, Tensor]  # expected by the law, observed


class PairRunner(Protocol):
    """Runs a change at a length."""

    def pair(self, length: int, change: Any, executor: Executor) -> OutputPair | None:
        """The output that the law expects and the observed one; None if it cannot be run so."""

    def noise(self, length: int, change: Any, executor: Executor, size: float) -> float:
        """The relative rounding error of these two runs, of which the outputs differ by `size`.

        Of the unchanged run alone if `change` is None, or if its rounding error explains a difference of this size.
        """

    def disagrees(self, executor: Executor, float32: float, float64: float) -> None:
        """Take notice that the model itself differs by far more than rounding, and this execution of it does not."""


def find_counterexample(
    lengths: Iterable[int], changes: Callable[[int], Iterable[Any]], runner: PairRunner, *, own_dtype: bool = False
) -> Counterexample | None:
    """The first change, at the shortest length, whose outputs differ by more than rounding; None if none does.

    `own_dtype`: where nothing can be run in float64, the model in its own dtype is evidence.
    """
    for length in lengths:
        for change in changes(length):
            pair = runner.pair(length, change, "model")
            if pair is None:
                break
            size = relative_difference(*pair)
            if not size > FLOAT32_SUSPICION or size == float("inf"):
                continue
            found = _in_float64(runner, length, change, size)
            if found == "unknown" and own_dtype:
                noise = runner.noise(length, change, "model", size)
                if size > max(FLOAT32_DIFFERENCE, ROUNDING_FACTOR * noise):
                    return _counterexample(change, length, pair, size, None, "model", noise)
            if isinstance(found, Counterexample):
                return found
    return None


def _in_float64(
    runner: PairRunner, length: int, change: Any, size: float
) -> Counterexample | Literal["rounding", "unknown"]:
    """The counterexample in float64, or whether float64 shows that the difference is rounding."""
    ran = False
    for executor in FLOAT64_EXECUTORS:
        pair = runner.pair(length, change, executor)
        float64 = math.inf if pair is None else relative_difference(*pair)
        # A run that overflows or divides by zero shows no dependence.
        if pair is None or not math.isfinite(float64):
            continue
        ran = True
        if float64 > FLOAT64_DIFFERENCE and float64 > FLOAT64_TO_FLOAT32_RATIO * size:
            # A part of the copy may compute in a narrower dtype: then the graph decides.
            noise = runner.noise(length, change, executor, float64)
            if float64 > ROUNDING_FACTOR * noise:
                return _counterexample(change, length, pair, size, float64, executor, noise)
        elif size <= ROUNDING_FACTOR * runner.noise(length, None, "model", size):
            return "rounding"
        else:
            runner.disagrees(executor, size, float64)
    return "rounding" if ran else "unknown"


def _counterexample(
    change: Any, length: int, pair: OutputPair, size: float, float64: float | None, executor: Executor, noise: float
) -> Counterexample:
    expected, found = differing_parts(*pair)
    flat = int(torch.argmax((expected - found).abs().flatten()))
    index = tuple(int(i) for i in torch.unravel_index(torch.tensor(flat), expected.shape))
    values = float(expected[index]), float(found[index])
    return Counterexample(change, length, index, *values, size, float64, executor, noise)
