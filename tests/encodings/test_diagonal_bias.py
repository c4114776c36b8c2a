"""Attention with a Toeplitz bias vector equals attention with the dense matrix."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from orderproof import positions
from orderproof.encodings import ALiBi, NoEncoding, PositionalEncoding, Rotary, T5Bias, _toeplitz_attention, attention
from tests.encodings.examples import every_mask, normal, tolerance

SIZES = pytest.mark.parametrize(("queries", "keys"), [(9, 9), (3, 11), (1, 8), (300, 300), (270, 600)])
WINDOWS = pytest.mark.parametrize("window", [None, (5, 0), (0, 3), (40, 40)])


def qkv(queries: int, keys: int, *, heads: int = 4, dtype: torch.dtype = torch.float64) -> tuple[Tensor, ...]:
    shapes = ((2, 4, queries, 8), (2, heads, keys, 8), (2, heads, keys, 8))
    return tuple(normal(*shape, seed=seed, dtype=dtype) for seed, shape in enumerate(shapes))


def both(
    encoding: PositionalEncoding, q: Tensor, k: Tensor, v: Tensor, *, causal: bool, window: tuple[int, int] | None
) -> tuple[Tensor, Tensor]:
    """With the Toeplitz vector, and with the dense matrix, which an all-True mask requires."""
    queries, keys = q.shape[2], k.shape[2]
    p, s = positions.offset(keys - queries, queries), positions.arange(keys)
    return tuple(
        attention(q, k, v, encoding=encoding, q_positions=p, k_positions=s, causal=causal, window=window, mask=mask)
        for mask in (None, torch.ones(queries, keys, dtype=torch.bool))
    )


@SIZES
@WINDOWS
@every_mask
@pytest.mark.parametrize("name", ["none", "rotary", "alibi", "t5"])
def test_it_is_attention_with_the_matrix(
    name: str, causal: bool, window: tuple[int, int] | None, queries: int, keys: int
) -> None:
    encoding = {
        "none": NoEncoding(),
        "rotary": Rotary(8),
        "alibi": ALiBi(4),
        "t5": T5Bias(4, bidirectional=not causal),
    }[name].requires_grad_(False)
    for heads in (4, 2):
        found, expected = both(encoding, *qkv(queries, keys, heads=heads), causal=causal, window=window)
        assert (found - expected).abs().max() < tolerance(torch.float64, terms=keys, scale=4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_without_a_mask_it_is_the_same_to_the_last_bit(dtype: torch.dtype) -> None:
    for encoding in (ALiBi(4), T5Bias(4, bidirectional=True).requires_grad_(False)):
        for queries, keys in ((333, 333), (77, 515), (1, 1000)):
            found, expected = both(encoding, *qkv(queries, keys, dtype=dtype), causal=False, window=None)
            assert torch.equal(found, expected)


@WINDOWS
@every_mask
@pytest.mark.parametrize(("queries", "keys"), [(9, 9), (3, 11), (270, 600)])
def test_a_bias_that_learns_gets_the_gradient_of_the_matrix(
    causal: bool, window: tuple[int, int] | None, queries: int, keys: int
) -> None:
    t5 = T5Bias(4, bidirectional=not causal).double()
    given = tuple(x.requires_grad_() for x in qkv(queries, keys))
    above = normal(2, 4, queries, 8, seed=7)
    found, expected = (
        torch.autograd.grad(out, (*given, t5.weight), above, retain_graph=True)
        for out in both(t5, *given, causal=causal, window=window)
    )
    for a, b in zip(found, expected, strict=True):
        assert (a - b).abs().max() < tolerance(torch.float64, terms=keys * queries, scale=float(b.abs().max()))


def test_one_vector_for_all_heads_learns_too() -> None:
    q, k, v = (x.requires_grad_() for x in qkv(7, 7))
    vector = normal(1, 13, seed=5).requires_grad_()
    reach = _toeplitz_attention.DistanceWindow(1 << 40, 1 << 40, 0)
    above = normal(2, 4, 7, 8, seed=6)
    index = torch.arange(7) - torch.arange(7).unsqueeze(-1) + 6
    found = torch.autograd.grad(
        _toeplitz_attention.toeplitz_attention(q, k, v, vector, reach, scale=0.5), (q, vector), above
    )
    dense = functional.scaled_dot_product_attention(q, k, v, attn_mask=vector[:, index], scale=0.5)
    for a, b in zip(found, torch.autograd.grad(dense, (q, vector), above), strict=True):
        assert torch.allclose(a, b, atol=1e-12)


def test_positions_that_do_not_rise_by_one_take_the_matrix() -> None:
    p = positions.arange(6)
    gaps, rows = torch.tensor([0, 1, 2, 4, 5, 6]), torch.stack([p, p + 1])
    assert _toeplitz_attention.distance_window(p, p, causal=True, sliding_window=None) is not None
    assert _toeplitz_attention.distance_window(torch.stack([p, p]), p, causal=True, sliding_window=None) is not None
    for q, k in ((gaps, gaps), (rows, rows), (p.flip(0), p), (p, p + 1)):
        assert _toeplitz_attention.distance_window(q, k, causal=True, sliding_window=None) is None


def test_a_query_without_visible_keys_gets_zeros() -> None:
    q, k, v = qkv(4, 4)
    found = attention(
        q, k, v, encoding=ALiBi(4), q_positions=positions.offset(9, 4), k_positions=positions.arange(4), causal=True,
        window=(6, 0),
    )  # fmt: skip
    assert (found[:, :, 1:] == 0).all()
    assert (found[:, :, 0] != 0).all()


def test_tokens_at_equal_positions_are_ordered_by_index() -> None:
    q, k, v = qkv(3, 5)
    p, s = positions.arange(3), positions.arange(5)
    options = {"encoding": ALiBi(4), "q_positions": p, "k_positions": s, "causal": True}
    assert torch.allclose(
        attention(q, k, v, **options), attention(q, k, v, **options, mask=torch.ones(3, 5, dtype=torch.bool))
    )
