"""Sizes of tiny models: experts are narrow, whichever key states their width."""

from __future__ import annotations

import pytest
from transformers import LlamaConfig, MixtralConfig, Qwen3MoeConfig

from orderproof.models.tiny.fixed_sizes import EXPERT_WIDTH, tiny_config_values


@pytest.mark.parametrize(
    ("config", "key", "width"),
    [
        (MixtralConfig(), "intermediate_size", EXPERT_WIDTH),  # the only width that it states
        (Qwen3MoeConfig(), "moe_intermediate_size", EXPERT_WIDTH),
        (Qwen3MoeConfig(), "intermediate_size", 128),
        (LlamaConfig(), "intermediate_size", 128),
        (MixtralConfig(intermediate_size=4), "intermediate_size", 4),  # it is not made wider
    ],
)
def test_experts_are_narrow(config: object, key: str, width: int) -> None:
    assert tiny_config_values(config, {})[key] == width
