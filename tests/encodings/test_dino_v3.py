from __future__ import annotations

import math

import pytest
import torch
from transformers.models.dinov3_vit.configuration_dinov3_vit import DINOv3ViTConfig
from transformers.models.dinov3_vit.modeling_dinov3_vit import DINOv3ViTRopePositionEmbedding, apply_rotary_pos_emb

from orderproof import positions
from orderproof.encodings import DinoV3Rope, ModelSizes
from orderproof.errors import EncodingError
from tests.encodings.examples import normal


@pytest.mark.parametrize("grid", [(14, 14), (7, 5), (1, 32)])
def test_it_is_the_rotation_of_transformers_dinov3(grid: tuple[int, int]) -> None:
    config = DINOv3ViTConfig(hidden_size=64, num_attention_heads=2, patch_size=16)
    model = DINOv3ViTRopePositionEmbedding(config).eval()
    cos, sin = model(torch.zeros(1, 3, 16 * grid[0], 16 * grid[1]))
    q, k = (normal(2, 2, grid[0] * grid[1], 32, seed=seed, dtype=torch.float32) for seed in (1, 2))
    found = DinoV3Rope(32, grid=grid).rotate(q, k, positions.grid(*grid))
    for ours, theirs in zip(found, apply_rotary_pos_emb(q, k, cos, sin), strict=True):
        assert torch.allclose(ours, theirs, atol=2e-5)


@pytest.mark.parametrize(("normalise", "spans"), [("separate", (4, 6)), ("max", (6, 6)), ("min", (4, 4))])
def test_it_is_the_formula(normalise: str, spans: tuple[int, int]) -> None:
    x, p = normal(1, 1, 24, 8), positions.grid(4, 6)
    found, _ = DinoV3Rope(8, grid=(4, 6), normalize_coords=normalise).rotate(x, x, p)
    for t in range(24):
        for i in range(4):
            axis = i // 2
            coordinate = 2 * (int(p[axis, t]) + 0.5) / spans[axis] - 1
            angle = 2 * math.pi * coordinate * 100.0 ** (-2 * (i % 2) / 4)
            rotated = complex(x[0, 0, t, i], x[0, 0, t, i + 4]) * complex(math.cos(angle), math.sin(angle))
            assert complex(found[0, 0, t, i], found[0, 0, t, i + 4]) == pytest.approx(rotated, abs=1e-13)


def test_another_resolution_covers_the_same_angles() -> None:
    x = normal(1, 1, 1, 8)
    # The middle patch of an odd grid stands at coordinate 0 whatever the size.
    for side in (1, 3, 15):
        middle = torch.full((2, 1), side // 2)
        assert torch.equal(DinoV3Rope(8, grid=(side, side)).rotate(x, x, middle)[0], x)


def test_a_patch_outside_the_grid_is_an_error() -> None:
    x = normal(1, 1, 6, 8)
    with pytest.raises(
        EncodingError, match="DinoV3Rope: q_positions on axis 1 must be below 2, the grid's size, got 2"
    ):
        DinoV3Rope(8, grid=(2, 2)).rotate(x, x, positions.grid(2, 3))
    assert DinoV3Rope(8, grid=(2, 9)).claims.max_position == 1


def test_invalid_arguments_are_rejected() -> None:
    with pytest.raises(EncodingError, match=r"DinoV3Rope: grid must have a size for each of two axes .* got \(4,\)"):
        DinoV3Rope(8, grid=(4,))
    with pytest.raises(EncodingError, match=r"DinoV3Rope: grid\[1\] must be an integer, 1 or more, got 0"):
        DinoV3Rope(8, grid=(4, 0))
    with pytest.raises(
        EncodingError, match="DinoV3Rope: normalize_coords must be 'separate', 'max' or 'min', got 'both'"
    ):
        DinoV3Rope(8, grid=(4, 4), normalize_coords="both")  # type: ignore[arg-type]
    with pytest.raises(EncodingError, match="DinoV3Rope: a grid needs a size; pass it"):
        DinoV3Rope.for_model(ModelSizes(width=8, heads=1, causal=False))
