from __future__ import annotations

import itertools
import math

import pytest
import torch

from orderproof import positions
from orderproof.encodings import AttentionContent, CoPE, attention
from orderproof.encodings.visibility_mask import visibility_mask
from orderproof.errors import EncodingError
from tests.encodings.examples import HEAD_WIDTH, HEADS, normal


def cope(limit: int = 64) -> CoPE:
    torch.manual_seed(0)
    found = CoPE(HEAD_WIDTH, limit=limit).double().requires_grad_(False)
    torch.nn.init.normal_(found.weight)
    return found


@pytest.mark.parametrize("limit", [64, 3, 1])
@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4, 5], [3, 0, 5, 1, 4, 2], [2, 2, 0, 2, 0, 1]])
def test_bias_is_the_formula_of_the_paper(limit: int, order: list[int]) -> None:
    encoding, q, k = cope(limit), normal(2, HEADS, 6, HEAD_WIDTH), normal(2, HEADS, 6, HEAD_WIDTH, seed=1)
    p = torch.tensor(order)
    real = torch.tensor([[True] * 6, [False, True, True, True, False, True]])
    visible = visibility_mask(p, p, causal=True, padding_mask=real)
    found = encoding.bias(p, p, content=AttentionContent(q=q, k=k, scale=0.3, visible=visible), dtype=torch.float64)
    e = encoding.weight
    for b, h, m, n in itertools.product(range(2), range(HEADS), range(6), range(6)):
        after = [t for t in range(6) if (order[t], t) >= (order[n], n) and visible[b, 0, m, t]]
        count = sum(1 / (1 + math.exp(-0.3 * float(q[b, h, m] @ k[b, h, t]))) for t in after)
        count = min(count, limit - 1)
        below, share = math.floor(count), count - math.floor(count)
        low, high = (float(q[b, h, m] @ e[i]) for i in (below, math.ceil(count)))
        assert float(found[b, h, m, n]) == pytest.approx((1 - share) * low + share * high, abs=1e-12)


def test_a_hidden_key_is_not_counted() -> None:
    encoding, p = cope(), positions.arange(6)
    q, k, v = (normal(1, HEADS, 6, HEAD_WIDTH, seed=s) for s in range(3))
    changed = k.clone()
    changed[:, :, 4:] = normal(1, HEADS, 2, HEAD_WIDTH, seed=9)
    found, other = (attention(q, x, v, encoding=encoding, q_positions=p, causal=True) for x in (k, changed))
    assert torch.equal(found[:, :, :4], other[:, :, :4])
    assert not torch.allclose(found[:, :, 4:], other[:, :, 4:])


def test_it_is_initialized_without_positions_and_learns_them() -> None:
    encoding, p = CoPE(HEAD_WIDTH), positions.arange(6)
    q, k, v = (normal(1, HEADS, 6, HEAD_WIDTH, seed=s, dtype=torch.float32).requires_grad_() for s in range(3))
    found = attention(q, k, v, encoding=encoding, q_positions=p, causal=True)
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert torch.allclose(found, expected, atol=1e-6)
    found.square().sum().backward()
    assert encoding.weight.grad is not None
    assert encoding.weight.grad[:6].abs().max() > 1e-3


def test_it_is_defined_for_causal_attention_only() -> None:
    q = normal(1, 2, 3, HEAD_WIDTH)
    with pytest.raises(EncodingError, match="CoPE is defined for causal attention only; pass causal=True"):
        attention(q, q, q, encoding=cope(), q_positions=positions.arange(3), causal=False)
