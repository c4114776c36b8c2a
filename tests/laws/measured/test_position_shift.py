"""The law of shifts: mixed layouts break it and the norm; absolute tables fail it; short tables are not run past."""

from __future__ import annotations

import pytest
import torch

from orderproof.auditing.decide.measurement import measure_law
from orderproof.blocks.transformer_adapter import CACHE_HEADROOM, tiny_decoder, tiny_encoder
from orderproof.encodings import Rotary
from orderproof.laws import find_law
from orderproof.laws.measured import CachedCalls
from orderproof.laws.measured.position_shift import MAX_SHIFT, shifts
from orderproof.records.audit import Finding
from tests.laws.fixtures.position_shift import MixedLayouts


def shift(driver: object) -> Finding:
    law = find_law("position_shift")
    return measure_law(driver, law, CachedCalls(driver), kind="causal_lm")  # type: ignore[arg-type]


def test_planted_fault_is_no_rotation() -> None:
    x, positions = torch.ones(1, 1, 40, 8), torch.arange(40)
    norms = MixedLayouts(8).encode(x, positions, side="q").norm(dim=-1)
    right = Rotary(8).rotate(x, x, positions)[0].norm(dim=-1)
    assert torch.allclose(right, x.norm(dim=-1))
    assert float((norms - x.norm(dim=-1)).abs().max()) > 0.3


@pytest.mark.parametrize("name", ["learned", "sinusoidal"])
@pytest.mark.parametrize("made", [tiny_decoder, tiny_encoder])
def test_absolute_encoding_fails_and_nothing_is_expected_of_it(name: str, made: object) -> None:
    found = shift(made(name))  # type: ignore[operator]
    assert (found.verdict, found.expected, found.expectation_met) == ("refuted", "any", True)


def test_positions_stay_within_the_table_and_below_the_rounding_of_angles() -> None:
    bench = CachedCalls(tiny_decoder("learned"))
    assert max(shifts(bench)) + bench.default_length == CACHE_HEADROOM
    assert max(shifts(CachedCalls(tiny_decoder()))) == MAX_SHIFT
    bench.adapter.max_positions = bench.default_length
    assert shifts(bench) == []


def test_model_that_ignores_position_ids_is_not_said_to_obey() -> None:
    found = shift(tiny_decoder("none"))
    assert found.verdict == "undecided"
    assert "the positive control changed the output by only 0" in found.reason
