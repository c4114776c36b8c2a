"""The law of distinct positions: what collapses in one precision only is found there, and what is by design is not."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from orderproof.auditing.measure import measure_law
from orderproof.blocks.driving import TransformerDriver, decoder, encoder
from orderproof.driver import Answer
from orderproof.encodings import Rotary, Sinusoidal
from orderproof.laws.measured import Bench, find
from orderproof.laws.measured.distinct import BEFORE, schedule
from orderproof.laws.measured.far import reaches
from orderproof.record import Finding


def distinct(driver: TransformerDriver) -> Finding:
    return measure_law(driver, find("distinct"), Bench(driver), kind="causal_lm")  # type: ignore[arg-type]


def broken(found: Finding) -> list[str]:
    assert found.measurement is not None
    return [trial.what for trial in found.measurement.trials if trial.float32]


class ByProduct(Rotary):
    """Rotary with angles worked out as a matrix product, which autocast rounds."""

    def __init__(self, head_width: int) -> None:
        super().__init__(head_width)
        self._plan = None

    def cos_sin(self, positions: Tensor, **given: Any) -> tuple[Tensor, Tensor]:
        frequencies = torch.tensor([self.spectrum.frequencies])
        angles = (positions.float().unsqueeze(-1) @ frequencies).float()
        return angles.cos(), angles.sin()


class WavesInBfloat16(Sinusoidal):
    """A table of waves whose positions were counted in bfloat16: 769 distinct rows of 4096."""

    def table(self, positions: Tensor, *, dtype: torch.dtype = torch.float32) -> Tensor:
        return super().table(positions.bfloat16().long(), dtype=dtype)


class Wrapped(TransformerDriver):
    """Positions taken from a table of 100 rows by their remainder, in bfloat16 only."""

    def call(self, tokens: Tensor, *, positions: Tensor | None = None, **given: Any) -> Answer:
        if positions is not None and next(self.module.parameters()).dtype == torch.bfloat16:
            positions = positions % 100
        return super().call(tokens, positions=positions, **given)


def test_collapse_under_autocast_alone_is_found() -> None:
    found = distinct(decoder(ByProduct(8)))
    assert found.verdict == "refuted"
    assert broken(found) == ["positions up to 4095 under autocast to bfloat16"]
    assert "are one position" in found.reason


def test_bfloat16_table_has_769_rows_and_is_found() -> None:
    table = WavesInBfloat16(16).table(torch.arange(4096))
    assert len(table.unique(dim=0)) == 769
    found = distinct(encoder(WavesInBfloat16(16)))  # float64 has the same rows: no precision tells them apart
    assert found.verdict == "refuted"
    assert broken(found) == ["one token alone at positions up to 4095"]


def test_wrapped_positions_are_found_though_no_neighbours_collapse() -> None:
    found = distinct(decoder(of=Wrapped))
    assert broken(found) == ["positions up to 4095 in bfloat16"]


@pytest.mark.parametrize("name", ["t5", "alibi", "sinusoidal", "learned"])
def test_buckets_saturation_and_tables_are_no_violation(name: str) -> None:
    assert distinct(decoder(name)).verdict == "held"


def test_positions_go_to_the_stated_length_and_hold_odd_ones() -> None:
    driver = decoder("learned")
    assert reaches(driver) == [driver.longest] == [64]
    driver = decoder()
    driver.stated, driver.reach = 128, 5000
    assert reaches(driver) == [128, 5000]
    places = schedule(5000)
    assert (min(places), max(places)) == (BEFORE, 4999)
    assert sum(place % 2 for place in places) > len(places) / 4
    assert len(places) < 45
    assert schedule(4) == []
