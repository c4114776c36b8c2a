"""The law `default_positions`: a mask that hides nothing is none of its business."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from orderproof.auditing.measure import measure_law
from orderproof.blocks.driving import TransformerDriver, encoder
from orderproof.driver import Answer
from orderproof.laws.measured import Bench, find
from orderproof.laws.measured.law import MeasuredLaw
from orderproof.record import Finding


def measured(driver: TransformerDriver) -> Finding:
    law = find("default_positions")
    assert isinstance(law, MeasuredLaw)
    return measure_law(driver, law, Bench(driver), kind="encoder")


class Marked(TransformerDriver):
    """Another model where a mask is given, whatever it hides."""

    def call(self, tokens: Tensor, *, mask: Tensor | None = None, **given: Any) -> Answer:
        made = super().call(tokens, mask=mask, **given)
        return made if mask is None else Answer(made.output.flip(-1), made.cache)


class CountsAnew(TransformerDriver):
    """Counts from one where a mask is given and no ids are."""

    def call(
        self, tokens: Tensor, *, mask: Tensor | None = None, positions: Tensor | None = None, **given: Any
    ) -> Answer:
        if mask is not None and positions is None:
            positions = torch.arange(1, 1 + tokens.shape[1]).expand(tokens.shape[:2])
        return super().call(tokens, mask=mask, positions=positions, **given)


def test_a_mask_that_changes_the_output_is_not_blamed_on_positions() -> None:
    assert measured(encoder("sinusoidal", of=Marked)).verdict == "held"


def test_ids_that_are_counted_otherwise_under_a_mask_are_found() -> None:
    found = measured(encoder("sinusoidal", of=CountsAnew))
    assert found.verdict == "refuted"
    assert found.reason == "in one forward, with a mask"
