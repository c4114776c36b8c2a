from __future__ import annotations

import math

import pytest
import torch
from transformers import ViTMAEConfig
from transformers.models.vit_mae.modeling_vit_mae import ViTMAEEmbeddings, build_2d_sinusoidal_position_embedding

from orderproof import positions
from orderproof.encodings import Sinusoidal, SinusoidalGrid
from orderproof.errors import EncodingError, PositionError
from tests.encodings.examples import normal


def test_it_is_the_formula() -> None:
    grid = positions.grid(3, 5)
    table = SinusoidalGrid(8, axis_order=(1, 0)).encoding_table(grid, dtype=torch.float64)
    for (row, column), found in zip(grid.T.tolist(), table.tolist(), strict=True):
        wanted = []
        for n in (column, row):
            angles = [n / 10_000 ** (2 * i / 4) for i in range(2)]
            wanted += [math.sin(a) for a in angles] + [math.cos(a) for a in angles]
        assert found == pytest.approx(wanted, abs=1e-14)


def test_column_first_is_the_encoding_of_vit_mae() -> None:
    embeddings = ViTMAEEmbeddings(ViTMAEConfig(hidden_size=32, image_size=48, patch_size=8))
    embeddings.initialize_weights()
    found = SinusoidalGrid(32, axis_order=(1, 0)).encoding_table(positions.grid(6, 6))
    assert (found - embeddings.position_embeddings[0, 1:]).abs().max() < 1e-7


def test_row_first_is_the_function_in_transformers_and_moco() -> None:
    theirs = build_2d_sinusoidal_position_embedding(4, 7, embed_dim=24, dtype=torch.float64)
    found = SinusoidalGrid(24, axis_order=(0, 1)).encoding_table(positions.grid(4, 7), dtype=torch.float64)
    assert (found - theirs).abs().max() < 1e-14


def test_three_axes_take_a_third_each() -> None:
    film = positions.mrope(2, 3, 4)
    table = SinusoidalGrid(12, axis_order=(0, 1, 2), layout="interleaved").encoding_table(film)
    one = Sinusoidal(4)
    assert torch.equal(table, torch.cat([one.encoding_table(film[axis]) for axis in range(3)], dim=-1))


def test_one_axis_is_the_sinusoidal_encoding() -> None:
    p = positions.offset(torch.tensor([3, 90]), 5)
    for layout in ("interleaved", "concatenated"):
        for spacing in ("open", "closed"):
            options = {"layout": layout, "spacing": spacing, "base": 100.0}
            found = SinusoidalGrid(8, axis_order=(0,), **options).encoding_table(p)  # type: ignore[arg-type]
            assert torch.equal(found, Sinusoidal(8, **options).encoding_table(p))  # type: ignore[arg-type]


def test_embed_adds_the_row_of_each_position() -> None:
    x, grid = normal(2, 6, 8), positions.grid(2, 3)
    encoding = SinusoidalGrid(8, axis_order=(0, 1))
    wanted = x + encoding.encoding_table(grid, dtype=torch.float64)
    assert torch.equal(encoding.embed(x, grid), wanted)
    assert torch.equal(encoding.embed(x, grid.unsqueeze(1).expand(2, 2, 6)), wanted)
    assert encoding.claims.ndim == 2


def test_invalid_arguments_are_rejected() -> None:
    for order in ((), (1,), (0, 0), (0, 2), (0, 1, 2, 3)):
        with pytest.raises(EncodingError, match="SinusoidalGrid: axis_order must name each axis once, such as"):
            SinusoidalGrid(8, axis_order=order)
    with pytest.raises(EncodingError, match="SinusoidalGrid: width must be a multiple of 4 for 2 axes, got 6"):
        SinusoidalGrid(6, axis_order=(0, 1))
    with pytest.raises(EncodingError, match="SinusoidalGrid: width must be an integer, 1 or more, got 0"):
        SinusoidalGrid(0, axis_order=(0, 1))
    with pytest.raises(EncodingError, match="SinusoidalGrid: base must be a number above 0, got -2"):
        SinusoidalGrid(8, axis_order=(0, 1), base=-2)
    with pytest.raises(EncodingError, match="expected at least 4 features for spacing 'closed', got 2"):
        SinusoidalGrid(4, axis_order=(0, 1), spacing="closed")
    with pytest.raises(
        PositionError, match=r"positions: expected shape \[2, token\] or \[2, batch, token\], got \[3\]"
    ):
        SinusoidalGrid(8, axis_order=(0, 1)).embed(normal(1, 3, 8), positions.arange(3))
