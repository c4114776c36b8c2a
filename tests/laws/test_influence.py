"""The law `influence`: what must matter is asked too, and windows are composed over the layers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from orderproof.auditing.measure import measure_law
from orderproof.blocks.driving import TransformerDriver, decoder, encoder
from orderproof.driver import Answer, Driver, Sight
from orderproof.laws.measured import Bench, find
from orderproof.laws.measured.law import MeasuredLaw
from orderproof.record import Finding


def measured(driver: Driver) -> Finding:
    law = find("influence")
    assert isinstance(law, MeasuredLaw)
    return measure_law(driver, law, Bench(driver), kind="encoder")


class Window(TransformerDriver):
    """Says that each of its two layers has a window of four tokens."""

    stretches = (4,)
    window = 4

    def call(self, tokens: Tensor, **given: Any) -> Answer:
        place = torch.arange(tokens.shape[1])
        return Answer(self.module(tokens, mask=place > place.unsqueeze(-1) - self.window))

    def sees(self, tokens: int) -> Sight:
        distance = torch.arange(tokens).unsqueeze(-1) - torch.arange(tokens)
        seen = (distance >= 0) & (distance <= 2 * (4 - 1))
        return Sight(seen, seen)


class Silent(TransformerDriver):
    """Says that every token sees every other."""

    def __init__(self, module: object, *, causal: bool) -> None:
        super().__init__(module, causal=False)  # type: ignore[arg-type]
        for layer in self.module.stack.layers:
            layer.attention.causal = True  # type: ignore[union-attr]


def test_encoder_that_is_silently_causal_is_refuted() -> None:
    assert measured(encoder()).verdict == "held"
    found = measured(encoder(of=Silent))
    assert found.verdict == "refuted"
    assert found.reason == "a token that is in sight, replaced"
    assert "causal flag" in found.fix


@pytest.mark.parametrize(
    ("window", "reason"),
    [(3, "a token that is in sight, replaced"), (4, "2 comparisons"), (5, "a token that is out of sight, replaced")],
)
def test_window_that_is_one_token_off_is_refuted_either_way(window: int, reason: str) -> None:
    driver = decoder(of=Window)
    driver.window = window  # type: ignore[attr-defined]
    found = measured(driver)
    assert found.reason == reason
    assert found.verdict == ("held" if window == 4 else "refuted")


def test_what_does_not_matter_changes_no_bit() -> None:
    found = measured(decoder())
    assert found.deviation.float32 == 0.0
    assert found.measurement is not None
    assert [trial.what.split(",")[0] for trial in found.measurement.trials] == [
        "a token that is out of sight",
        "a token that is in sight",
    ]


def test_model_that_does_not_tell_is_not_asked() -> None:
    class Unknown(TransformerDriver):
        def sees(self, tokens: int) -> None:  # type: ignore[override]
            return None

    found = measured(encoder(of=Unknown))
    assert found.verdict == "not_applicable"
    assert found.reason == "its configuration does not tell which token sees which"
