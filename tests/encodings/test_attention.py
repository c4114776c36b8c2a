from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional

from orderproof import encodings, positions
from orderproof.encodings import (
    ALiBi,
    AttentionContent,
    NoEncoding,
    PositionalEncoding,
    Rotary,
    T5Bias,
    attention,
)
from tests.encodings.examples import (
    HEADS,
    IN_ATTENTION,
    build,
    every_encoding_in_attention,
    hooks,
    in_attention_with,
    placed,
    qkv,
    token_state_of,
    tolerance,
)

BY_SCORE = [name for name in encodings.names() if "score_mod" in hooks(build(name).claims)]
LEARNING = sorted({name for name, _ in IN_ATTENTION if list(build(name).parameters())})


def attention_by_hand(
    encoding: PositionalEncoding,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    p: torch.Tensor,
    s: torch.Tensor,
    seen: list,
) -> torch.Tensor:
    """Softmax attention written with loops over queries, keys and heads."""
    out, scale, content = torch.zeros_like(q), encoding.default_scale(q.shape[-1]), None
    visible = torch.tensor(seen)[:, None]
    if encoding.claims.content_dependent:
        content = AttentionContent(
            q=q, k=k, scale=scale, visible=visible, token_state=token_state_of(encoding, k.shape[2])
        )
    weights = torch.zeros(*q.shape[:3], k.shape[2], dtype=q.dtype)
    if encoding.claims.site == "bias":
        biases = encoding.bias(p, s, content=content, dtype=torch.float64).expand(weights.shape)
    if encoding.claims.site == "rotate":
        q, k = encoding.rotate(q, k, p, s)
    for b in range(q.shape[0]):
        for h in range(q.shape[1]):
            for m in range(q.shape[2]):
                keys = [n for n in range(k.shape[2]) if seen[b][m][n]]
                scores = [float(q[b, h, m] @ k[b, h, n]) * scale for n in keys]
                if encoding.claims.site == "bias":
                    scores = [score + float(biases[b, h, m, n]) for score, n in zip(scores, keys, strict=True)]
                total = sum(math.exp(score) for score in scores)
                for score, n in zip(scores, keys, strict=True):
                    weights[b, h, m, n] = math.exp(score) / total
                    out[b, h, m] += weights[b, h, m, n] * v[b, h, n]
    return out + encoding.value_bias(weights, p, s) if encoding.claims.adds_to_values else out


@every_encoding_in_attention
@pytest.mark.parametrize("backend", ["sdpa", "eager"])
def test_it_is_the_formula(name: str, causal: bool, backend: str) -> None:
    encoding, (q, k, v) = build(name, causal=causal).requires_grad_(False), qkv(3, 5)
    p, s = [4, 5, 6], [2, 3, 4, 5, 6]
    p_placed, s_placed = (placed(encoding, torch.tensor(x) * 8 ** (encoding.claims.ndim - 1)) for x in (p, s))
    real = torch.tensor([[True] * 5, [False, False, True, True, True]])
    seen = [[[bool(r) and (not causal or n <= m) for n, r in zip(s, row, strict=True)] for m in p] for row in real]
    found = attention(
        q,
        k,
        v,
        encoding=encoding,
        q_positions=p_placed,
        k_positions=s_placed,
        causal=causal,
        padding_mask=real,
        token_state=token_state_of(encoding, 5),
        backend=backend,
    )
    expected = attention_by_hand(encoding, q, k, v, p_placed, s_placed, seen)
    assert (found - expected).abs().max() < tolerance(torch.float64, terms=100)


@in_attention_with("dtype", torch.float64, torch.float32, torch.bfloat16)
def test_every_backend_gives_the_same_numbers(name: str, causal: bool, dtype: torch.dtype) -> None:
    encoding, (q, k, v) = build(name, causal=causal).requires_grad_(False), qkv(9, 9, dtype=dtype)
    real = torch.arange(9) >= torch.tensor([[0], [4]])
    p, token_state = placed(encoding, positions.from_mask(real)), token_state_of(encoding, 9, dtype=dtype)

    def attend(backend: str) -> torch.Tensor:
        found = attention(
            q,
            k,
            v,
            encoding=encoding,
            q_positions=p,
            causal=causal,
            padding_mask=real,
            token_state=token_state,
            backend=backend,
        )
        assert found.dtype == dtype
        return found.double()

    sdpa, eager, flex = (attend(backend) for backend in ("sdpa", "eager", "flex"))
    allowed = tolerance(dtype, terms=9, scale=float(v.abs().max()))
    assert (sdpa - eager).abs().max() <= allowed
    # A function for FlexAttention gives float32 numbers, whose size decides what rounding them costs.
    assert (flex - eager).abs().max() <= max(allowed, tolerance(torch.float32, terms=9, scale=50.0))


@pytest.mark.parametrize("backend", ["sdpa", "eager"])
def test_a_query_without_visible_keys_gets_zeros_and_a_finite_gradient(backend: str) -> None:
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


@pytest.mark.parametrize("name", BY_SCORE)
@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile:UserWarning")
def test_score_mod_serves_flex_attention(name: str) -> None:
    from torch.nn.attention.flex_attention import flex_attention

    encoding, (q, k, v) = build(name).requires_grad_(False), qkv(5, 5, dtype=torch.float32)
    p = placed(encoding, positions.offset(torch.tensor([0, 30]), 5))
    found = flex_attention(q, k, v, score_mod=encoding.score_mod(p, p))
    expected = (q @ k.mT / math.sqrt(8) + encoding.bias(p, p)).softmax(-1) @ v
    assert torch.allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("name", LEARNING)
def test_parameters_get_the_same_gradient_on_both_backends(name: str) -> None:
    found = []
    for backend in ("sdpa", "eager"):
        encoding, (q, k, v) = build(name).double(), qkv(5, 5)
        p, token_state = placed(encoding, positions.arange(5)), token_state_of(encoding, 5)
        mixed = attention(
            q, k, v, encoding=encoding, q_positions=p, causal=True, token_state=token_state, backend=backend
        )
        mixed.square().sum().backward()
        found.append({key: parameter.grad for key, parameter in encoding.named_parameters()})
    assert max(float(gradient.abs().max()) for gradient in found[0].values()) > 1e-3
    for key, gradient in found[0].items():
        assert torch.allclose(gradient, found[1][key], rtol=1e-11, atol=1e-12), key


@pytest.mark.parametrize(
    ("name", "causal"), [(n, c) for n, c in IN_ATTENTION if n in ("rotary", "alibi", "forgetting")]
)
def test_one_graph_serves_all_lengths(name: str, causal: bool) -> None:
    torch.compiler.reset()
    encoding, graphs = build(name, causal=causal).requires_grad_(False), []

    def count(graph: torch.fx.GraphModule, given: object) -> torch.fx.GraphModule:
        graphs.append(graph)
        return graph

    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, p: torch.Tensor, token_state: object) -> torch.Tensor:
        return attention(
            q, k, v, encoding=encoding, q_positions=p, causal=causal, window=(3, 3), token_state=token_state
        )

    compiled = torch.compile(attend, backend=count, fullgraph=True, dynamic=True)
    for tokens in (5, 7, 9):
        given = (*qkv(tokens, tokens), placed(encoding, positions.arange(tokens)), token_state_of(encoding, tokens))
        assert (compiled(*given) - attend(*given)).abs().max() < tolerance(torch.float64, terms=100)
    assert len(graphs) == 1


@every_encoding_in_attention
@pytest.mark.parametrize("backend", ["sdpa", "eager"])
def test_no_tokens_give_no_outputs(name: str, causal: bool, backend: str) -> None:
    encoding, (q, k, v) = build(name, causal=causal), qkv(0, 0)
    p, token_state = placed(encoding, positions.arange(0)), token_state_of(encoding, 0)
    found = attention(
        q, k, v, encoding=encoding, q_positions=p, causal=causal, token_state=token_state, backend=backend
    )
    assert found.shape == q.shape
