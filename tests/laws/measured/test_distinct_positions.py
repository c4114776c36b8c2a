"""The law of distinct positions: what collapses in one precision only is found there, and what is by design is not."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from orderproof.adapter import ModelOutput
from orderproof.auditing.decide.measurement import measure_law
from orderproof.blocks.transformer_adapter import TransformerAdapter, tiny_decoder, tiny_encoder
from orderproof.encodings import Rotary, Sinusoidal
from orderproof.laws import find_law
from orderproof.laws.measured import CachedCalls
from orderproof.laws.measured.distinct_positions import PREFIX_TOKENS, position_schedule
from orderproof.laws.measured.dtype_reference import position_count
from orderproof.records.audit import Finding


def distinct(driver: TransformerAdapter) -> Finding:
    return measure_law(driver, find_law("distinct_positions"), CachedCalls(driver), kind="causal_lm")  # type: ignore[arg-type]


def broken(found: Finding) -> list[str]:
    assert found.measurement is not None
    return [trial.description for trial in found.measurement.comparisons if trial.float32]


class ByProduct(Rotary):
    """Rotary with angles worked out as a matrix product, which autocast rounds."""

    def __init__(self, head_width: int) -> None:
        super().__init__(head_width)
        self._plan = None

    def cos_sin(self, positions: Tensor, **kwargs: Any) -> tuple[Tensor, Tensor]:
        frequencies = torch.tensor([self.spectrum.frequencies])
        angles = (positions.float().unsqueeze(-1) @ frequencies).float()
        return angles.cos(), angles.sin()


class WavesInBfloat16(Sinusoidal):
    """A table of waves whose positions were counted in bfloat16: 769 distinct rows of 4096."""

    def encoding_table(self, positions: Tensor, *, dtype: torch.dtype = torch.float32) -> Tensor:
        return super().encoding_table(positions.bfloat16().long(), dtype=dtype)


class Wrapped(TransformerAdapter):
    """Positions taken from a table of 512 rows by their remainder, in bfloat16 only."""

    def call(self, tokens: Tensor, *, positions: Tensor | None = None, **kwargs: Any) -> ModelOutput:
        if positions is not None and next(self.module.parameters()).dtype == torch.bfloat16:
            positions = positions % 512
        return super().call(tokens, positions=positions, **kwargs)


def test_collapse_under_autocast_alone_is_found() -> None:
    found = distinct(tiny_decoder(ByProduct(8)))
    assert found.verdict == "refuted"
    assert broken(found) == ["positions up to 4095 under autocast to bfloat16"]
    assert "are one position" in found.reason


def test_bfloat16_table_has_769_rows_and_is_found() -> None:
    table = WavesInBfloat16(16).encoding_table(torch.arange(4096))
    assert len(table.unique(dim=0)) == 769
    found = distinct(tiny_encoder(WavesInBfloat16(16)))  # float64 has the same rows: no precision tells them apart
    assert found.verdict == "refuted"
    assert broken(found) == ["a single token at positions up to 4095"]


def test_the_rows_of_a_model_in_bfloat16_are_found_too() -> None:
    rounded, honest = tiny_encoder(WavesInBfloat16(16)), tiny_encoder("sinusoidal")
    for driver in (rounded, honest):
        driver.module.to(torch.bfloat16)
        draw = driver.sample_tokens
        driver.sample_tokens = lambda *given, draw=draw: draw(*given).bfloat16()  # type: ignore[method-assign]
    assert "a single token at positions up to 4095" in broken(distinct(rounded))
    assert distinct(honest).verdict == "held"


def test_wrapped_positions_are_found_though_no_neighbours_collapse() -> None:
    found = distinct(tiny_decoder(of=Wrapped))
    assert broken(found) == ["positions up to 4095 in bfloat16"]


@pytest.mark.parametrize("name", ["t5", "alibi", "sinusoidal", "learned"])
def test_buckets_saturation_and_tables_are_no_violation(name: str) -> None:
    assert distinct(tiny_decoder(name)).verdict == "held"


def test_positions_go_to_the_stated_length_and_hold_odd_ones() -> None:
    driver = tiny_decoder("learned")
    assert position_count(CachedCalls(driver)) == driver.max_positions == 64
    driver = tiny_decoder()
    driver.config_max_positions, driver.family_max_positions = 128, 5000
    assert position_count(CachedCalls(driver)) == 5000
    short = tiny_decoder("learned")
    short.max_positions, short.config_max_positions, short.family_max_positions = (
        None,
        64,
        5000,
    )  # a table that is not known to be one
    assert position_count(CachedCalls(short)) == 64
    places = position_schedule(5000)
    assert (min(places), max(places)) == (PREFIX_TOKENS, 4999)
    assert sum(place % 2 for place in places) > len(places) / 4
    assert len(places) < 45
    assert position_schedule(4) == []
