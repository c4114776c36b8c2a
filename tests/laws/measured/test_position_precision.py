"""The law of precision: cast frequencies and positions are found, honest rounding is not, and its power is asked."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from orderproof import cast_on_use
from orderproof.adapter import ModelAdapter, ModelOutput
from orderproof.auditing.decide.measurement import measure_law
from orderproof.blocks.transformer_adapter import TransformerAdapter, tiny_decoder, tiny_encoder
from orderproof.laws import find_law
from orderproof.laws.measured import CachedCalls
from orderproof.laws.measured.position_precision import shifts
from orderproof.models import load
from orderproof.records.audit import Finding
from tests.laws.fixtures.position_precision import RoundedFrequencies


def precision(driver: ModelAdapter) -> Finding:
    return measure_law(driver, find_law("position_precision"), CachedCalls(driver), kind="causal_lm")  # type: ignore[arg-type]


def broken(found: Finding) -> list[str]:
    assert found.measurement is not None
    return [trial.description for trial in found.measurement.comparisons if trial.float32]


def test_a_model_whose_float64_copy_counts_as_large_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = tiny_decoder()
    size = sum(p.numel() * p.element_size() for p in driver.module.parameters())
    monkeypatch.setattr(cast_on_use, "LARGE_MODEL", size * 3 // 2)
    assert precision(driver).verdict == "held"


class HalfPositions(TransformerAdapter):
    """Positions that go through float16 where autocast is on."""

    def call(self, tokens: Tensor, *, positions: Tensor | None = None, **kwargs: Any) -> ModelOutput:
        if positions is not None and torch.is_autocast_enabled("cpu"):
            positions = positions.bfloat16().long()
        return super().call(tokens, positions=positions, **kwargs)


def test_frequencies_cast_with_the_weights_are_found_in_the_dtype_that_rounds_them() -> None:
    found = precision(tiny_encoder(RoundedFrequencies(8)))
    assert broken(found) == [f"positions up to 4095 {words}" for words in ("in bfloat16", "under autocast to bfloat16")]
    assert "near the start" in found.reason


def test_model_in_use_in_bfloat16_is_compared_with_recomputed_frequencies() -> None:
    rounded, honest = tiny_decoder(RoundedFrequencies(8)), tiny_decoder()
    for driver in (rounded, honest):
        driver.module.to(torch.bfloat16)
        driver.sample_tokens = _narrow(driver.sample_tokens)  # type: ignore[method-assign]
    assert precision(honest).verdict == "held"
    assert broken(precision(rounded)) == ["positions up to 4095 in bfloat16"]


def _narrow(draw: Any) -> Any:
    return lambda *kwargs: draw(*kwargs).to(torch.bfloat16)


def test_positions_rounded_under_autocast_are_found_there() -> None:
    assert broken(precision(tiny_decoder(of=HalfPositions))) == ["positions up to 4095 under autocast to bfloat16"]


def test_model_that_ignores_positions_is_not_said_to_be_precise() -> None:
    found = precision(tiny_decoder("none"))
    assert (found.verdict, found.reason) == (
        "undecided",
        "positions rounded to bfloat16 would not change the output by more than rounding",
    )


def test_places_are_odd_and_within_reach() -> None:
    assert all(place % 2 and place + 7 + 1 < 4096 for place in shifts(4096, 7))
    assert max(shifts(4096, 7)) > 4000
    assert shifts(9, 7) == []


@pytest.mark.parametrize(("how", "verdict"), [("cast", "refuted"), ("loaded", "held")])
def test_llama_cast_to_bfloat16_has_rounded_frequencies_and_llama_loaded_in_it_has_not(how: str, verdict: str) -> None:
    made = load("arch:llama", tiny=True).build_adapter
    assert made is not None
    driver = made()
    narrow = (
        driver.loaded_in(torch.bfloat16) if how == "loaded" else driver.with_module(driver.module.to(torch.bfloat16))
    )
    assert precision(narrow).verdict == verdict


@pytest.mark.parametrize(("rounded", "verdict"), [(False, "held"), (True, "refuted")])
def test_frequencies_that_depend_on_the_longest_call_are_not_imprecise(rounded: bool, verdict: str) -> None:
    rope = '{"rope_theta":10000.0,"rope_type":"dynamic","factor":4.0}'
    made = load(f"arch:llama?rope_parameters={rope}", tiny=True).build_adapter
    assert made is not None
    driver = made()
    if rounded:
        driver.module.rotary_emb.register_forward_pre_hook(
            lambda module, args, kwargs: (args, {**kwargs, "position_ids": kwargs["position_ids"].bfloat16().long()}),
            with_kwargs=True,
        )
    assert precision(driver).verdict == verdict
