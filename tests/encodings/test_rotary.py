from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

from orderproof import positions
from orderproof.encodings import Rotary, Spectrum
from orderproof.errors import EncodingError, PositionError
from tests.encodings.examples import normal, tolerance

LAYOUTS = pytest.mark.parametrize("layout", ["half", "interleaved"])


def turned_by_hand(x: np.ndarray, p: int, *, base: float, layout: str) -> np.ndarray:
    """One vector rotated at one position, pair by pair, in 80-bit arithmetic."""
    width = len(x)
    y = np.zeros(width, dtype=np.longdouble)
    for i in range(width // 2):
        a, b = (i, i + width // 2) if layout == "half" else (2 * i, 2 * i + 1)
        angle = np.longdouble(p) * np.longdouble(base) ** (np.longdouble(-2 * i) / width)
        y[a] = x[a] * np.cos(angle) - x[b] * np.sin(angle)
        y[b] = x[b] * np.cos(angle) + x[a] * np.sin(angle)
    return y


@LAYOUTS
@pytest.mark.parametrize("base", [10_000.0, 500_000.0])
def test_it_is_the_formula_of_the_paper(layout: str, base: float) -> None:
    places = [0, 1, 7, 2047, 131_071, 1_048_575]
    q = normal(1, 1, len(places), 8)
    found, _ = Rotary(8, base=base, layout=layout).rotate(q, q, torch.tensor(places))
    for i, p in enumerate(places):
        expected = turned_by_hand(q[0, 0, i].numpy(), p, base=base, layout=layout)
        assert np.abs(found[0, 0, i].numpy() - expected).max() < 1e-15 * (p + 10)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_far_positions_are_off_by_rounding_only(dtype: torch.dtype) -> None:
    p = torch.tensor([130_000, 131_071, 999_983, 1_048_575])
    q = normal(1, 2, 4, 128).to(dtype)
    rope = Rotary(128)
    found, exact = rope.rotate(q, q, p)[0], rope.rotate(q.double(), q.double(), p)[0]
    assert (found.double() - exact).abs().max() < tolerance(dtype, terms=3, scale=1)


def test_positions_beyond_two_to_the_24_are_distinguished() -> None:
    q, p = normal(1, 1, 1, 2).to(torch.float32), torch.tensor([2**24 + 1])
    one_on, _ = Rotary(2).rotate(q, q, p)
    expected = turned_by_hand(q[0, 0, 0].double().numpy(), 2**24 + 1, base=10_000.0, layout="half")
    assert np.abs(one_on[0, 0, 0].numpy() - expected).max() < 1e-6


@settings(max_examples=25, deadline=None)
@given(first=st.integers(0, 10**6), distance=st.integers(0, 10**6), shift=st.integers(0, 10**6))
def test_a_score_depends_only_on_the_distance(first: int, distance: int, shift: int) -> None:
    q, k = normal(1, 1, 1, 16, seed=1), normal(1, 1, 1, 16, seed=2)
    rope = Rotary(16)
    scores = []
    for m in (first, first + shift):
        q_rotated, k_rotated = rope.rotate(q, k, torch.tensor([m]), torch.tensor([m + distance]))
        scores.append((q_rotated * k_rotated).sum().item())
    assert scores[0] == pytest.approx(scores[1], abs=1e-8)


@LAYOUTS
def test_position_zero_and_length_stay(layout: str) -> None:
    x = normal(2, 3, 5, 12)
    found, _ = Rotary(12, layout=layout).rotate(x, x, torch.tensor([0, 3, 99, 4095, 0]))
    assert torch.equal(found[:, :, [0, 4]], x[:, :, [0, 4]])
    assert torch.allclose(found.norm(dim=-1), x.norm(dim=-1), rtol=1e-14)


def test_the_layouts_are_one_function_of_reordered_features() -> None:
    q, k, p = normal(2, 3, 5, 8, seed=1), normal(2, 3, 5, 8, seed=2), positions.offset(7, 5)
    order = torch.tensor([0, 2, 4, 6, 1, 3, 5, 7])
    half = Rotary(8, layout="half").rotate(q[..., order], k[..., order], p)
    interleaved = Rotary(8, layout="interleaved").rotate(q, k, p)
    assert all(torch.equal(a, b[..., order]) for a, b in zip(half, interleaved, strict=True))


def test_layout_half_is_the_rotation_of_transformers_llama() -> None:
    config = LlamaConfig(hidden_size=64, num_attention_heads=4, num_key_value_heads=4, max_position_embeddings=2048)
    q, k = normal(2, 4, 33, 16, dtype=torch.float32), normal(2, 2, 33, 16, seed=1, dtype=torch.float32)
    p = positions.offset(torch.tensor([0, 900]), 33)
    cos, sin = LlamaRotaryEmbedding(config)(q, p)
    expected = apply_rotary_pos_emb(q, k, cos, sin)
    found = Rotary(16, base=10_000.0).rotate(q, k, p)
    # Theirs keeps angles in float32: off by half a unit of the position.
    for ours, theirs in zip(found, expected, strict=True):
        assert (ours - theirs).abs().max() < 933 * torch.finfo(torch.float32).eps * 5


def test_key_positions_default_to_query_positions() -> None:
    q, k = normal(1, 2, 3, 8, seed=1), normal(1, 2, 3, 8, seed=2)
    rope, p, s = Rotary(8), positions.arange(3), positions.offset(5, 3)
    same = rope.rotate(q, k, p)
    assert torch.equal(same[1], rope.rotate(q, k, p, p)[1])
    other = rope.rotate(q, k, p, s)
    assert torch.equal(other[0], same[0])
    assert torch.equal(other[1], rope.rotate(k, k, s)[0])


def test_out_is_written_into_even_when_it_is_the_input() -> None:
    q, k, p = normal(1, 2, 3, 8, seed=1), normal(1, 2, 3, 8, seed=2), positions.arange(3)
    expected = Rotary(8).rotate(q, k, p)
    out = torch.empty_like(q), torch.empty_like(k)
    returned = Rotary(8).rotate(q, k, p, out=out)
    assert returned[0] is out[0]
    assert returned[1] is out[1]
    assert all(torch.equal(a, b) for a, b in zip(out, expected, strict=True))
    Rotary(8).rotate(q, k, p, out=(q, k))
    assert torch.equal(q, expected[0])
    assert torch.equal(k, expected[1])


def test_the_gradient_is_the_inverse_rotation() -> None:
    q = normal(1, 1, 4, 8).requires_grad_()
    p = positions.offset(9, 4)
    Rotary(8).rotate(q, q.detach(), p)[0].backward(normal(1, 1, 4, 8, seed=5))
    assert q.grad is not None
    again, _ = Rotary(8).rotate(q.grad, q.grad, p)
    assert torch.allclose(again, normal(1, 1, 4, 8, seed=5), atol=1e-13)


def test_a_schedule_gives_the_frequencies_and_the_attention_scaling() -> None:
    def slower(*, width: int, base: float) -> Spectrum:
        return Spectrum(
            frequencies=tuple(base ** (-2 * i / width) / 4 for i in range(width // 2)), attention_scaling=3.0
        )

    q, p = normal(1, 1, 5, 8), positions.arange(5) * 4
    scheduled, _ = Rotary(8, base=100.0, schedule=slower).rotate(q, q, p)
    plain, _ = Rotary(8, base=100.0).rotate(q, q, positions.arange(5))
    assert torch.allclose(scheduled, 3 * plain, atol=1e-13)


def test_frequencies_fall_from_one_by_the_base() -> None:
    assert Rotary(4, base=100.0).spectrum.frequencies == pytest.approx((1.0, 0.1))
    assert Rotary(128).spectrum.frequencies[-1] == pytest.approx(10_000 ** (-126 / 128), rel=1e-15)


def test_invalid_arguments_are_rejected() -> None:
    for bad in (7, 0, -2, 2.0, True):
        with pytest.raises(EncodingError, match="Rotary: head_width must be an even integer, 2 or more, got"):
            Rotary(bad)  # type: ignore[arg-type]
    for base in (-1, True, math.nan, math.inf, "1e4", None):
        with pytest.raises(EncodingError, match=f"Rotary: base must be a number above 0, got {base!r}"):
            Rotary(8, base=base)  # type: ignore[arg-type]
    with pytest.raises(EncodingError, match="Rotary: rotary_width must be an even integer, 2 or more, got 0"):
        Rotary(8, rotary_width=0)
    with pytest.raises(EncodingError, match="Rotary: layout must be 'half' or 'interleaved', got 'neox'"):
        Rotary(8, layout="neox")  # type: ignore[arg-type]
    with pytest.raises(EncodingError, match="Rotary: schedule must return 4 frequencies, one per pair, got 1"):
        Rotary(8, schedule=lambda width, base: Spectrum(frequencies=(base / width,)))


def test_operands_that_do_not_fit_are_rejected() -> None:
    rope, q, p = Rotary(8), normal(2, 3, 5, 8), positions.arange(5)
    with pytest.raises(EncodingError, match=r"Rotary: q must be floating \[batch, head, token, 8\], got"):
        rope.rotate(normal(2, 5, 8), q, p)
    with pytest.raises(EncodingError, match=r"Rotary: k must be floating .* got torch.int64 \[2, 3, 5, 8\]"):
        rope.rotate(q, q.long(), p)
    with pytest.raises(EncodingError, match=r"Rotary: k must be floating \[batch, head, token, 8\], got none"):
        rope.rotate(q, None, p)  # type: ignore[arg-type]
    for other, came in ([0, 1, 2, 3, 4], "list"), (5, "int"), (None, "NoneType"), (p.numpy(), "ndarray"):
        with pytest.raises(PositionError, match=f"q_positions: expected a tensor of integers, got {came}; use"):
            rope.rotate(q, q, other)  # type: ignore[arg-type]
    with pytest.raises(EncodingError, match="Rotary: out must be a pair of buffers, for q and for k, got tuple"):
        rope.rotate(q, q, p, out=(q,))  # type: ignore[arg-type]
    with pytest.raises(PositionError, match="k_positions: expected 4 tokens"):
        rope.rotate(q, q[:, :, :4], p)
    with pytest.raises(PositionError, match="q_positions: expected a batch of 2"):
        rope.rotate(q, q, p.expand(3, 5))
    with pytest.raises(EncodingError, match=r"Rotary: out for k must be torch.float64 \[2, 3, 5, 8\] on cpu, got"):
        rope.rotate(q, q, p, out=(q, q.float()))
    with pytest.raises(EncodingError, match="Rotary: out records no gradient"):
        rope.rotate(q.clone().requires_grad_(), q, p, out=(torch.empty_like(q), torch.empty_like(q)))
