"""The law of range: clamps, wraps and NaN past the length are found by ids and by length; an error is an answer."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from orderproof.adapter import ModelOutput
from orderproof.auditing.decide.measurement import measure_law
from orderproof.auditing.explain.notes import notes_of_comparisons
from orderproof.blocks.transformer_adapter import TransformerAdapter, tiny_decoder, tiny_encoder
from orderproof.laws import find_law
from orderproof.laws.measured import CachedCalls
from orderproof.records.audit import Finding
from tests.laws.fixtures.context_length import EXAMPLE_LENGTH, ClampsPositions


def ranged(driver: TransformerAdapter, *, ids: bool = True) -> Finding:
    driver.config_max_positions = driver.config_max_positions or EXAMPLE_LENGTH
    if not ids:
        driver.supported_inputs = driver.supported_inputs - {"positions"}
    return measure_law(driver, find_law("context_length"), CachedCalls(driver), kind="encoder")  # type: ignore[arg-type]


def broken(found: Finding) -> list[str]:
    assert found.measurement is not None
    failed = [t for t in found.measurement.comparisons if t.reason and t.float32 is not None]
    return [trial.description for trial in failed]


class Placing(TransformerAdapter):
    """Positions are those that it says, before it calls."""

    def placed_at(self, positions: Tensor) -> Tensor:
        raise NotImplementedError

    def call(self, tokens: Tensor, *, positions: Tensor | None = None, **kwargs: Any) -> ModelOutput:
        if positions is None:
            positions = torch.arange(tokens.shape[1]).expand(tokens.shape[:2])
        return super().call(tokens, positions=self.placed_at(positions), **kwargs)


class Wrapped(Placing):
    """Positions restart past the stated length."""

    def placed_at(self, positions: Tensor) -> Tensor:
        return positions % EXAMPLE_LENGTH


class Refusing(Placing):
    """Positions past the stated length are an error."""

    def placed_at(self, positions: Tensor) -> Tensor:
        if int(positions.max()) >= EXAMPLE_LENGTH:
            raise ValueError(f"expected positions below {EXAMPLE_LENGTH}")
        return positions


class ClampedByDefault(TransformerAdapter):
    """Positions that nobody states stop at the stated length."""

    def call(self, tokens: Tensor, *, positions: Tensor | None = None, **kwargs: Any) -> ModelOutput:
        if positions is None:
            positions = torch.arange(tokens.shape[1]).expand(tokens.shape[:2]).clamp(max=EXAMPLE_LENGTH - 1)
        return super().call(tokens, positions=positions, **kwargs)


class Uninitialised(TransformerAdapter):
    """Past the stated length there is what was in memory."""

    def call(self, tokens: Tensor, *, positions: Tensor | None = None, **kwargs: Any) -> ModelOutput:
        answer = super().call(tokens, positions=positions, **kwargs)
        last = tokens.shape[1] - 1 if positions is None else int(positions.max())
        return ModelOutput(answer.output * float("nan") if last >= EXAMPLE_LENGTH else answer.output, answer.cache)


# Without ids a causal model hides it: its later tokens notice an exchange without any positions.
@pytest.mark.parametrize(("made", "ids"), [(tiny_decoder, True), (tiny_encoder, True), (tiny_encoder, False)])
@pytest.mark.parametrize("of", [ClampsPositions, Wrapped])
@pytest.mark.parametrize("name", ["rotary", "sinusoidal"])
def test_clamped_and_wrapped_positions_are_found_by_ids_and_by_length(made: Any, ids: bool, of: Any, name: str) -> None:
    assert ranged(made(name, of=of), ids=ids).verdict == "refuted"


@pytest.mark.parametrize(("made", "skipped"), [(tiny_decoder, 9), (tiny_encoder, 11)])
def test_error_is_an_answer(made: Any, skipped: int) -> None:
    found = ranged(made(of=Refusing))
    assert (found.verdict, found.reason) == ("held", f"2 comparisons, {skipped} more could not be made")


def test_nan_is_a_violation_and_not_a_doubt() -> None:
    found = ranged(tiny_encoder(of=Uninitialised))
    assert found.verdict == "refuted"
    assert f"position {EXAMPLE_LENGTH}: finite output" in broken(found)
    assert f"{EXAMPLE_LENGTH + 1} tokens: finite output" in broken(found)


@pytest.mark.parametrize("name", ["alibi", "t5", "learned", "sinusoidal", "kerple"])
@pytest.mark.parametrize("made", [tiny_decoder, tiny_encoder])
@pytest.mark.parametrize("ids", [True, False])
def test_extension_saturation_and_buckets_are_no_violation(name: str, made: Any, ids: bool) -> None:
    assert ranged(made(name), ids=ids).verdict == "held"


def test_two_ways_to_the_same_positions_must_agree_past_the_end() -> None:
    found = ranged(tiny_decoder(of=ClampedByDefault))
    assert broken(found) == [f"{2 * EXAMPLE_LENGTH} tokens with explicit position ids"]


def test_model_without_order_is_not_blamed() -> None:
    assert broken(ranged(tiny_encoder("none"))) == []


class Latents(TransformerAdapter):
    """A fixed number of outputs, whatever the number of tokens: latents that read them."""

    def call(self, tokens: Tensor, *, positions: Tensor | None = None, **kwargs: Any) -> ModelOutput:
        answer = super().call(tokens, positions=positions, **kwargs)
        return ModelOutput(answer.output.mean(1, keepdim=True).expand(-1, EXAMPLE_LENGTH - 1, -1), answer.cache)


def test_a_fixed_number_of_latents_is_no_cut() -> None:
    found = ranged(tiny_encoder(of=Latents), ids=False)
    assert not [text for text in broken(found) if "an output for each" in text]


class RaisesPastTheEnd(TransformerAdapter):
    def call(self, tokens: Tensor, *, positions: Tensor | None = None, **options: Any) -> ModelOutput:
        if tokens.shape[1] > EXAMPLE_LENGTH or (positions is not None and int(positions.max()) >= EXAMPLE_LENGTH):
            raise RuntimeError("no position there")
        return super().call(tokens, positions=positions, **options)


def test_an_error_past_the_end_is_no_fault_and_no_note() -> None:
    found = ranged(tiny_encoder("rotary", of=RaisesPastTheEnd))
    assert found.measurement is not None
    reasons = {t.reason for t in found.measurement.comparisons if t.float32 is None}
    assert reasons == {"RuntimeError: no position there"}
    assert not list(notes_of_comparisons(found))
