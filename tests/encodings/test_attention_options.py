"""Soft caps, sinks and dropout in attention."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
import torch
from transformers.models.gemma2.modeling_gemma2 import eager_attention_forward as gemma2_attention
from transformers.models.gpt_oss.modeling_gpt_oss import eager_attention_forward as gpt_oss_attention

from orderproof import positions
from orderproof.encodings import ALiBi, CoPE, NoEncoding, Rotary, Shaw, attention
from orderproof.errors import EncodingError, UsageError
from tests.encodings.examples import HEAD_WIDTH, HEADS, IN_ATTENTION, build, normal, placed, qkv, tolerance

BACKENDS = pytest.mark.parametrize("backend", ["sdpa", "eager", "flex"])
SINKS = torch.tensor([0.5, -1.0, 3.0, 0.0], dtype=torch.float64)


@BACKENDS
@pytest.mark.parametrize("name", sorted({name for name, _ in IN_ATTENTION if not build(name).claims.content_dependent}))
def test_scores_are_capped_before_the_bias_and_sinks_take_weight(name: str, backend: str) -> None:
    encoding, (q, k, v) = build(name).double().requires_grad_(False), qkv(5, 5)
    p = placed(encoding, positions.arange(5))
    found = attention(
        3 * q, k, v, encoding=encoding, q_positions=p, causal=True, softcap=0.7, sinks=SINKS, backend=backend
    )  # type: ignore[arg-type]
    rotated = encoding.rotate(3 * q, k, p) if encoding.claims.site == "rotate" else (3 * q, k)
    scores = rotated[0] @ rotated[1].mT * encoding.default_scale(HEAD_WIDTH)
    scores = 0.7 * torch.tanh(scores / 0.7)
    if encoding.claims.site == "bias":
        scores = scores + encoding.bias(p, p, dtype=torch.float64)
    visible = (p[0] if p.dim() > 1 else p).unsqueeze(-1) >= (p[0] if p.dim() > 1 else p)
    visible = visible & torch.ones(5, 5, dtype=torch.bool).tril()
    powers = scores.exp() * visible
    weights = powers / (powers.sum(-1, keepdim=True) + SINKS.exp().view(-1, 1, 1))
    assert (found - weights @ v).abs().max() < tolerance(torch.float64, terms=100)


def test_a_soft_cap_is_that_of_gemma_2() -> None:
    q, k, v = qkv(6, 6, heads=2)
    module = SimpleNamespace(num_key_value_groups=2, training=False, head_dim=HEAD_WIDTH)
    hidden = torch.full((6, 6), -math.inf, dtype=torch.float64).triu(1)
    theirs, _ = gemma2_attention(module, q, k, v, hidden, scaling=0.9, softcap=2.0)
    found = attention(
        q, k, v, encoding=NoEncoding(), q_positions=positions.arange(6), causal=True, scale=0.9, softcap=2.0
    )
    assert torch.allclose(found.transpose(1, 2), theirs, atol=1e-6)  # theirs takes a softmax in float32


def test_sinks_are_those_of_gpt_oss() -> None:
    q, k, v = qkv(6, 6, heads=2)
    module = SimpleNamespace(num_key_value_groups=2, training=False, sinks=SINKS)
    hidden = torch.full((6, 6), -math.inf, dtype=torch.float64).triu(1)
    theirs, _ = gpt_oss_attention(module, q, k, v, hidden, scaling=0.9)
    found = attention(
        q, k, v, encoding=NoEncoding(), q_positions=positions.arange(6), causal=True, scale=0.9, sinks=SINKS
    )
    assert torch.allclose(found.transpose(1, 2), theirs, atol=1e-12)


def test_a_sink_of_minus_infinity_takes_nothing_and_sinks_learn() -> None:
    q, k, v = qkv(5, 5)
    options = {"encoding": Rotary(HEAD_WIDTH), "q_positions": positions.arange(5), "causal": True}
    without = attention(q, k, v, **options)
    assert torch.allclose(attention(q, k, v, **options, sinks=torch.full((HEADS,), -math.inf)), without, atol=1e-13)
    sinks = SINKS.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda s: attention(q, k, v, **options, sinks=s), sinks)
    assert torch.autograd.gradgradcheck(lambda s: attention(q, k, v, **options, sinks=s, softcap=2.0), sinks)


def test_decoding_with_sinks_and_a_cap_is_one_forward_pass() -> None:
    (q, k, v), p = qkv(5, 5), positions.arange(5)
    options = {"encoding": ALiBi(HEADS), "causal": True, "sinks": SINKS, "softcap": 3.0}
    whole = attention(q, k, v, q_positions=p, **options)
    last = attention(q[:, :, 4:], k, v, q_positions=p[4:], k_positions=p, **options)
    assert torch.allclose(last, whole[:, :, 4:], atol=1e-14)


@BACKENDS
@pytest.mark.parametrize("encoding", [ALiBi(HEADS), Rotary(HEAD_WIDTH), Shaw(HEAD_WIDTH, add_to_values=False)])
def test_dropout_keeps_or_removes_each_weight(encoding: torch.nn.Module, backend: str) -> None:
    tokens = HEAD_WIDTH
    q, k, _ = qkv(tokens, tokens)
    v = torch.eye(tokens, dtype=torch.float64).expand(2, HEADS, -1, -1)  # the output is the weights
    encoding = encoding.double().requires_grad_(False)
    options = {"encoding": encoding, "q_positions": positions.arange(tokens), "causal": False, "backend": backend}
    weights = attention(q, k, v, **options)
    assert torch.equal(attention(q, k, v, **options, dropout=0.0), weights)
    torch.manual_seed(0)
    dropped = [attention(q, k, v, **options, dropout=0.25) for _ in range(40)]
    kept = torch.stack([x != 0 for x in dropped])
    for x, stays in zip(dropped, kept, strict=True):
        assert torch.allclose(x[stays], (weights / 0.75)[stays], rtol=1e-5)  # flex rounds the bias to float32
    assert abs(kept.double().mean() - 0.75) < 5 * math.sqrt(0.25 * 0.75 / kept.numel())
    assert not torch.equal(kept[0], kept[1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"softcap": 0}, "softcap: expected a number above 0, got 0"),
        ({"softcap": math.inf}, "softcap: expected a number above 0, got inf"),
        ({"dropout": 1.0}, "dropout: expected a probability, 0 or more and below 1, got 1.0"),
        ({"dropout": True}, "dropout: expected a probability, 0 or more and below 1, got True"),
        ({"sinks": torch.zeros(3)}, r"sinks: expected floating \[4\], one per query head, got torch.float32 \[3\]"),
        ({"sinks": 1.0}, r"sinks: expected floating \[4\], one per query head, got float"),
        ({"sinks": torch.zeros(4, device="meta")}, "sinks: expected the device of q, cpu, got meta"),
    ],
)
def test_invalid_options_are_rejected_in_one_line(options: dict[str, object], message: str) -> None:
    q, k, v = qkv(3, 3)
    with pytest.raises(UsageError, match=f"^{message}$"):
        attention(q, k, v, encoding=NoEncoding(), q_positions=positions.arange(3), causal=True, **options)  # type: ignore[arg-type]


def test_a_cap_of_a_content_dependent_bias_is_rejected() -> None:
    q, k, v = qkv(3, 3)
    with pytest.raises(EncodingError, match="^CoPE: expected no softcap, because its bias is a part of the products"):
        attention(q, k, v, encoding=CoPE(HEAD_WIDTH), q_positions=positions.arange(3), causal=True, softcap=1.0)
    p = positions.arange(3)
    sunk = attention(q, k, v, encoding=CoPE(HEAD_WIDTH), q_positions=p, causal=True, sinks=normal(HEADS))
    assert sunk.isfinite().all()
