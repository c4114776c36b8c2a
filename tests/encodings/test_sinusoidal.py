from __future__ import annotations

import math

import pytest
import torch
from transformers.models.distilbert import modeling_distilbert as distilbert
from transformers.models.m2m_100.modeling_m2m_100 import M2M100SinusoidalPositionalEmbedding
from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding
from transformers.models.whisper import modeling_whisper as whisper

from orderproof import positions
from orderproof.encodings import Sinusoidal
from orderproof.errors import EncodingError, PositionError
from tests.encodings.examples import normal


def test_it_is_the_formula_of_the_paper() -> None:
    places = torch.tensor([0, 1, 511, 131_071])
    table = Sinusoidal(6).encoding_table(places, dtype=torch.float64)
    for row, p in zip(table.tolist(), places.tolist(), strict=True):
        for i in range(3):
            angle = p / 10_000 ** (2 * i / 6)
            assert row[2 * i] == pytest.approx(math.sin(angle), abs=1e-10)
            assert row[2 * i + 1] == pytest.approx(math.cos(angle), abs=1e-10)


def test_the_layouts_have_the_same_sinusoids_in_another_order() -> None:
    p = positions.arange(9)
    interleaved = Sinusoidal(6).encoding_table(p)
    concatenated = Sinusoidal(6, layout="concatenated").encoding_table(p)
    assert torch.equal(concatenated, interleaved[:, [0, 2, 4, 1, 3, 5]])


def test_the_base_sets_the_longest_period() -> None:
    assert Sinusoidal(4, base=100.0).encoding_table(torch.tensor([1]), dtype=torch.float64)[0, 2] == math.sin(0.1)


def test_open_spacing_is_that_of_distilbert_and_marian() -> None:
    p, out = positions.arange(300), torch.empty(300, 16)
    distilbert.create_sinusoidal_embeddings(n_pos=300, dim=16, out=out)
    assert (Sinusoidal(16).encoding_table(p) - out).abs().max() < 1e-7
    marian = MarianSinusoidalPositionalEmbedding(300, 16).create_weight()
    assert (Sinusoidal(16, layout="concatenated").encoding_table(p) - marian).abs().max() < 1e-7


def test_closed_spacing_is_that_of_tensor2tensor_in_m2m100_and_whisper() -> None:
    encoding = Sinusoidal(16, layout="concatenated", spacing="closed")
    assert encoding.spectrum.frequencies[-1] == pytest.approx(1e-4, rel=1e-15)
    found = encoding.encoding_table(positions.arange(300))
    # Theirs keep the angles in float32: off by half a unit of the position, and of the frequency.
    bound = 300 * torch.finfo(torch.float32).eps * 5
    m2m100 = M2M100SinusoidalPositionalEmbedding.get_embedding(300, 16)
    assert (found - m2m100).abs().max() < bound
    assert (found - whisper.sinusoids(300, 16)).abs().max() < bound
    # which is less than between the spacings
    assert (found - Sinusoidal(16, layout="concatenated").encoding_table(positions.arange(300))).abs().max() > 0.5


def test_embed_adds_the_row_of_each_position() -> None:
    x, p = normal(2, 3, 6), torch.tensor([[4, 0, 9], [1, 1, 2]])
    sinusoidal = Sinusoidal(6)
    assert torch.equal(sinusoidal.embed(x, p), x + sinusoidal.encoding_table(p, dtype=torch.float64))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_every_position_has_its_own_row_in_half_precision(dtype: torch.dtype) -> None:
    table = Sinusoidal(64).to(dtype).embed(torch.zeros(1, 4096, 64, dtype=dtype), positions.arange(4096))[0]
    assert len(torch.unique(table.float(), dim=0)) == 4096


def test_invalid_arguments_are_rejected() -> None:
    with pytest.raises(EncodingError, match="Sinusoidal: width must be an even integer, 2 or more, got 5"):
        Sinusoidal(5)
    with pytest.raises(EncodingError, match="Sinusoidal: base must be a number above 0, got 0"):
        Sinusoidal(4, base=0)
    with pytest.raises(EncodingError, match="Sinusoidal: layout must be 'interleaved' or 'concatenated', got 'half'"):
        Sinusoidal(4, layout="half")  # type: ignore[arg-type]
    with pytest.raises(EncodingError, match="Sinusoidal: spacing must be 'open' or 'closed', got 'paper'"):
        Sinusoidal(4, spacing="paper")  # type: ignore[arg-type]
    with pytest.raises(EncodingError, match="expected at least 4 features for spacing 'closed', got 2"):
        Sinusoidal(2, spacing="closed")
    with pytest.raises(EncodingError, match=r"Sinusoidal: x must be floating \[batch, token, 4\], got"):
        Sinusoidal(4).embed(normal(1, 3, 6), positions.arange(3))
    with pytest.raises(PositionError, match="positions: expected 3 tokens"):
        Sinusoidal(4).embed(normal(1, 3, 4), positions.arange(2))
