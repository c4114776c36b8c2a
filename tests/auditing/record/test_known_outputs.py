"""Runs on equal inputs are made once for all outputs and laws of a call."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from orderproof.auditing.api import audit_context, report_on_law
from orderproof.auditing.record.execution import MOST_KNOWN_NUMBERS, SubjectExecution
from orderproof.diagnosis.rounding_noise import RoundingNoise
from orderproof.models import from_module
from orderproof.recording.capture import capture


class Mixes(nn.Module):
    """A layer that shows the order of tokens, with some outputs that are alike."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(64, 64, generator=torch.Generator().manual_seed(0)))
        self.outputs = outputs

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        """Outputs [batch, token, width]."""
        mixed = torch.einsum("ij,bjd->bid", self.weight[: x.shape[1], : x.shape[1]], x)
        return {f"y{k}": mixed * (k + 1) for k in range(self.outputs)}


def _runs(outputs: int, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """How often the model is run for one law, and the number of findings."""
    runs = 0
    original = SubjectExecution._outputs_of_module

    def counted(self: SubjectExecution, *args: object) -> dict[str, Tensor]:
        nonlocal runs
        runs += 1
        return original(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(SubjectExecution, "_outputs_of_module", counted)
    context = audit_context(from_module(Mixes(outputs), (torch.randn(2, 7, 4),)))
    findings = report_on_law(context, "permutation").findings
    assert {f.verdict for f in findings} == {"refuted"}
    return runs, len(findings)


def test_a_second_output_of_a_model_in_one_dtype_needs_no_further_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    (runs, findings), (more_runs, more_findings) = _runs(1, monkeypatch), _runs(2, monkeypatch)
    assert (findings, more_findings) == (1, 2)
    assert more_runs == runs


def test_runs_are_remembered_by_the_values_of_their_inputs() -> None:
    execution = SubjectExecution(from_module(nn.Linear(4, 4), (torch.randn(2, 7, 4),)), None)
    x = torch.randn(2, 7, 4)
    first = execution.known_outputs((x,))
    assert execution.known_outputs((x.clone(),)) is first
    assert execution.known_outputs((x.double(),), "float64 copy") is not first
    x[0, 0, 0] += 1
    changed = execution.known_outputs((x,))
    assert not torch.equal(*(next(iter(found.values())) for found in (first, changed)))


def test_large_outputs_are_forgotten() -> None:
    execution = SubjectExecution(from_module(nn.Linear(4, 4), (torch.randn(2, 7, 4),)), None)
    small = execution.known_outputs((torch.zeros(1, 1, 4),))
    execution.known_outputs((torch.zeros(1, MOST_KNOWN_NUMBERS // 4 + 1, 4),))
    assert execution.known_outputs((torch.zeros(1, 1, 4),)) is not small


@pytest.mark.parametrize("narrow", [False, True])
def test_a_run_with_a_part_in_a_narrower_dtype_is_not_exact(narrow: bool) -> None:
    def run() -> Tensor:
        x = torch.linspace(0, 1, 5, dtype=torch.float64) * 3
        return x.bfloat16().mul(3).double() if narrow else x

    exact: list[bool] = []
    noise = RoundingNoise(run, torch.float64, exact.append).of_a_difference()
    assert exact == ([] if narrow else [True])
    assert (noise > 1e-4) == narrow


@pytest.mark.parametrize("whole", [False, True])
def test_a_run_that_is_exact_for_its_numbers_only_says_so(whole: bool) -> None:
    mask = torch.tensor([1.0, 0.0, 1.0])

    def run() -> Tensor:
        return (mask.cumsum(0) if whole else mask).double() * 0.3

    exact: list[bool] = []
    RoundingNoise(run, torch.float64, exact.append).of_a_difference()
    assert exact == [not whole]


class _Cubes(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x**3


def _execution() -> tuple[SubjectExecution, Tensor]:
    subject, x = from_module(_Cubes(), (torch.randn(2, 7, 4),)), torch.randn(2, 7, 4)
    return SubjectExecution(subject, capture(subject.module, (x,))), x


def test_a_run_that_was_noted_is_known_by_its_inputs_until_outputs_are_forgotten() -> None:
    execution, x = _execution()
    execution.note_rounds_nowhere((x,), "float64 copy", False)
    assert execution.rounds_nowhere((x.clone(),), "float64 copy")
    assert not execution.rounds_nowhere((x + 1,), "float64 copy")
    assert not execution.rounds_nowhere((x,), "float64 graph")
    execution.forget_outputs()
    assert not execution.rounds_nowhere((x,), "float64 copy")


def test_operators_that_round_nowhere_do_so_for_all_inputs_of_the_recorded_call() -> None:
    execution, x = _execution()
    execution.note_rounds_nowhere((x,), "float64 copy", True)
    assert execution.rounds_nowhere((x + 1,), "float64 copy")
    assert not execution.rounds_nowhere((x[:, :3],), "float64 copy")
    unrecorded = SubjectExecution(execution.subject, None)
    unrecorded.note_rounds_nowhere((x,), "float64 copy", True)
    assert not unrecorded.rounds_nowhere((x + 1,), "float64 copy")
