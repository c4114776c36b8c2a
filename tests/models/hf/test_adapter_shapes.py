"""Facts that an adapter learns by calls: packed patches, masks of another shape, computed tables."""

from __future__ import annotations

import pytest
import torch

from orderproof.models import load
from tests.models.hf.adapters import measure, tiny_adapter

pytest.importorskip("transformers")


def test_packed_patches_have_no_batch_axis() -> None:
    adapter = tiny_adapter("glm_ocr_vision")
    assert adapter.batch_size == 1
    assert len(adapter.sample_tokens(2, adapter.default_length, 0)) == adapter.default_length
    assert measure(adapter, "batch_composition", kind="vision").verdict == "not_applicable"
    assert measure(adapter, "attention_backend", kind="vision").verdict == "held"


def test_a_mask_of_another_length_is_not_supported() -> None:
    assert "mask" not in tiny_adapter("flava_multimodal_model").supported_inputs
    assert "mask" in tiny_adapter("bert").supported_inputs


@pytest.mark.parametrize(("name", "rows"), [("roberta", 68), ("ibert", 68), ("nystromformer", 128), ("bert", 70)])
def test_rows_before_the_first_position_do_not_count(name: str, rows: int) -> None:
    assert tiny_adapter(name).max_positions == rows


def test_a_computed_table_has_no_noise() -> None:
    subject = load("arch:fsmt", tiny=True)
    model = subject.module
    table = next(part for part in model.modules() if hasattr(part, "make_weight"))
    computed = table.get_embedding(*table.weight.shape, table.padding_idx)
    assert torch.equal(table.weight, computed)


def test_attention_pattern_needs_an_output_per_token() -> None:
    assert measure(tiny_adapter("dpr"), "attention_pattern", kind="vision").verdict == "not_applicable"
