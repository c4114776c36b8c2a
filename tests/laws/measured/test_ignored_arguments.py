"""The law of dead arguments: a setting never used is found; what vanishes in **kwargs is said, and no more."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, Self

import pytest
import torch
from torch import Tensor

from orderproof.adapter import ModelOutput
from orderproof.auditing.decide.measurement import measure_law
from orderproof.blocks.transformer_adapter import TransformerAdapter, tiny_decoder
from orderproof.laws import find_law
from orderproof.laws.measured import CachedCalls
from orderproof.laws.measured.ignored_arguments import spaced_position_ids
from orderproof.records.audit import Finding


def live(driver: TransformerAdapter) -> Finding:
    return measure_law(driver, find_law("ignored_arguments"), CachedCalls(driver), kind="causal_lm")  # type: ignore[arg-type]


class FixedBase(TransformerAdapter):
    """A base that is stored and never used."""

    def config_variants(self) -> Iterator[tuple[str, Self]]:
        yield "base", self.with_module(copy.deepcopy(self.module))


class Swallowing(TransformerAdapter):
    """Position ids vanish in keyword arguments."""

    supported_inputs = frozenset({"mask", "cache"})
    ignored_kwargs = frozenset({"positions"})

    def call(self, tokens: Tensor, **given: Any) -> ModelOutput:
        given.pop("positions", None)
        return super().call(tokens, **given)


class Constant(TransformerAdapter):
    """The same answer to everything."""

    def call(self, tokens: Tensor, **given: Any) -> ModelOutput:
        answer = super().call(tokens, **given)
        return ModelOutput(torch.ones_like(answer.output), answer.cache)


class Restless(Swallowing):
    """The same, with sums whose order changes from call to call."""

    calls = 0

    def call(self, tokens: Tensor, **given: Any) -> ModelOutput:
        type(self).calls += 1
        answer = super().call(tokens, **given)
        return ModelOutput(answer.output * (1 + 2e-7 * self.calls), answer.cache)


def test_setting_that_is_never_used_is_found_with_its_own_advice() -> None:
    found = live(tiny_decoder(of=FixedBase))
    assert (found.verdict, found.reason) == ("refuted", "base must change the output")
    assert found.remedy == "Read base where it is used, and not only where it is stored."
    assert found.witness is not None
    assert found.witness.expected_value == found.witness.actual_value


@pytest.mark.parametrize("of", [Swallowing, Restless])
def test_what_vanishes_in_keyword_arguments_is_said_and_not_held_against_it(of: type[TransformerAdapter]) -> None:
    found = live(tiny_decoder(of=of))
    assert found.verdict == "held"
    assert found.measurement is not None
    said = [trial.reason for trial in found.measurement.comparisons if trial.float32 is None]
    assert said == ["position ids: not named, and dropped in its **kwargs without an error"]


def test_model_that_answers_the_same_to_all_is_not_blamed() -> None:
    found = live(tiny_decoder(of=Constant))
    assert found.verdict == "undecided"
    assert "the positive control changed the output by only 0, so it is inconclusive" in found.reason


def test_model_without_encoding_is_not_blamed_for_its_position_ids() -> None:
    driver = tiny_decoder("none")
    assert live(driver).reason == "position ids must change the output"
    driver.has_positions = False
    assert live(driver).verdict == "held"  # by its mask


def test_model_that_takes_nothing_is_asked_nothing() -> None:
    driver = tiny_decoder("none")
    driver.supported_inputs = frozenset({"cache"})
    found = live(driver)
    assert (found.verdict, found.reason[:44]) == ("not_applicable", "it takes no position ids and no mask, and st")


@pytest.mark.parametrize("longest", [None, 40, 8])
def test_spread_positions_are_distinct_and_within_the_table(longest: int | None) -> None:
    driver = tiny_decoder()
    driver.max_positions = longest
    ids = spaced_position_ids(CachedCalls(driver))[0]
    assert len(ids.unique()) == len(ids) == driver.default_length
    assert longest is None or int(ids.max()) == longest - 1


@pytest.mark.parametrize("name", ["position_shift", "distinct_positions", "position_precision", "default_position_ids"])
def test_laws_of_positions_ask_nothing_of_a_model_without_them(name: str) -> None:
    driver = tiny_decoder("none")
    driver.has_positions = False
    found = measure_law(driver, find_law(name), CachedCalls(driver), kind="causal_lm")  # type: ignore[arg-type]
    assert (found.verdict, found.reason) == ("not_applicable", "it has no encoding of positions")
