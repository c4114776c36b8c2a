"""The law of shifts: mixed layouts break it and the norm; absolute tables fail it; short tables are not run past."""

from __future__ import annotations

import pytest
import torch

from orderproof.auditing.measure import measure_law
from orderproof.blocks.driving import ROOM, decoder, encoder
from orderproof.encodings import Rotary
from orderproof.laws.measured import Bench, find
from orderproof.laws.measured.shift import FARTHEST, MixedLayouts, constants
from orderproof.record import Finding


def shift(driver: object) -> Finding:
    law = find("shift")
    return measure_law(driver, law, Bench(driver), kind="causal_lm")  # type: ignore[arg-type]


def test_planted_fault_is_no_rotation() -> None:
    x, positions = torch.ones(1, 1, 40, 8), torch.arange(40)
    norms = MixedLayouts(8).turned(x, positions, side="q").norm(dim=-1)
    right = Rotary(8).rotate(x, x, positions)[0].norm(dim=-1)
    assert torch.allclose(right, x.norm(dim=-1))
    assert float((norms - x.norm(dim=-1)).abs().max()) > 0.3


@pytest.mark.parametrize("name", ["learned", "sinusoidal"])
@pytest.mark.parametrize("made", [decoder, encoder])
def test_absolute_encoding_fails_and_nothing_is_expected_of_it(name: str, made: object) -> None:
    found = shift(made(name))  # type: ignore[operator]
    assert (found.verdict, found.expected, found.met) == ("refuted", "any", True)


def test_positions_stay_within_the_table_and_below_the_rounding_of_angles() -> None:
    bench = Bench(decoder("learned"))
    assert max(constants(bench)) + bench.length == ROOM
    assert max(constants(Bench(decoder()))) == FARTHEST
    bench.driver.longest = bench.length
    assert constants(bench) == []


def test_model_that_ignores_position_ids_is_not_said_to_obey() -> None:
    found = shift(decoder("none"))
    assert found.verdict == "undecided"
    assert "the control moved it by 0 only" in found.reason
