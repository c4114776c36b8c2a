"""What a driver finds out of a model by calling it: packed patches, masks of another shape, tables made anew."""

from __future__ import annotations

import pytest
import torch

from orderproof.auditing.measure import measure_law
from orderproof.driver import Driver
from orderproof.laws.measured import Bench, find
from orderproof.laws.measured.law import MeasuredLaw
from orderproof.record import Finding
from orderproof.subjects import load

pytest.importorskip("transformers")


def driver(name: str) -> Driver:
    made = load(f"arch:{name}", tiny=True).driver
    assert made is not None
    return made()


def measured(way: Driver, law_name: str) -> Finding:
    law = find(law_name)
    assert isinstance(law, MeasuredLaw)
    return measure_law(way, law, Bench(way), kind="vision")


def test_packed_patches_are_one_row() -> None:
    way = driver("glm_ocr_vision")
    assert way.rows == 1
    assert len(way.draw(2, way.length, 0)) == way.length
    assert measured(way, "batch_mates").verdict == "not_applicable"
    assert measured(way, "backend").verdict == "held"


def test_mask_for_more_than_the_tokens_is_not_taken() -> None:
    assert "mask" not in driver("flava_multimodal_model").takes
    assert "mask" in driver("bert").takes


@pytest.mark.parametrize(("name", "rows"), [("roberta", 126), ("ibert", 126), ("nystromformer", 128), ("bert", 128)])
def test_rows_before_the_first_position_are_for_no_token(name: str, rows: int) -> None:
    assert driver(name).longest == rows


def test_table_that_is_made_anew_has_no_noise() -> None:
    subject = load("arch:fsmt", tiny=True)
    model = subject.module
    table = next(part for part in model.modules() if hasattr(part, "make_weight"))
    made = table.get_embedding(*table.weight.shape, table.padding_idx)
    assert torch.equal(table.weight, made)


def test_encoder_without_an_output_for_each_token_is_not_asked_who_sees_whom() -> None:
    assert measured(driver("dpr"), "influence").verdict == "not_applicable"
