"""Look for a witness: the smallest pair of runs whose outputs break a law by more than arithmetic allows.

Lengths are tried from the shortest up and changes from the smallest up, so the first witness found is a
small one. Rounding and dependence are told apart by the precision ladder: a rounding difference falls by
about 2**-29 from float32 to float64, a real one stays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from orderproof.prover.run import difference

SUSPICION = 1e-6  # a relative difference in float32 worth a second look
REAL = 1e-6  # a relative difference in float64 that no rounding explains (float32 inside a model reaches 1e-7)
SINGLE = 1e-3  # a relative difference in float32 that no rounding explains, where float64 cannot be run
STAYS = 0.1  # the share of the float32 difference that must remain in float64


@dataclass(frozen=True)
class Evidence:
    """One pair of runs that breaks the law."""

    change: Any
    length: int
    index: tuple[int, ...]
    expected: float
    found: float
    float32: float
    float64: float


Pair = tuple[Tensor, Tensor]  # what the law asks, what came


class Try(Protocol):
    """Runs a change at a length: the output the law asks for and the one that came; None where it cannot run."""

    def __call__(self, length: int, change: Any, *, double: bool) -> Pair | None:
        """Run it, in float64 when `double`."""


def search(lengths: Iterable[int], changes: Callable[[int], Iterable[Any]], pair: Try) -> Evidence | None:
    """The first change, at the shortest length, whose pair of outputs differs for real."""
    for length in lengths:
        for change in changes(length):
            single = pair(length, change, double=False)
            if single is None:
                break
            gap = difference(*single)
            if not gap > SUSPICION or gap == float("inf"):
                continue
            double = pair(length, change, double=True)
            if double is None:
                continue
            kept = difference(*double)
            # A run that overflows or divides by zero is evidence of nothing.
            if math.isfinite(kept) and kept > REAL and kept > STAYS * gap:
                return _evidence(change, length, double, gap, kept)
    return None


def _evidence(change: Any, length: int, pair: Pair, gap: float, kept: float) -> Evidence:
    expected, found = pair
    flat = int(torch.argmax((expected - found).abs().flatten()))
    index = tuple(int(i) for i in torch.unravel_index(torch.tensor(flat), expected.shape))
    return Evidence(change, length, index, float(expected[index]), float(found[index]), gap, kept)
