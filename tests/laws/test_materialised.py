"""The law `materialised`: buffers are held to it by themselves, and a cast is told and not judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import pytest
import torch

from orderproof.auditing.measure import measure_law
from orderproof.blocks.driving import TransformerDriver, decoder
from orderproof.driver import Driver
from orderproof.laws.measured import Bench, find
from orderproof.laws.measured.law import MeasuredLaw
from orderproof.record import Finding
from orderproof.subjects import load


def measured(driver: Driver, kind: str = "causal_lm") -> Finding:
    law = find("materialised")
    assert isinstance(law, MeasuredLaw)
    return measure_law(driver, law, Bench(driver), kind=kind)


class Idle(TransformerDriver):
    """Has a buffer that no usual call reads, and loses it when it is stored."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.module.register_buffer("longer", torch.arange(1.0, 9.0), persistent=False)

    def remade(self) -> Mapping[str, Callable[[], Self]]:
        return dict(list(super().remade().items())[1:])


class Rounded(TransformerDriver):
    """Gives other weights where it is loaded in another dtype."""

    def loaded(self, dtype: torch.dtype) -> Self:
        made = super().loaded(dtype)
        if dtype == torch.bfloat16:
            with torch.no_grad():
                next(made.module.parameters()).mul_(1.25)
        return made


def test_buffer_that_is_lost_is_told_though_no_output_differs() -> None:
    found = measured(decoder(of=Idle))
    assert found.verdict == "refuted"
    assert found.reason == "saved, made on meta and loaded: its buffers"


def test_cast_is_told_and_not_judged() -> None:
    found = measured(decoder(of=Rounded))
    assert found.verdict == "held"
    assert "told, not judged: cast to bfloat16, against loaded in bfloat16: it differs by" in found.reason


@pytest.mark.parametrize(("name", "told"), [("llama", True), ("gpt2", False)])
def test_frequencies_of_transformers_are_rounded_by_a_cast_and_kept_by_loading(name: str, told: bool) -> None:
    pytest.importorskip("transformers")
    made = load(f"arch:{name}", tiny=True).driver
    assert made is not None
    found = measured(made())
    assert found.verdict == "held"
    assert ("told, not judged" in found.reason) == told
    assert found.deviation.float32 == 0.0
