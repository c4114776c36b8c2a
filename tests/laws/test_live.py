"""The law of dead arguments: a setting never used is found; what vanishes in **kwargs is said, and no more."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, Self

import pytest
import torch
from torch import Tensor

from orderproof.auditing.measure import measure_law
from orderproof.blocks.driving import TransformerDriver, decoder
from orderproof.driver import Answer
from orderproof.laws.measured import Bench, find
from orderproof.laws.measured.live import spread
from orderproof.record import Finding


def live(driver: TransformerDriver) -> Finding:
    return measure_law(driver, find("live"), Bench(driver), kind="causal_lm")  # type: ignore[arg-type]


class FixedBase(TransformerDriver):
    """A base that is stored and never used."""

    def altered(self) -> Iterator[tuple[str, Self]]:
        yield "base", self.with_module(copy.deepcopy(self.module))


class Swallowing(TransformerDriver):
    """Position ids vanish in keyword arguments."""

    takes = frozenset({"mask", "cache"})
    swallows = frozenset({"positions"})

    def call(self, tokens: Tensor, **given: Any) -> Answer:
        given.pop("positions", None)
        return super().call(tokens, **given)


class Constant(TransformerDriver):
    """The same answer to everything."""

    def call(self, tokens: Tensor, **given: Any) -> Answer:
        answer = super().call(tokens, **given)
        return Answer(torch.ones_like(answer.output), answer.cache)


class Restless(Swallowing):
    """The same, with sums whose order changes from call to call."""

    calls = 0

    def call(self, tokens: Tensor, **given: Any) -> Answer:
        type(self).calls += 1
        answer = super().call(tokens, **given)
        return Answer(answer.output * (1 + 2e-7 * self.calls), answer.cache)


def test_setting_that_is_never_used_is_found_with_its_own_advice() -> None:
    found = live(decoder(of=FixedBase))
    assert (found.verdict, found.reason) == ("refuted", "base must change the output")
    assert found.fix == "Read base where it is used, and not only where it is stored."
    assert found.witness is not None
    assert found.witness.expected == found.witness.found


@pytest.mark.parametrize("of", [Swallowing, Restless])
def test_what_vanishes_in_keyword_arguments_is_said_and_not_held_against_it(of: type[TransformerDriver]) -> None:
    found = live(decoder(of=of))
    assert found.verdict == "held"
    assert found.measurement is not None
    said = [trial.reason for trial in found.measurement.trials if trial.float32 is None]
    assert said == ["position ids: not named, and gone in its **kwargs without an error"]


def test_model_that_answers_the_same_to_all_is_not_blamed() -> None:
    found = live(decoder(of=Constant))
    assert found.verdict == "undecided"
    assert "the control moved it by 0 only: nothing can be told from it" in found.reason


def test_model_without_encoding_is_not_blamed_for_its_position_ids() -> None:
    driver = decoder("none")
    assert live(driver).reason == "position ids must change the output"
    driver.placed = False
    assert live(driver).verdict == "held"  # by its mask


def test_model_that_takes_nothing_is_asked_nothing() -> None:
    driver = decoder("none")
    driver.takes = frozenset({"cache"})
    found = live(driver)
    assert (found.verdict, found.reason[:44]) == ("not_applicable", "it takes no position ids and no mask, and st")


@pytest.mark.parametrize("longest", [None, 40, 8])
def test_spread_positions_are_distinct_and_within_the_table(longest: int | None) -> None:
    driver = decoder()
    driver.longest = longest
    ids = spread(Bench(driver))[0]
    assert len(ids.unique()) == len(ids) == driver.length
    assert longest is None or int(ids.max()) == longest - 1


@pytest.mark.parametrize("name", ["shift", "distinct", "precision", "default_positions"])
def test_laws_of_positions_ask_nothing_of_a_model_without_them(name: str) -> None:
    driver = decoder("none")
    driver.placed = False
    found = measure_law(driver, find(name), Bench(driver), kind="causal_lm")  # type: ignore[arg-type]
    assert (found.verdict, found.reason) == ("not_applicable", "it has no encoding of positions")
