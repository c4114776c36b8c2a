"""A value of `arch:NAME?key=value` is honoured by the model, or refused in one line."""

from __future__ import annotations

import pytest
import torch
from transformers import LlamaConfig

from orderproof.errors import UsageError
from orderproof.models import load
from orderproof.models.hf.stated_values import check_honoured


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("llama?dtype=int8", "expected a dtype, one of float32, bfloat16, float16; got 'int8'"),
        ('llama?rope_parameters={"rope_type":"nope"}', "transformers has no rope type 'nope'"),
        ("llama?attn_implementation=flash", "expected attn_implementation sdpa or eager; got 'flash'"),
    ],
)
def test_an_unknown_value_is_refused(query: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        load(f"arch:{query}", tiny=True)


def test_the_dtype_of_the_weights_is_the_stated_one() -> None:
    subject = load("arch:llama?dtype=bfloat16", tiny=True)
    assert {parameter.dtype for parameter in subject.module.parameters()} == {torch.bfloat16}
    assert "bfloat16" in subject.load_summary


def test_the_attention_implementation_is_the_stated_one() -> None:
    subject = load("arch:llama?attn_implementation=eager", tiny=True)
    assert subject.load_summary.startswith("eager")


@pytest.mark.parametrize("types", [["full_attention", "linear_attention"], ["linear_attention", "full_attention"]])
def test_layer_types_are_not_overwritten_by_their_other_name(types: list[str]) -> None:
    text = str(types).replace("'", '"')
    subject = load(f"arch:granitemoehybrid?layer_types={text}", tiny=True)
    model: torch.nn.Module = subject.module.model  # type: ignore[assignment]
    assert list(model.config.layer_types) == types  # type: ignore[union-attr]


def test_the_number_of_layers_is_that_of_their_types() -> None:
    types = '["full_attention","sliding_attention","sliding_attention"]'
    assert load(f"arch:gemma3_text?layer_types={types}", tiny=True).layer_count == 3


def test_a_value_that_the_configuration_replaces_is_refused() -> None:
    check_honoured(LlamaConfig(head_dim=16), {"head_dim": 16}, "arch:llama")
    with pytest.raises(UsageError, match="LlamaConfig does not keep head_dim=5; it has 16"):
        check_honoured(LlamaConfig(head_dim=16), {"head_dim": 5}, "arch:llama")
