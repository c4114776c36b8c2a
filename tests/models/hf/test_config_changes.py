"""Changed configuration values are in use, and the weights stay."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from orderproof.models.hf.config_changes import models_with_changed_config
from tests.models.hf.adapters import tiny_adapter

KINDS = ("sliding_attention", "full_attention")
ROPE_CHANGES = ("rope_theta", "rope_type")
LLAMA3 = (
    '{"rope_theta":10000.0,"partial_rotary_factor":0.5,"rope_type":"llama3","factor":4.0,"low_freq_factor":1.0,'
    '"high_freq_factor":4.0,"original_max_position_embeddings":32}'
)


def model(name: str) -> nn.Module:
    return tiny_adapter(name).module


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("llama", ["rope_theta", "rope_type"]),
        ("mistral", ["rope_theta", "rope_type", "sliding_window"]),
        ("qwen2", ["rope_theta", "rope_type"]),  # window switched off
        ("gpt_oss", ["rope_theta", "rope factor", "sliding_window"]),
        ("modernbert-decoder", [f"{w} of {k} layers" for k in KINDS for w in ROPE_CHANGES] + ["sliding_window"]),
        ("granite_swa", ["rope_theta", "rope_type", "sliding_window"]),
        ("gpt2", []),
        ("falcon?alibi=true", []),  # a rotary base that is not in use
        ("moshi", ["rope_type", "sliding_window"]),  # one frequency in its tiny heads, 1 for every base
        ("bamba", ["rope_type"]),  # one frequency in its tiny heads
        (f"bamba?rope_parameters={LLAMA3}", []),  # a high one, which llama3 does not scale
        ("llama?rope_parameters=" + LLAMA3.replace('"partial_rotary_factor":0.5,', ""), ["rope_theta", "rope factor"]),
    ],
)
def test_values_in_use_are_changed(name: str, changes: list[str]) -> None:
    assert [name for name, _ in models_with_changed_config(model(name))] == changes


def test_values_of_each_layer_type_are_changed_and_weights_kept() -> None:
    whole = model("gemma3_text")
    changed = dict(models_with_changed_config(whole))
    assert set(changed) == {f"{word} of {k} layers" for word in ROPE_CHANGES for k in KINDS} | {"sliding_window"}
    for variant in changed.values():
        weights = dict(variant.named_parameters())
        assert all(torch.equal(p, weights[name]) for name, p in whole.named_parameters())


def test_a_rotary_base_per_layer_is_changed() -> None:
    changed = dict(models_with_changed_config(model("granite_swa")))
    assert changed["rope_theta"].config.layer_rope_theta == [80000.0, 80000.0]
