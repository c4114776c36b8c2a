"""Attention patterns from configurations."""

from __future__ import annotations

import pytest
import torch

from orderproof import prove
from orderproof.models import load
from tests.models.hf.adapters import tiny_adapter

pytest.importorskip("transformers")


def allowed_and_required(name: str, tokens: int) -> tuple[torch.Tensor, torch.Tensor]:
    pattern = tiny_adapter(name).attention_pattern(tokens)
    assert pattern is not None
    return pattern.allowed, pattern.required


def test_two_layers_with_a_window_of_four_reach_seven_tokens() -> None:
    allowed, required = allowed_and_required("mistral", 12)
    distance = torch.arange(12).unsqueeze(-1) - torch.arange(12)
    assert torch.equal(allowed, (distance >= 0) & (distance <= 6))
    assert torch.equal(allowed, required)


@pytest.mark.parametrize("name", ["llama", "gpt2", "gemma2", "gpt_oss"])
def test_one_layer_of_full_attention_makes_the_pattern_full(name: str) -> None:
    allowed, required = allowed_and_required(name, 12)
    assert torch.equal(allowed, torch.ones(12, 12).tril().bool())
    assert torch.equal(required, allowed)


@pytest.mark.parametrize("name", ["mamba", "rwkv", "gpt_neo", "doge"])
def test_the_pattern_of_a_recurrence_is_bounded_by_the_causal_mask(name: str) -> None:
    allowed, required = allowed_and_required(name, 12)
    assert torch.equal(allowed, torch.ones(12, 12).tril().bool())
    assert torch.equal(required, torch.eye(12).bool())


@pytest.mark.parametrize("name", ["bert", "t5", "xlnet"])
def test_the_pattern_of_an_encoder_is_full(name: str) -> None:
    _, required = allowed_and_required(name, 5)
    assert bool(required.all())


@pytest.mark.parametrize("name", ["longformer", "reformer", "big_bird", "cpmant", "deepseek_ocr2_encoder"])
def test_the_pattern_of_a_sparse_encoder_is_unknown(name: str) -> None:
    assert tiny_adapter(name).attention_pattern(5) is None


@pytest.mark.parametrize(
    ("name", "first"), [("roberta", 2), ("ibert", 2), ("kosmos_2_text_model", 2), ("yoso", 2), ("bert", 0)]
)
def test_first_position_id(name: str, first: int) -> None:
    assert tiny_adapter(name).first_position_id == first


def test_the_window_of_an_encoder_is_symmetric() -> None:
    allowed, _ = allowed_and_required("openai_privacy_filter", 20)
    distance = (torch.arange(20).unsqueeze(-1) - torch.arange(20)).abs()
    assert torch.equal(allowed, distance <= 8)


def test_the_window_is_that_of_the_modelling_file_where_it_has_its_own_mask() -> None:
    """Gemma 3 halves its window of 4 to 3 where attention is bidirectional, and compares distances with <."""
    query = 'use_bidirectional_attention=true&layer_types=["sliding_attention"]&num_hidden_layers=1'
    allowed, required = allowed_and_required(f"gemma3_text?{query}", 12)
    distance = (torch.arange(12).unsqueeze(-1) - torch.arange(12)).abs()
    assert torch.equal(allowed, distance < 3)
    assert torch.equal(required, allowed)
    assert prove(load(f"arch:gemma3_text?{query}", tiny=True), "attention_pattern").verdict == "held"
