from __future__ import annotations

import itertools

import pytest
import torch

from orderproof import positions
from orderproof.encodings import DAPE, FIRE, KERPLE, ALiBi, AttentionContent, T5Bias, attention
from orderproof.errors import EncodingError
from tests.encodings.examples import HEADS, normal, qkv


@pytest.mark.parametrize("inner", [ALiBi(HEADS), KERPLE(HEADS), T5Bias(HEADS, bidirectional=True)])
def test_it_is_the_formula_of_the_paper(inner: ALiBi) -> None:
    torch.manual_seed(0)
    dape, p = DAPE(inner, hidden=5).double().requires_grad_(False), positions.offset(7, 6)
    q, k = normal(2, HEADS, 6, 8), normal(2, HEADS, 6, 8, seed=1)
    found = dape.bias(p, p, content=AttentionContent(q=q, k=k, scale=0.3), dtype=torch.float64)
    plain = inner.bias(p, p, dtype=torch.float64)[0]
    for b, m, n in itertools.product(range(2), range(6), range(6)):
        read = torch.stack([0.3 * (q[b, h, m] @ k[b, h, n]) for h in range(HEADS)] + [*plain[:, m, n]])
        inside = dape.first.weight @ read + dape.first.bias
        inside = torch.where(inside < 0, inside / 100, inside)
        expected = plain[:, m, n] + dape.second.weight @ inside + dape.second.bias
        assert torch.allclose(found[b, :, m, n], expected, atol=1e-13)


@pytest.mark.parametrize("backend", ["sdpa", "eager", "flex"])
def test_a_zero_network_leaves_the_inner_bias(backend: str) -> None:
    (q, k, v), inner, p = qkv(7, 7), KERPLE(HEADS).requires_grad_(False), positions.arange(7)
    dape = DAPE(inner).requires_grad_(False)
    torch.nn.init.zeros_(dape.second.weight)
    torch.nn.init.zeros_(dape.second.bias)
    found, plain = (
        attention(q, k, v, encoding=encoding, q_positions=p, causal=True, backend=backend) for encoding in (dape, inner)
    )
    assert torch.allclose(found, plain, atol=1e-6)


def test_it_claims_what_its_inner_bias_claims() -> None:
    assert DAPE(KERPLE(2)).claims.symmetric
    one_way = DAPE(T5Bias(2, bidirectional=False)).claims
    assert one_way.causal_only
    assert not one_way.symmetric
    assert one_way.content_dependent


def test_network_and_inner_bias_learn() -> None:
    dape, (q, k, v) = DAPE(KERPLE(HEADS)).double(), qkv(6, 6)
    attention(q, k, v, encoding=dape, q_positions=positions.arange(6), causal=True).square().sum().backward()
    assert all(x.grad is not None and x.grad.abs().max() > 0 for x in (dape.first.weight, dape.second.weight))
    assert dape.inner.raw.grad is not None
    before = dape.first.weight.detach().clone()
    dape.reset_parameters()
    assert not torch.equal(before, dape.first.weight)


def test_invalid_arguments_are_rejected() -> None:
    for wrong in (FIRE(4), "kerple", DAPE(KERPLE(4))):
        with pytest.raises(EncodingError, match="DAPE: inner must be a RelativeBias, such as KERPLE"):
            DAPE(wrong)  # type: ignore[arg-type]
    with pytest.raises(EncodingError, match="DAPE: hidden must be an integer, 1 or more, got 0"):
        DAPE(KERPLE(4), hidden=0)
