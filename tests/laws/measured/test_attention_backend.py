"""The law `attention_backend`: the calls that it compares."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import pytest
import torch
from torch import Tensor, nn

from orderproof.adapter import ModelAdapter, ModelOutput
from orderproof.auditing.decide.measurement import measure_law
from orderproof.blocks.transformer_adapter import TransformerAdapter, tiny_decoder, tiny_encoder
from orderproof.laws import find_law
from orderproof.laws.measured import CachedCalls
from orderproof.laws.measured.measured_law import MeasuredLaw
from orderproof.models.load import load
from orderproof.records.audit import Finding


def measured(driver: ModelAdapter) -> Finding:
    law = find_law("attention_backend")
    assert isinstance(law, MeasuredLaw)
    return measure_law(driver, law, CachedCalls(driver), kind="encoder")


class Trained(TransformerAdapter):
    """Counts positions from one while it is trained."""

    def call(self, tokens: Tensor, *, positions: Tensor | None = None, **kwargs: Any) -> ModelOutput:
        if self.module.training:
            positions = torch.arange(tokens.shape[1]).expand(tokens.shape[:2]) * 2
        return super().call(tokens, positions=positions, **kwargs)


class Noisy(nn.Module):
    """Noise in training, with no word of dropout."""

    def forward(self, x: Tensor) -> Tensor:
        return x + torch.randn_like(x) if self.training else x


class Summary(TransformerAdapter):
    """One more output than tokens; what a pad gives is the implementation's own business."""

    fill = 0.0

    def attention_backends(self) -> Iterator[tuple[str, Self]]:
        for number, (name, other) in enumerate(super().attention_backends(), 1):
            other.fill = float(number)
            yield name, other

    def call(self, tokens: Tensor, *, mask: Tensor | None = None, **kwargs: Any) -> ModelOutput:
        output = super().call(tokens, mask=mask, **kwargs).output
        if mask is not None:
            output = output.masked_fill(~mask.unsqueeze(-1), self.fill)
        return ModelOutput(torch.cat([output, output.new_ones(output[:, :1].shape)], dim=1), None)


def test_what_pads_give_is_not_compared_where_outputs_are_not_those_of_tokens_alone() -> None:
    assert measured(tiny_encoder(of=Summary)).verdict == "held"


def test_difference_in_training_is_reported() -> None:
    found = measured(tiny_encoder(of=Trained))
    assert found.verdict == "refuted"
    assert found.reason == "train mode without dropout"
    assert found.remedy == "Let dropout be the only difference of train mode."


def test_every_implementation_is_compared_with_pads_and_with_restarting_positions() -> None:
    found = measured(tiny_decoder())
    assert found.verdict == "held"
    assert found.measurement is not None
    names = {trial.description for trial in found.measurement.comparisons}
    for backend in ("eager", "sdpa", "flex"):
        for more in ("", ", padded on the right", ", padded on the left", ", with position ids that restart"):
            assert backend + more in names


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        (nn.Dropout(0.5), ""),
        (nn.BatchNorm1d(16), "in train mode its batch norms use the statistics of the batch"),
        (Noisy(), "in train mode it has randomness other than dropout"),
    ],
    ids=["dropout", "batch norm", "noise"],
)
def test_dropout_is_no_difference_and_what_must_differ_in_training_is_not_compared(extra: nn.Module, said: str) -> None:
    driver = tiny_encoder()
    norm = driver.module.stack.last_norm
    assert norm is not None
    if isinstance(extra, nn.BatchNorm1d):
        driver.module.add_module("extra", extra)
    else:
        driver.module.stack.last_norm = nn.Sequential(norm, extra)
    driver.module.eval()
    found = measured(driver)
    assert found.measurement is not None
    assert found.measurement.comparisons[-1].reason == said
    assert (found.measurement.comparisons[-1].float32 is None) == bool(said)
    assert found.verdict == "held"


@pytest.fixture(scope="module")
def llama() -> ModelAdapter:
    build = load("arch:llama", tiny=True).build_adapter
    assert build is not None
    return build()


def test_masks_of_four_axes_are_compared_for_information(llama: ModelAdapter) -> None:
    """Eager attention of transformers adds booleans and integers to the scores."""
    finding = measured(llama)
    assert finding.measurement is not None
    difference = {each.description: each.float32 or 0.0 for each in finding.measurement.comparisons}
    assert finding.verdict == "held"
    for kind in ("booleans", "integers"):
        what = f"eager, a mask of {kind} [row, 1, token, token]"
        assert difference[what] > 0.1
        assert f"{what}, hides other tokens than the same padding mask" in finding.reason
    assert difference["eager, a mask of floats [row, 1, token, token]"] < 1e-5
    assert difference["own backend, a mask of booleans [row, 1, token, token]"] < 1e-5


def test_a_gap_in_position_ids_is_named_with_the_calls_that_it_cuts(llama: ModelAdapter) -> None:
    law = find_law("use_cache")
    assert isinstance(law, MeasuredLaw)
    finding = measure_law(llama, law, CachedCalls(llama), kind="causal_lm")
    assert finding.measurement is not None
    compared = [each.description for each in finding.measurement.comparisons]
    assert "use_cache on, padded on the left" in compared
    assert "use_cache on, without position ids and mask" in compared
    assert finding.verdict == "held"
    assert "a gap in position ids cuts the sequence in a call without a cache, and not in one with" in finding.reason
