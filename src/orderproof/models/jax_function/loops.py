"""The loop of a scan, in the form in which a recording keeps a loop for every number of turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

MAX_STACKED = 4  # results of each turn, for a loop of open length


class Loop(nn.Module):
    """Runs a step for each turn, hands tensors on, and stacks the other results of the turns."""

    def forward(
        self, step: Callable[..., list[Any]], state: list[Tensor], entries: Sequence[Tensor], count: Any, stacked: int
    ) -> tuple[list[Tensor], list[Tensor]]:
        """The last state, and the stacked results."""
        if stacked > MAX_STACKED or not state:
            return self._unrolled(step, state, entries, count)
        if stacked:
            return self._stacking(step, state, entries, count, stacked)
        for k in range(count):
            (state,) = step(state, entries, k)
        return state, []

    def _stacking(
        self, step: Callable[..., list[Any]], state: list[Tensor], entries: Sequence[Tensor], count: Any, stacked: int
    ) -> tuple[list[Tensor], list[Tensor]]:
        first, second, third, fourth = [], [], [], []
        for k in range(count):
            found = _filled(step(state, entries, k))
            state = found[0]
            first.append(found[1])
            second.append(found[2])
            third.append(found[3])
            fourth.append(found[4])
        rows = []
        if stacked > 0:
            rows += [torch.stack(first)]
        if stacked > 1:
            rows += [torch.stack(second)]
        if stacked > 2:
            rows += [torch.stack(third)]
        if stacked > 3:
            rows += [torch.stack(fourth)]
        return state, rows

    def _unrolled(
        self, step: Callable[..., list[Any]], state: list[Tensor], entries: Sequence[Tensor], count: Any
    ) -> tuple[list[Tensor], list[Tensor]]:
        turns = []
        for k in range(int(count)):
            state, *results = step(state, entries, k)
            turns.append(results)
        return state, [torch.stack(column) for column in zip(*turns, strict=True)]


def _filled(found: list[Any]) -> list[Any]:
    """The state and as many results as a loop may stack; those that are missing are never read."""
    return [*found, *found[-1:] * (1 + MAX_STACKED - len(found))]
