"""Rotary angles count as an encoding of positions only if a layer reads them."""

from __future__ import annotations

import json

import pytest

from orderproof import audit
from orderproof.models import load
from tests.models.hf.adapters import tiny_adapter


@pytest.mark.parametrize(
    ("types", "reads"), [(["full_attention", "full_attention"], False), (["sliding_attention", "full_attention"], True)]
)
def test_cohere2_rotates_in_sliding_layers_only(types: list[str], reads: bool) -> None:
    name = "cohere2?layer_types=" + json.dumps(types, separators=(",", ":"))
    adapter = tiny_adapter(name)
    assert adapter.has_positions
    assert adapter.uses_position_encoding() is reads
    (finding,) = audit(load(f"arch:{name}", tiny=True), laws=["ignored_arguments"]).findings
    assert finding.verdict == "held"
    compared = {c.description: c.float32 is not None for c in finding.measurement.comparisons}
    changes = ("position ids", "rope_theta", "rope_type")
    assert [compared[f"{name} must change the output"] for name in changes] == [reads] * 3
    assert compared["an attention mask must change the output"]


def test_a_model_without_rotary_modules_is_not_asked() -> None:
    assert tiny_adapter("gpt2").uses_position_encoding()
