"""The law `save_load`: each buffer is compared, and a cast is reported for information only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import pytest
import torch

from orderproof.adapter import ModelAdapter
from orderproof.auditing import audit
from orderproof.auditing.decide.measurement import measure_law
from orderproof.blocks.transformer_adapter import TransformerAdapter, tiny_decoder
from orderproof.laws import find_law
from orderproof.laws.measured import CachedCalls
from orderproof.laws.measured.measured_law import MeasuredLaw
from orderproof.models import from_module, load
from orderproof.records.audit import Finding


def measured(driver: ModelAdapter, kind: str = "causal_lm") -> Finding:
    law = find_law("save_load")
    assert isinstance(law, MeasuredLaw)
    return measure_law(driver, law, CachedCalls(driver), kind=kind)


class Idle(TransformerAdapter):
    """Has a buffer that no usual call reads, and loses it when it is stored."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.module.register_buffer("longer", torch.arange(1.0, 9.0), persistent=False)

    def reload_methods(self) -> Mapping[str, Callable[[], Self]]:
        return dict(list(super().reload_methods().items())[1:])


class Rounded(TransformerAdapter):
    """Gives other weights where it is loaded in another dtype."""

    def loaded_in(self, dtype: torch.dtype) -> Self:
        made = super().loaded_in(dtype)
        if dtype == torch.bfloat16:
            with torch.no_grad():
                next(made.module.parameters()).mul_(1.25)
        return made


def test_buffer_that_is_lost_is_reported_though_no_output_differs() -> None:
    found = measured(tiny_decoder(of=Idle))
    assert found.verdict == "refuted"
    assert found.reason == "saved, copied on meta and loaded: buffers"


def test_cast_is_reported_for_information_only() -> None:
    found = measured(tiny_decoder(of=Rounded))
    assert found.verdict == "held"
    assert "for information only: cast to bfloat16 and loaded in bfloat16: the outputs differ by" in found.reason


@pytest.mark.parametrize(("name", "reported"), [("llama", True), ("gpt2", False)])
def test_frequencies_of_transformers_are_rounded_by_a_cast_and_kept_by_loading(name: str, reported: bool) -> None:
    pytest.importorskip("transformers")
    made = load(f"arch:{name}", tiny=True).build_adapter
    assert made is not None
    found = measured(made())
    assert found.verdict == "held"
    assert ("for information only" in found.reason) == reported
    assert found.deviation.float32 == 0.0


@pytest.mark.parametrize("initialised", [True, False])
def test_buffer_of_another_dtype_keeps_it_when_built_on_meta(
    initialised: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    transformers = pytest.importorskip("transformers")
    made = load("arch:recurrent_gemma", tiny=True).build_adapter
    assert made is not None
    driver = made()
    initialise = transformers.RecurrentGemmaPreTrainedModel._init_weights

    def without_the_scale(self: Any, module: torch.nn.Module) -> None:
        if not hasattr(module, "normalizer"):
            initialise(self, module)

    if not initialised:
        monkeypatch.setattr(transformers.RecurrentGemmaPreTrainedModel, "_init_weights", without_the_scale)
    found = measured(driver)
    assert driver.module.normalizer.dtype == torch.bfloat16
    assert found.verdict == ("held" if initialised else "refuted")
    assert (found.deviation.float32 == 0.0) == initialised


@pytest.mark.parametrize("law", ["save_load", "batch_composition", "attention_backend"])
def test_a_model_in_which_no_token_sees_another_is_measured(law: str) -> None:
    subject = from_module(torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU()), torch.randn(2, 6, 8))
    (found,) = audit(subject, laws=[law]).findings
    assert (found.verdict, found.measurement is not None) == ("held", True)
