"""The number of calls of a model: what is known of it is not asked again, and runs stop where they decide."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from orderproof.auditing.decide.sandbox import MeasurementRun
from orderproof.diagnosis.rounding_noise import RoundingNoise
from orderproof.diagnosis.tolerances import CLEAR_DIFFERENCE, ROUNDING_RUNS
from orderproof.laws import find_law
from orderproof.laws.measured import MeasuredLaw
from orderproof.models import from_adapter
from orderproof.models.hf.adapter import HFAdapter
from tests.models.hf.adapters import tiny_adapter


def measured(*names: str) -> list[MeasuredLaw]:
    laws = [find_law(name) for name in names]
    assert all(isinstance(law, MeasuredLaw) for law in laws)
    return [law for law in laws if isinstance(law, MeasuredLaw)]


def test_copies_of_a_model_are_not_asked_again_which_arguments_they_take(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    accepts = HFAdapter._accepts_argument

    def counted(self: HFAdapter, name: str, build_value: Callable[[Tensor], Tensor]) -> bool:
        asked.append(name)
        return accepts(self, name, build_value)

    monkeypatch.setattr(HFAdapter, "_accepts_argument", counted)
    laws = measured("attention_pattern", "position_shift", "default_position_ids", "attention_backend")
    adapter = tiny_adapter("qwen2").cast_to(torch.bfloat16)  # comparisons of which are made in float32 too
    findings = list(MeasurementRun(from_adapter(adapter), laws).run_in_process(0))
    assert [finding.verdict for finding in findings] == ["held"] * len(laws)
    assert sorted(asked) == ["mask", "mask", "positions"]  # one of them for `needs_square_mask`


def rounding_run(rounds: list[int]) -> Callable[[], Tensor]:
    def run() -> Tensor:
        rounds.append(1)
        return torch.linspace(0, 1, 5) * 3

    return run


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_rounding_noise_takes_one_perturbed_run_where_it_leaves_no_doubt(factor: float) -> None:
    noise = RoundingNoise(rounding_run([])).of_a_difference()
    runs: list[int] = []
    RoundingNoise(rounding_run(runs)).of_a_difference(factor * CLEAR_DIFFERENCE * noise)
    assert len(runs) == (2 if factor > 1 else ROUNDING_RUNS + 1)


def test_rounding_noise_goes_on_for_a_smaller_difference() -> None:
    runs: list[int] = []
    noise = RoundingNoise(rounding_run(runs))
    first = noise.of_a_difference(1.0)
    assert len(runs) == 2
    assert noise.of_a_difference() >= first
    assert len(runs) == ROUNDING_RUNS + 1


def test_rounding_noise_compares_with_a_run_that_was_made_before() -> None:
    runs: list[int] = []
    run = rounding_run(runs)
    output = run()
    expected = RoundingNoise(rounding_run([])).of_a_difference()
    assert RoundingNoise(run, unperturbed=lambda: output).of_a_difference() == expected
    assert len(runs) == ROUNDING_RUNS + 1
