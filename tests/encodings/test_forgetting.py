from __future__ import annotations

import itertools
import math

import pytest
import torch

from orderproof import positions
from orderproof.encodings import ALiBi, AttentionContent, ForgetGate, attention
from orderproof.encodings.visibility_mask import visibility_mask
from orderproof.errors import EncodingError
from tests.encodings.examples import HEAD_WIDTH, HEADS, WIDTH, build, normal


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4, 5], [3, 0, 5, 1, 4, 2], [2, 2, 0, 2, 0, 1]])
def test_bias_is_the_formula_of_the_paper(order: list[int]) -> None:
    encoding, x, q = build("forgetting").double(), normal(2, 6, WIDTH), normal(2, HEADS, 6, HEAD_WIDTH)
    p = torch.tensor(order)
    real = torch.tensor([[True] * 6, [False, True, True, True, False, True]])
    visible = visibility_mask(p, p, causal=True, padding_mask=real)
    content = AttentionContent(q=q, k=q, scale=1.0, visible=visible, token_state=encoding.token_state(x))
    found = encoding.bias(p, p, content=content, dtype=torch.float64)
    gates = [[encoding.gate(x[b, t]).tolist() for t in range(6)] for b in range(2)]
    for b, h, m, n in itertools.product(range(2), range(HEADS), range(6), range(6)):
        after = [t for t in range(6) if (order[t], t) > (order[n], n) and visible[b, 0, m, t]]
        expected = sum(-math.log1p(math.exp(-gates[b][t][h])) for t in after)
        assert float(found[b, h, m, n].detach()) == pytest.approx(expected, abs=1e-12)


def test_with_constant_gates_it_is_alibi() -> None:
    encoding, alibi = ForgetGate(WIDTH, HEADS).double(), ALiBi(HEADS)
    slopes = torch.tensor(alibi.slopes, dtype=torch.float64)
    with torch.no_grad():
        encoding.gate.weight.zero_()
        encoding.gate.bias.copy_(-torch.log(torch.expm1(slopes)))  # ln sigmoid(bias) = -slope
    q, k, v = (normal(2, HEADS, 7, HEAD_WIDTH, seed=s) for s in range(3))
    token_state, p = encoding.token_state(normal(2, 7, WIDTH)), positions.arange(7)
    found = attention(q, k, v, encoding=encoding, q_positions=p, causal=True, token_state=token_state)
    assert torch.allclose(found, attention(q, k, v, encoding=alibi, q_positions=p, causal=True), atol=1e-13)


def test_near_keys_of_a_long_row_are_exact() -> None:
    tokens, encoding = 20_000, build("forgetting")
    token_state = torch.full((1, HEADS, tokens, 1), -7.3)
    k = torch.zeros(1, HEADS, tokens, HEAD_WIDTH)
    p = positions.arange(tokens)
    content = AttentionContent(q=k[:, :, -1:], k=k, scale=1.0, token_state=token_state)
    found = encoding.bias(p[-1:], p, content=content)[0, 0, 0, -4:]
    assert found.tolist() == pytest.approx([-21.9, -14.6, -7.3, 0.0], rel=1e-6)


def test_the_gates_learn() -> None:
    encoding, p = build("forgetting"), positions.arange(6)
    q, k, v = (normal(1, HEADS, 6, HEAD_WIDTH, seed=s, dtype=torch.float32) for s in range(3))
    token_state = encoding.token_state(normal(1, 6, WIDTH, dtype=torch.float32))
    attention(q, k, v, encoding=encoding, q_positions=p, causal=True, token_state=token_state).square().sum().backward()
    assert encoding.gate.weight.grad.abs().max() > 1e-4


def test_missing_token_state_and_bidirectional_attention_are_rejected() -> None:
    encoding, q, p = build("forgetting"), normal(1, HEADS, 3, HEAD_WIDTH), positions.arange(3)
    with pytest.raises(
        EncodingError, match=r"ForgetGate: token_state must be \[1, 4, 3, 1\], one per key, got none; compute it"
    ):
        attention(q, q, q, encoding=encoding, q_positions=p, causal=True)
    with pytest.raises(EncodingError, match="ForgetGate is defined for causal attention only"):
        attention(
            q,
            q,
            q,
            encoding=encoding,
            q_positions=p,
            causal=False,
            token_state=encoding.token_state(normal(1, 3, WIDTH)),
        )
    with pytest.raises(EncodingError, match=r"ForgetGate: x must be floating \[batch, token, 32\]"):
        encoding.token_state(normal(1, 3, 8))
