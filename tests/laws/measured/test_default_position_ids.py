"""The law `default_position_ids`: a mask that hides nothing is none of its business."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from orderproof.adapter import ModelOutput
from orderproof.auditing.decide.measurement import measure_law
from orderproof.blocks.transformer_adapter import TransformerAdapter, tiny_encoder
from orderproof.laws import find_law
from orderproof.laws.measured import CachedCalls
from orderproof.laws.measured.measured_law import MeasuredLaw
from orderproof.records.audit import Finding


def measured(driver: TransformerAdapter) -> Finding:
    law = find_law("default_position_ids")
    assert isinstance(law, MeasuredLaw)
    return measure_law(driver, law, CachedCalls(driver), kind="encoder")


class Marked(TransformerAdapter):
    """Another model where a mask is given, whatever it hides."""

    def call(self, tokens: Tensor, *, mask: Tensor | None = None, **kwargs: Any) -> ModelOutput:
        made = super().call(tokens, mask=mask, **kwargs)
        return made if mask is None else ModelOutput(made.output.flip(-1), made.cache)


class CountsAnew(TransformerAdapter):
    """Counts from one where a mask is given and no ids are."""

    def call(
        self, tokens: Tensor, *, mask: Tensor | None = None, positions: Tensor | None = None, **kwargs: Any
    ) -> ModelOutput:
        if mask is not None and positions is None:
            positions = torch.arange(1, 1 + tokens.shape[1]).expand(tokens.shape[:2])
        return super().call(tokens, mask=mask, positions=positions, **kwargs)


def test_a_mask_that_changes_the_output_is_not_blamed_on_positions() -> None:
    assert measured(tiny_encoder("sinusoidal", of=Marked)).verdict == "held"


def test_ids_that_are_counted_otherwise_under_a_mask_are_found() -> None:
    found = measured(tiny_encoder("sinusoidal", of=CountsAnew))
    assert found.verdict == "refuted"
    assert found.reason == "one forward with an attention mask"
