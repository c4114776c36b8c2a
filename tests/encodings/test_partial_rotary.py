"""Rotary encoding of a part of the features: the others pass bit-identically."""

from __future__ import annotations

import pytest
import torch
from transformers import GPTNeoXConfig
from transformers.models.gpt_neox.modeling_gpt_neox import GPTNeoXRotaryEmbedding, apply_rotary_pos_emb
from transformers.models.gptj.modeling_gptj import apply_rotary_pos_emb as apply_gptj
from transformers.models.gptj.modeling_gptj import create_sinusoidal_positions

from orderproof import positions
from orderproof.encodings import Rotary, schedules
from orderproof.errors import EncodingError
from tests.encodings.examples import normal


@pytest.mark.parametrize("fraction", [0.25, 0.5, 1.0])
@pytest.mark.parametrize("kind", ["default", "linear"])
def test_layout_half_is_the_rotation_of_transformers_gpt_neox(fraction: float, kind: str) -> None:
    parameters = {"rope_type": kind, "rope_theta": 10_000.0, "partial_rotary_factor": fraction, "factor": 3.0}
    config = GPTNeoXConfig(hidden_size=128, num_attention_heads=4, rope_parameters=parameters)
    q, k = (normal(2, 4, 9, 32, seed=seed, dtype=torch.float32) for seed in (1, 2))
    p = positions.offset(torch.tensor([0, 100]), 9)
    expected = apply_rotary_pos_emb(q, k, *GPTNeoXRotaryEmbedding(config)(q, p))
    schedule = schedules.LinearScaling(3.0) if kind == "linear" else None
    found = Rotary(32, rotary_width=int(32 * fraction), schedule=schedule).rotate(q, k, p)
    for ours, theirs in zip(found, expected, strict=True):
        assert torch.allclose(ours, theirs, atol=3e-5)


def test_layout_interleaved_is_the_rotation_of_transformers_gptj() -> None:
    q, p = normal(2, 4, 9, 32, dtype=torch.float32), positions.offset(100, 9)
    sin, cos = create_sinusoidal_positions(200, 16)[p].unsqueeze(0).chunk(2, dim=-1)
    # Theirs is [batch, token, head, width].
    rotated = apply_gptj(q[..., :16].transpose(1, 2), sin, cos).transpose(1, 2)
    found, _ = Rotary(32, rotary_width=16, layout="interleaved").rotate(q, q, p)
    assert torch.allclose(found[..., :16], rotated, atol=3e-5)


@pytest.mark.parametrize("layout", ["half", "interleaved"])
def test_remaining_features_pass_and_the_rotated_part_is_a_rotation_of_its_width(layout: str) -> None:
    x, p = normal(2, 3, 5, 13), positions.offset(7, 5)
    found, _ = Rotary(13, rotary_width=6, layout=layout).rotate(x, x, p)
    assert torch.equal(found[..., 6:], x[..., 6:])
    assert torch.allclose(found[..., :6], Rotary(6, layout=layout).rotate(x[..., :6], x[..., :6], p)[0], atol=1e-15)


def test_proportional_keeps_the_highest_frequencies_of_rotary_and_partial_does_not() -> None:
    x, p = normal(1, 1, 5, 16), positions.offset(7, 5)
    whole, _ = Rotary(16).rotate(x, x, p)
    found, _ = Rotary(16, schedule=schedules.Proportional(0.25)).rotate(x, x, p)
    turning, still = [0, 1, 8, 9], [2, 3, 4, 5, 6, 7, 10, 11, 12, 13, 14, 15]
    assert torch.equal(found[..., turning], whole[..., turning])
    assert torch.equal(found[..., still], x[..., still])
    partial, _ = Rotary(16, rotary_width=4).rotate(x, x, p)
    assert torch.equal(partial[..., 4:], x[..., 4:])
    assert not torch.allclose(partial, found, atol=1e-3)


def test_bad_widths_are_rejected() -> None:
    with pytest.raises(EncodingError, match="Rotary: rotary_width must be at most 8, got 10"):
        Rotary(8, rotary_width=10)
    with pytest.raises(EncodingError, match="Rotary: rotary_width must be an even integer, 2 or more, got 3"):
        Rotary(8, rotary_width=3)
