from __future__ import annotations

import math

import pytest
import torch
from transformers.models.qwen2_vl.configuration_qwen2_vl import Qwen2VLVisionConfig
from transformers.models.qwen2_vl.modeling_qwen2_vl import (
    Qwen2VLVisionRotaryEmbedding,
    apply_rotary_pos_emb_vision,
)

from orderproof import positions
from orderproof.encodings import AxialRotary, Rotary
from orderproof.errors import EncodingError, PositionError
from tests.encodings.examples import normal


@pytest.mark.parametrize(("axes", "order"), [(2, None), (2, (1, 0)), (3, None), (3, (2, 0, 1))])
@pytest.mark.parametrize("layout", ["half", "interleaved"])
def test_it_is_the_formula_of_the_paper(axes: int, order: tuple[int, ...] | None, layout: str) -> None:
    width, tokens = 24, 5
    p = torch.randint(0, 1000, (axes, tokens), generator=torch.Generator().manual_seed(1))
    x = normal(1, 1, tokens, width)
    found, _ = AxialRotary(width, axes=axes, axis_order=order, layout=layout).rotate(x, x, p)
    pairs = width // 2
    for t in range(tokens):
        for i in range(pairs):
            share = pairs // axes
            axis = (order or tuple(range(axes)))[i // share]
            angle = int(p[axis, t]) * 100.0 ** (-2 * (i % share) / (width / axes))
            a, b = (i, i + pairs) if layout == "half" else (2 * i, 2 * i + 1)
            rotated = complex(x[0, 0, t, a], x[0, 0, t, b]) * complex(math.cos(angle), math.sin(angle))
            assert complex(found[0, 0, t, a], found[0, 0, t, b]) == pytest.approx(rotated, abs=1e-12)


def test_it_is_the_rotation_of_transformers_qwen2_vision() -> None:
    config = Qwen2VLVisionConfig(embed_dim=64, num_heads=2, hidden_size=64)
    p = positions.grid(7, 5)
    q, k = (normal(35, 2, 32, seed=seed, dtype=torch.float32) for seed in (1, 2))
    # Theirs reads (row, column) off the last axis of its positions.
    cos, sin = Qwen2VLVisionRotaryEmbedding(config)(q, p.T)
    expected = apply_rotary_pos_emb_vision(q, k, cos, sin)
    encoding = AxialRotary(32, base=10_000.0)
    found = encoding.rotate(*(x.transpose(0, 1).unsqueeze(0) for x in (q, k)), p)
    for ours, theirs in zip(found, expected, strict=True):
        assert torch.allclose(ours[0].transpose(0, 1), theirs, atol=1e-5)


def test_a_score_depends_on_the_distance_on_each_axis() -> None:
    q, k = normal(1, 1, 6, 16, seed=1), normal(1, 1, 6, 16, seed=2)
    p, encoding = positions.grid(2, 3), AxialRotary(16)
    scores = []
    for shift in ([0, 0], [5, 900], [41, 2]):
        rotated = encoding.rotate(q, k, p + torch.tensor(shift).unsqueeze(-1))
        scores.append(rotated[0] @ rotated[1].mT)
    assert torch.allclose(scores[0], scores[1], atol=1e-11)
    assert torch.allclose(scores[0], scores[2], atol=1e-11)
    rotated = encoding.rotate(q, k, p, p + torch.tensor([[1], [0]]))
    assert not torch.allclose(scores[0], rotated[0] @ rotated[1].mT, atol=1e-3)


def test_one_axis_is_rotary() -> None:
    x, p = normal(2, 3, 5, 8), positions.offset(7, 5)
    assert torch.equal(AxialRotary(8, axes=1, base=10_000.0).rotate(x, x, p)[0], Rotary(8).rotate(x, x, p)[0])
    assert AxialRotary(8, axes=1).claims.ndim == 1


def test_a_token_at_the_origin_is_not_rotated() -> None:
    x = normal(1, 1, 2, 8)
    assert torch.equal(AxialRotary(8).rotate(x, x, torch.zeros(2, 2, dtype=torch.int64))[0], x)


def test_invalid_arguments_are_rejected() -> None:
    with pytest.raises(EncodingError, match="AxialRotary: head_width must be a multiple of 4 for 2 axes, got 6"):
        AxialRotary(6)
    with pytest.raises(EncodingError, match="AxialRotary: axes must be an integer, 1 or more, got 0"):
        AxialRotary(8, axes=0)
    with pytest.raises(
        EncodingError, match=r"AxialRotary: axis_order must name each axis from 0 to 1 once, got \(0, 0\)"
    ):
        AxialRotary(8, axis_order=(0, 0))
    with pytest.raises(EncodingError, match="AxialRotary: base must be a number above 0, got 0"):
        AxialRotary(8, base=0)
    x = normal(1, 1, 3, 8)
    with pytest.raises(PositionError, match=r"q_positions: expected shape \[2, token\] or \[2, batch, token\], got"):
        AxialRotary(8).rotate(x, x, positions.arange(3))
    with pytest.raises(PositionError, match="q_positions: expected no negative position, got -1"):
        AxialRotary(8).rotate(x, x, torch.tensor([[0, 1, 2], [0, -1, 0]]))
