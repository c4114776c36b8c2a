from __future__ import annotations

import math
import re

import pytest
import torch
from torch.nn import functional

from orderproof import encodings, positions
from orderproof.encodings import ALiBi, NoEncoding, PositionalEncoding, Rotary, Sinusoidal, T5Bias, attention
from orderproof.errors import EncodingError, PositionError, UsageError
from tests.encodings.examples import HEAD_WIDTH, HEADS, build, looks_ahead, normal, on_axes, tolerance

IN_ATTENTION = [name for name in encodings.names() if build(name).claims.site != "embed"]
every_encoding_in_attention_and_mask = pytest.mark.parametrize(
    ("name", "causal"),
    [(name, causal) for name in IN_ATTENTION for causal in (True, False) if causal or looks_ahead(name)],
)


def qkv(queries: int, keys: int, *, heads: int = HEADS, dtype: torch.dtype = torch.float64) -> list[torch.Tensor]:
    shapes = ((2, HEADS, queries), (2, heads, keys), (2, heads, keys))
    return [normal(*shape, HEAD_WIDTH, seed=seed, dtype=dtype) for seed, shape in enumerate(shapes)]


def attention_by_hand(
    encoding: PositionalEncoding,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    p: list[int],
    s: list[int],
    seen: list,
) -> torch.Tensor:
    """Softmax attention written with loops over queries, keys and heads."""
    out, scale = torch.zeros_like(q), 1 / math.sqrt(q.shape[-1])
    if encoding.claims.site == "rotate":
        q, k = encoding.rotate(q, k, *(on_axes(encoding, torch.tensor(x)) for x in (p, s)))
    for b in range(q.shape[0]):
        for h in range(q.shape[1]):
            for m in range(q.shape[2]):
                keys = [n for n in range(k.shape[2]) if seen[b][m][n]]
                scores = [float(q[b, h, m] @ k[b, h, n]) * scale for n in keys]
                if encoding.claims.site == "bias":
                    bias = encoding.bias(torch.tensor(p), torch.tensor(s), dtype=torch.float64)[0, h, m]
                    scores = [score + float(bias[n]) for score, n in zip(scores, keys, strict=True)]
                total = sum(math.exp(score) for score in scores)
                for score, n in zip(scores, keys, strict=True):
                    out[b, h, m] += math.exp(score) / total * v[b, h, n]
    return out


@every_encoding_in_attention_and_mask
@pytest.mark.parametrize("backend", ["sdpa", "eager"])
def test_it_is_the_formula(name: str, causal: bool, backend: str) -> None:
    encoding, (q, k, v) = build(name, causal=causal).requires_grad_(False), qkv(3, 5)
    p, s = [7, 8, 9], [5, 6, 7, 8, 9]
    real = torch.tensor([[True] * 5, [False, False, True, True, True]])
    seen = [[[bool(r) and (not causal or n <= m) for n, r in zip(s, row, strict=True)] for m in p] for row in real]
    found = attention(
        q,
        k,
        v,
        encoding=encoding,
        q_positions=on_axes(encoding, torch.tensor(p)),
        k_positions=on_axes(encoding, torch.tensor(s)),
        causal=causal,
        padding_mask=real,
        backend=backend,
    )
    expected = attention_by_hand(encoding, q, k, v, p, s, seen)
    assert (found - expected).abs().max() < tolerance(torch.float64, terms=100)


@every_encoding_in_attention_and_mask
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_eager_and_sdpa_give_the_same_numbers(name: str, causal: bool, dtype: torch.dtype) -> None:
    encoding, (q, k, v) = build(name, causal=causal), qkv(9, 9, dtype=dtype)
    real = torch.arange(9) >= torch.tensor([[0], [4]])
    p = on_axes(encoding, positions.from_mask(real))
    found = [
        attention(q, k, v, encoding=encoding, q_positions=p, causal=causal, padding_mask=real, backend=backend)
        for backend in ("sdpa", "eager")
    ]
    assert found[0].dtype == found[1].dtype == dtype
    assert (found[0].double() - found[1].double()).abs().max() <= tolerance(dtype, terms=9, scale=float(v.abs().max()))


@pytest.mark.parametrize("backend", ["sdpa", "eager"])
def test_a_query_that_sees_nobody_gets_zeros_and_a_clean_gradient(backend: str) -> None:
    q, k, v = (x.requires_grad_() for x in qkv(4, 4))
    real = torch.tensor([[False, False, True, True], [True] * 4])
    for encoding in (NoEncoding(), ALiBi(HEADS)):
        found = attention(
            q,
            k,
            v,
            encoding=encoding,
            q_positions=positions.from_mask(real),
            causal=True,
            padding_mask=real,
            backend=backend,
        )
        assert (found[0, :, :2] == 0).all()
        assert (found[0, :, 2:] != 0).all()
        gradients = torch.autograd.grad(found.sum(), (q, k, v))
        assert all(gradient.isfinite().all() for gradient in gradients)


def test_padding_tokens_change_nothing_at_real_ones() -> None:
    q, k, v = qkv(4, 4)
    real = torch.tensor([[False, True, True, True], [True, True, True, False]])
    results = []
    for noise in (0.0, 100.0):
        k2, v2 = (x + noise * (~real)[:, None, :, None] for x in (k, v))
        results.append(
            attention(
                q, k2, v2, encoding=Rotary(8), q_positions=positions.from_mask(real), causal=True, padding_mask=real
            )
        )
    assert torch.equal(*(r.transpose(1, 2)[real] for r in results))


@pytest.mark.parametrize("backend", ["sdpa", "eager"])
def test_key_heads_are_shared_by_neighbouring_query_heads(backend: str) -> None:
    q, k, v = qkv(5, 5, heads=2)
    found = attention(q, k, v, encoding=Rotary(8), q_positions=positions.arange(5), causal=True, backend=backend)
    repeated = attention(
        q,
        k[:, [0, 0, 1, 1]],
        v[:, [0, 0, 1, 1]],
        encoding=Rotary(8),
        q_positions=positions.arange(5),
        causal=True,
        backend=backend,
    )
    assert torch.equal(found, repeated)


def test_without_encoding_it_is_plain_scaled_dot_product_attention() -> None:
    q, k, v = qkv(5, 5)
    found = attention(q, k, v, encoding=NoEncoding(), q_positions=positions.arange(5), causal=True)
    assert torch.allclose(found, functional.scaled_dot_product_attention(q, k, v, is_causal=True), atol=1e-14)


@pytest.mark.parametrize("backend", ["sdpa", "eager"])
def test_the_scale_is_used(backend: str) -> None:
    q, k, v = qkv(5, 5)
    t5, p = T5Bias(HEADS, bidirectional=True), positions.arange(5)
    found = attention(q, k, v, encoding=t5, q_positions=p, causal=False, scale=1.0, backend=backend)
    scores = q @ k.mT + t5.bias(p, p)
    assert torch.allclose(found, scores.softmax(-1) @ v, atol=1e-13)


@pytest.mark.parametrize("name", [name for name in IN_ATTENTION if build(name).claims.site == "bias"])
@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile:UserWarning")
def test_score_mod_serves_flex_attention(name: str) -> None:
    from torch.nn.attention.flex_attention import flex_attention

    encoding, (q, k, v) = build(name).requires_grad_(False), qkv(5, 5, dtype=torch.float32)
    p = positions.offset(torch.tensor([0, 30]), 5)
    found = flex_attention(q, k, v, score_mod=encoding.score_mod(p, p))
    expected = (q @ k.mT / math.sqrt(8) + encoding.bias(p, p)).softmax(-1) @ v
    assert torch.allclose(found, expected, atol=1e-5)


def test_a_bias_that_learns_gets_a_gradient_on_both_backends() -> None:
    q, k, v = qkv(5, 5)
    gradients = []
    for backend in ("sdpa", "eager"):
        t5 = build("t5").double()
        attention(
            q, k, v, encoding=t5, q_positions=positions.arange(5), causal=True, backend=backend
        ).square().sum().backward()
        gradients.append(t5.weight.grad)
    assert torch.allclose(*gradients, atol=1e-12)
    assert gradients[0].abs().max() > 1e-3


def refuse(message: str, error: type[Exception] = UsageError, **changes: object) -> None:
    q, k, v = qkv(4, 4)
    arguments = {"q": q, "k": k, "v": v, "encoding": NoEncoding(), "q_positions": positions.arange(4), "causal": False}
    with pytest.raises(error, match=re.escape(message)) as caught:
        attention(**(arguments | changes))
    assert "\n" not in str(caught.value)


def test_arguments_that_do_not_fit_are_refused() -> None:
    q, k, v = qkv(4, 4)
    refuse("backend: expected 'sdpa', 'eager' or 'flex', got 'flash'", backend="flash")
    refuse("q: expected floating [batch, head, token, head_width], got torch.float64 [4, 4, 8]", q=q[0])
    refuse("v: expected floating [batch, head, token, head_width], got torch.int64", v=v.long())
    refuse("k: expected the dtype of q, torch.float64, got torch.float32", k=k.float())
    refuse("q, k, v: expected one batch, one head_width, and as many values as keys, got", v=v[:, :, :3])
    refuse("k: expected a number of heads that divides q's 4, got 3", k=k[:, :3], v=v[:, :3])
    refuse(
        "padding_mask: expected booleans [2, 4], True at real tokens, got torch.int64",
        padding_mask=torch.ones(2, 4).long(),
    )
    refuse("padding_mask: expected booleans [2, 4]", padding_mask=torch.ones(1, 4).bool())
    refuse("mask: expected booleans [4, 4], [2, 4, 4] or [2, 4, 4, 4]", mask=torch.ones(4, 4))
    refuse("True where a query may look, got torch.bool [3, 4]", mask=torch.ones(3, 4).bool())
    refuse("True where a query may look, got torch.bool [4]", mask=torch.ones(4).bool())
    refuse("True where a query may look, got torch.bool [1, 1, 1, 4, 4]", mask=torch.ones(1, 1, 1, 4, 4).bool())
    refuse("q_positions: expected 4 tokens", PositionError, q_positions=positions.arange(3))
    refuse("k_positions: expected 4 tokens", PositionError, k_positions=positions.arange(3))
    refuse("q_positions: expected 3 tokens", PositionError, k=k[:, :, :3], v=v[:, :, :3])


def test_an_encoding_in_the_wrong_place_is_refused() -> None:
    refuse("Sinusoidal acts on embeddings, before there are queries and keys", EncodingError, encoding=Sinusoidal(32))
    refuse(
        "T5Bias is defined for causal attention only; pass causal=True",
        EncodingError,
        encoding=T5Bias(4, bidirectional=False),
    )
