"""The law of range: clamps, wraps and NaN past the length are found by ids and by length; an error is an answer."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from orderproof.auditing.measure import measure_law
from orderproof.blocks.driving import TransformerDriver, decoder, encoder
from orderproof.driver import Answer
from orderproof.laws.measured import Bench, find
from orderproof.laws.measured.range import STATED, Clamped
from orderproof.record import Finding


def ranged(driver: TransformerDriver, *, ids: bool = True) -> Finding:
    driver.stated = driver.stated or STATED
    if not ids:
        driver.takes = driver.takes - {"positions"}
    return measure_law(driver, find("range"), Bench(driver), kind="encoder")  # type: ignore[arg-type]


def broken(found: Finding) -> list[str]:
    assert found.measurement is not None
    failed = [t for t in found.measurement.trials if t.reason and t.float32 is not None]
    return [trial.what for trial in failed]


class Placing(TransformerDriver):
    """Positions are those that it says, before it calls."""

    def placed_at(self, positions: Tensor) -> Tensor:
        raise NotImplementedError

    def call(self, tokens: Tensor, *, positions: Tensor | None = None, **given: Any) -> Answer:
        if positions is None:
            positions = torch.arange(tokens.shape[1]).expand(tokens.shape[:2])
        return super().call(tokens, positions=self.placed_at(positions), **given)


class Wrapped(Placing):
    """Positions start anew past the stated length."""

    def placed_at(self, positions: Tensor) -> Tensor:
        return positions % STATED


class Refusing(Placing):
    """Positions past the stated length are an error."""

    def placed_at(self, positions: Tensor) -> Tensor:
        if int(positions.max()) >= STATED:
            raise ValueError(f"expected positions below {STATED}")
        return positions


class ClampedByDefault(TransformerDriver):
    """Positions that nobody states stop at the stated length."""

    def call(self, tokens: Tensor, *, positions: Tensor | None = None, **given: Any) -> Answer:
        if positions is None:
            positions = torch.arange(tokens.shape[1]).expand(tokens.shape[:2]).clamp(max=STATED - 1)
        return super().call(tokens, positions=positions, **given)


class Uninitialised(TransformerDriver):
    """Past the stated length there is what was in memory."""

    def call(self, tokens: Tensor, *, positions: Tensor | None = None, **given: Any) -> Answer:
        answer = super().call(tokens, positions=positions, **given)
        last = tokens.shape[1] - 1 if positions is None else int(positions.max())
        return Answer(answer.output * float("nan") if last >= STATED else answer.output, answer.cache)


# Without ids a causal model hides it: its later tokens notice an exchange without any positions.
@pytest.mark.parametrize(("made", "ids"), [(decoder, True), (encoder, True), (encoder, False)])
@pytest.mark.parametrize("of", [Clamped, Wrapped])
@pytest.mark.parametrize("name", ["rotary", "sinusoidal"])
def test_clamped_and_wrapped_positions_are_found_by_ids_and_by_length(made: Any, ids: bool, of: Any, name: str) -> None:
    assert ranged(made(name, of=of), ids=ids).verdict == "refuted"


@pytest.mark.parametrize(("made", "skipped"), [(decoder, 9), (encoder, 11)])
def test_error_is_an_answer(made: Any, skipped: int) -> None:
    found = ranged(made(of=Refusing))
    assert (found.verdict, found.reason) == ("held", f"2 comparisons, {skipped} more could not be made")


def test_nan_is_a_violation_and_not_a_doubt() -> None:
    found = ranged(encoder(of=Uninitialised))
    assert found.verdict == "refuted"
    assert f"position {STATED} gives numbers" in broken(found)
    assert f"{STATED + 1} tokens give numbers" in broken(found)


@pytest.mark.parametrize("name", ["alibi", "t5", "learned", "sinusoidal", "kerple"])
@pytest.mark.parametrize("made", [decoder, encoder])
@pytest.mark.parametrize("ids", [True, False])
def test_extension_saturation_and_buckets_are_no_violation(name: str, made: Any, ids: bool) -> None:
    assert ranged(made(name), ids=ids).verdict == "held"


def test_two_ways_to_the_same_positions_must_agree_past_the_end() -> None:
    found = ranged(decoder(of=ClampedByDefault))
    assert broken(found) == [f"{2 * STATED} tokens give what they give at stated ids"]


def test_model_without_order_is_not_blamed() -> None:
    assert broken(ranged(encoder("none"))) == []
