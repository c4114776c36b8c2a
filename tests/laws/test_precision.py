"""The law of precision: cast frequencies and positions are found, honest rounding is not, and its power is asked."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from orderproof.auditing.measure import measure_law
from orderproof.blocks.driving import TransformerDriver, decoder, encoder
from orderproof.driver import Answer
from orderproof.laws.measured import Bench, find
from orderproof.laws.measured.precision import RoundedFrequencies, starts
from orderproof.record import Finding


def precision(driver: TransformerDriver) -> Finding:
    return measure_law(driver, find("precision"), Bench(driver), kind="causal_lm")  # type: ignore[arg-type]


def broken(found: Finding) -> list[str]:
    assert found.measurement is not None
    return [trial.what for trial in found.measurement.trials if trial.float32]


class HalfPositions(TransformerDriver):
    """Positions that go through float16 where autocast is on."""

    def call(self, tokens: Tensor, *, positions: Tensor | None = None, **given: Any) -> Answer:
        if positions is not None and torch.is_autocast_enabled("cpu"):
            positions = positions.bfloat16().long()
        return super().call(tokens, positions=positions, **given)


def test_frequencies_cast_with_the_weights_are_found_in_the_dtype_that_rounds_them() -> None:
    found = precision(encoder(RoundedFrequencies(8)))
    assert broken(found) == [f"positions up to 4095 {words}" for words in ("in bfloat16", "under autocast to bfloat16")]
    assert "near the start" in found.reason


def test_model_in_use_in_bfloat16_is_held_against_frequencies_made_anew() -> None:
    rounded, honest = decoder(RoundedFrequencies(8)), decoder()
    for driver in (rounded, honest):
        driver.module.to(torch.bfloat16)
        driver.draw = _narrow(driver.draw)  # type: ignore[method-assign]
    assert precision(honest).verdict == "held"
    assert broken(precision(rounded)) == ["positions up to 4095 in bfloat16"]


def _narrow(draw: Any) -> Any:
    return lambda *given: draw(*given).to(torch.bfloat16)


def test_positions_rounded_under_autocast_are_found_there() -> None:
    assert broken(precision(decoder(of=HalfPositions))) == ["positions up to 4095 under autocast to bfloat16"]


def test_model_that_ignores_positions_is_not_said_to_be_precise() -> None:
    found = precision(decoder("none"))
    assert (found.verdict, found.reason) == (
        "undecided",
        "one position more or less changes nothing that rounding does not",
    )


def test_places_are_odd_and_within_reach() -> None:
    assert all(place % 2 and place + 7 + 1 < 4096 for place in starts(4096, 7))
    assert max(starts(4096, 7)) > 4000
    assert starts(9, 7) == []
