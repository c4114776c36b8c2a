"""Models whose state cannot be restored between runs: no difference of the state is a counterexample."""

from __future__ import annotations

import itertools
import time

import pytest
import torch
from torch import Tensor, nn

from orderproof import prove

INPUTS = torch.randn(2, 7, 6, generator=torch.Generator().manual_seed(0))


class Scaled(nn.Module):
    """A causal sum, divided by a number that follows from earlier calls or from chance."""

    def __init__(self, *, leaks: bool = False) -> None:
        super().__init__()
        self.map, self.leaks = nn.Linear(6, 6), leaks
        self.register_buffer("step", torch.ones(1))
        self.numbers = itertools.count(1)

    def forward(self, x: Tensor) -> Tensor:
        y = self.map(x)
        return (y.flip(1) if self.leaks else y).cumsum(1) / self.divisor()

    def divisor(self) -> Tensor | float:
        raise NotImplementedError


class AssignedData(Scaled):
    def divisor(self) -> Tensor:
        self.step.data = self.step.data + 1
        return self.step


class IteratorInC(Scaled):
    def divisor(self) -> float:
        return next(self.numbers)


class Clock(Scaled):
    def divisor(self) -> float:
        return time.perf_counter() % 10 + 1


class Counted(Scaled):
    def divisor(self) -> Tensor:
        self.step += 1
        return self.step


@pytest.mark.parametrize("kind", [AssignedData, IteratorInC, Clock])
def test_a_difference_of_state_refutes_no_law(kind: type[Scaled]) -> None:
    assert prove(kind(), "causal", inputs=INPUTS).verdict == "undecided"


@pytest.mark.parametrize("kind", [IteratorInC, Clock])
def test_the_reason_names_the_state(kind: type[Scaled]) -> None:
    reason = prove(kind(leaks=True), "causal", inputs=INPUTS).reason
    assert reason.endswith("two runs on equal inputs give other outputs, by state that calls change or by chance")


@pytest.mark.parametrize("kind", [AssignedData, Counted])
def test_state_that_can_be_restored_hides_no_violation(kind: type[Scaled]) -> None:
    finding = prove(kind(leaks=True), "causal", inputs=INPUTS)
    assert finding.verdict == "refuted"
    assert finding.witness is not None


def test_a_proof_that_runs_contradict_by_a_replaced_parameter_names_the_state() -> None:
    class Shrinking(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.map = nn.Linear(6, 6)

        def forward(self, x: Tensor) -> Tensor:
            self.map.weight = nn.Parameter(self.map.weight * 0.9)
            y: Tensor = self.map(x).cumsum(1)
            return y

    finding = prove(Shrinking(), "causal", inputs=INPUTS)
    assert finding.verdict == "undecided"
    assert "state" in finding.reason
    assert "error in the prover" not in finding.reason
