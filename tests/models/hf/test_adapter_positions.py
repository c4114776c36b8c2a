"""Positions and arguments of transformers models: supported, passed as **kwargs, ignored or absent."""

from __future__ import annotations

import pytest
import torch

from tests.models.hf.adapters import tiny_adapter


@pytest.mark.parametrize(
    ("name", "ignored_kwargs", "has_positions"),
    [
        ("llama", set(), True),
        ("gptj", set(), True),  # a buffer of sinusoids, no rope_parameters
        ("bart", {"positions"}, True),
        ("jamba", set(), False),
        ("zamba2", set(), False),  # rotary positions switched off
        ("bamba?attn_layer_indices=[]", set(), False),  # rotary positions, no layer of attention
        ("granitemoehybrid", set(), False),  # rope_parameters, and no rotary module
        ("granitemoehybrid?position_embedding_type=rope", set(), True),
        ("vit", set(), True),
    ],
)
def test_ignored_kwargs_and_has_positions(name: str, ignored_kwargs: set[str], has_positions: bool) -> None:
    adapter = tiny_adapter(name)
    assert adapter.ignored_kwargs == ignored_kwargs
    assert adapter.has_positions is has_positions


def test_a_mask_that_the_source_ignores_is_not_supported() -> None:
    assert "mask" not in tiny_adapter("rwkv").supported_inputs
    assert "mask" in tiny_adapter("mamba").supported_inputs


def test_loading_in_a_dtype_computes_frequencies_in_it_and_casting_rounds_them() -> None:
    adapter = tiny_adapter("llama")
    assert (adapter.config_max_positions, adapter.family_max_positions) == (70, 2048)
    before = adapter.module.rotary_emb.inv_freq.clone()
    loaded = adapter.loaded_in(torch.bfloat16).module
    assert loaded.dtype == torch.bfloat16
    assert torch.equal(loaded.rotary_emb.inv_freq, before)
    assert not torch.equal(adapter.module.to(torch.bfloat16).rotary_emb.inv_freq.float(), before)
