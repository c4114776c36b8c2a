"""The law `attention_pattern`: what must matter is asked too, and windows are composed over the layers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from orderproof.adapter import AttentionPattern, ModelAdapter, ModelOutput
from orderproof.auditing.decide.measurement import measure_law
from orderproof.blocks.transformer_adapter import TransformerAdapter, tiny_decoder, tiny_encoder
from orderproof.laws import find_law
from orderproof.laws.measured import CachedCalls
from orderproof.laws.measured.measured_law import MeasuredLaw
from orderproof.records.audit import Finding


def measured(driver: ModelAdapter) -> Finding:
    law = find_law("attention_pattern")
    assert isinstance(law, MeasuredLaw)
    return measure_law(driver, law, CachedCalls(driver), kind="encoder")


class Window(TransformerAdapter):
    """Says that each of its two layers has a window of four tokens."""

    context_spans = (4,)
    window = 4

    def call(self, tokens: Tensor, **kwargs: Any) -> ModelOutput:
        place = torch.arange(tokens.shape[1])
        return ModelOutput(self.module(tokens, mask=place > place.unsqueeze(-1) - self.window))

    def attention_pattern(self, tokens: int) -> AttentionPattern:
        distance = torch.arange(tokens).unsqueeze(-1) - torch.arange(tokens)
        seen = (distance >= 0) & (distance <= 2 * (4 - 1))
        return AttentionPattern(seen, seen)


class Silent(TransformerAdapter):
    """Says that every token sees every other."""

    def __init__(self, module: object, *, causal: bool) -> None:
        super().__init__(module, causal=False)  # type: ignore[arg-type]
        for layer in self.module.stack.layers:
            layer.attention.causal = True  # type: ignore[union-attr]


def test_encoder_that_is_silently_causal_is_refuted() -> None:
    assert measured(tiny_encoder()).verdict == "held"
    found = measured(tiny_encoder(of=Silent))
    assert found.verdict == "refuted"
    assert found.reason == "a token inside the attention pattern replaced"
    assert "causal flag" in found.remedy


@pytest.mark.parametrize(
    ("window", "reason"),
    [
        (3, "a token inside the attention pattern replaced"),
        (4, "2 comparisons"),
        (5, "a token outside the attention pattern replaced"),
    ],
)
def test_window_that_is_one_token_off_is_refuted_either_way(window: int, reason: str) -> None:
    driver = tiny_decoder(of=Window)
    driver.window = window  # type: ignore[attr-defined]
    found = measured(driver)
    assert found.reason == reason
    assert found.verdict == ("held" if window == 4 else "refuted")


def test_what_does_not_matter_changes_no_bit() -> None:
    found = measured(tiny_decoder())
    assert found.deviation.float32 == 0.0
    assert found.measurement is not None
    assert [trial.description.removesuffix(" replaced") for trial in found.measurement.comparisons] == [
        "a token outside the attention pattern",
        "a token inside the attention pattern",
    ]


def test_model_that_does_not_tell_is_not_asked() -> None:
    class Unknown(TransformerAdapter):
        def attention_pattern(self, tokens: int) -> None:  # type: ignore[override]
            return None

    found = measured(tiny_encoder(of=Unknown))
    assert found.verdict == "not_applicable"
    assert found.reason == "its configuration does not determine its attention pattern"


def test_as_many_features_as_tokens_are_not_taken_for_tokens() -> None:
    class Pooled(TransformerAdapter):
        def call(self, tokens: Tensor, **kwargs: Any) -> ModelOutput:
            output = super().call(tokens, **kwargs).output
            return ModelOutput(output.mean(1)[:, : self.default_length])

    assert measured(tiny_encoder(of=Pooled)).verdict == "not_applicable"
