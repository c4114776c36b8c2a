"""How a trial of sides that must differ is judged: what is rounding, what is small and real, what cannot be told."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from orderproof.auditing.measure import measure_law
from orderproof.blocks.driving import decoder
from orderproof.laws.measured import Bench, MeasuredLaw, Noted, Sides, Trial, find
from orderproof.record import Finding

ONES = torch.ones(3)


@dataclasses.dataclass(frozen=True)
class Stub(MeasuredLaw):
    """A law whose trials are given: by how much the sides differ in float32, and in float64."""

    gaps: tuple[tuple[float, float | None], ...] = ()
    moved: float = 1.0
    agreeing: tuple[float, ...] = ()

    def trials(self, bench: Bench) -> Iterator[Trial]:
        for number, (single, double) in enumerate(self.gaps):
            yield Trial(f"must {number}", lambda b, s=single, d=double: _sides(b, s, d), must_differ=True)
        for number, gap in enumerate(self.agreeing):
            yield Trial(f"may not {number}", lambda b, g=gap: Noted(ONES, ONES + g, "a note"))

    def control(self, bench: Bench) -> Sides:
        return ONES, ONES + self.moved


def _sides(bench: Bench, single: float, double: float | None) -> Sides:
    if bench.double and double is None:
        raise RuntimeError("no float64")
    gap = double if bench.double and double is not None else single
    return ONES.double(), ONES.double() + gap


def judged(*gaps: tuple[float, float | None], moved: float = 1.0, agreeing: tuple[float, ...] = ()) -> Finding:
    law = find("live")
    assert isinstance(law, MeasuredLaw)
    given = {f.name: getattr(law, f.name) for f in dataclasses.fields(MeasuredLaw)}
    driver = decoder()
    return measure_law(driver, Stub(**given, gaps=gaps, moved=moved, agreeing=agreeing), Bench(driver), kind="encoder")


@pytest.mark.parametrize(
    ("single", "double", "verdict"),
    [
        (0.1, None, "held"),  # float64 is not asked
        (0.0, 0.0, "refuted"),
        (1e-6, 1e-15, "refuted"),  # rounding of two ways to the same numbers
        (5e-5, 5e-5, "held"),  # small, and real
        (0.0, None, "refuted"),
        (1e-7, None, "undecided"),
        (1e-6, 1e-8, "undecided"),
        (0.0, 1e-3, "undecided"),
    ],
)
def test_sides_that_must_differ(single: float, double: float | None, verdict: str) -> None:
    found = judged((single, double))
    assert found.verdict == verdict, found.reason


def test_no_change_says_nothing_of_a_model_that_nothing_moves() -> None:
    found = judged((0.0, 0.0), moved=1e-4)
    assert found.verdict == "undecided"
    assert found.reason.startswith("must 0, but the control moved it by 0.0001 only")


@pytest.mark.parametrize(
    ("gap", "moved", "verdict"), [(1e-7, 3e-3, "held"), (5e-5, 3e-3, "undecided"), (0.0, 9e-4, "undecided")]
)
def test_weak_control_is_held_against_float64(gap: float, moved: float, verdict: str) -> None:
    found = judged(agreeing=(gap,), moved=moved)
    assert found.verdict == verdict, found.reason


def test_difference_where_there_must_be_none_decides_before_the_want_of_one() -> None:
    found = judged((0.0, 0.0), agreeing=(0.5,), moved=0.0)
    assert (found.verdict, found.reason) == ("refuted", "may not 0: a note")


def test_outputs_of_other_shapes_differ() -> None:
    law = judged((0.1, None))
    assert law.verdict == "held"

    def shaped(bench: Bench) -> tuple[Tensor, Tensor]:
        del bench
        return torch.ones(2), torch.ones(3)

    driver = decoder()
    trial = Trial("shapes", shaped, must_differ=True)
    given = {f.name: getattr(find("live"), f.name) for f in dataclasses.fields(MeasuredLaw)}

    class Shapes(Stub):
        def trials(self, bench: Bench) -> Iterator[Trial]:
            yield trial

    assert measure_law(driver, Shapes(**given), Bench(driver), kind="encoder").verdict == "held"
