from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional

from orderproof import positions
from orderproof.encodings import PoPE, attention
from orderproof.errors import EncodingError
from tests.encodings.examples import normal


def drawn(heads: int = 2) -> PoPE:
    torch.manual_seed(6)
    encoding = PoPE(6, heads).requires_grad_(False)
    torch.nn.init.uniform_(encoding.delta, -2 * math.pi, 0)
    return encoding


def test_a_score_is_the_formula_of_the_paper() -> None:
    encoding = drawn()
    q, k, v = (normal(1, 2, 4, 6, seed=seed) for seed in (1, 2, 3))
    p, s = torch.tensor([7, 0, 900, 31]), torch.tensor([3, 901, 0, 31])
    scores = torch.zeros(1, 2, 4, 4, dtype=torch.float64)
    for h in range(2):
        for m in range(4):
            for n in range(4):
                for c in range(6):
                    size = math.log1p(math.exp(q[0, h, m, c])) * math.log1p(math.exp(k[0, h, n, c]))
                    angle = int(s[n] - p[m]) * 10_000.0 ** (-c / 6) + float(encoding.delta[h, c])
                    scores[0, h, m, n] += size * math.cos(angle) / math.sqrt(6)
    for backend in ("sdpa", "eager"):
        found = attention(q, k, v, encoding=encoding, q_positions=p, k_positions=s, causal=False, backend=backend)
        assert torch.allclose(found, scores.softmax(-1) @ v, atol=1e-12)


def test_features_set_magnitudes_and_never_an_angle() -> None:
    encoding, p = drawn(), positions.offset(3, 4)
    angles = []
    for seed in (1, 2):
        rotated = encoding.rotate(normal(1, 2, 4, 6, seed=seed), normal(1, 2, 4, 6, seed=seed + 5), p)[1]
        real, imaginary = rotated.chunk(2, dim=-1)
        angles.append(torch.atan2(imaginary, real))
        assert torch.allclose(
            torch.hypot(real, imaginary), functional.softplus(normal(1, 2, 4, 6, seed=seed + 5)), atol=1e-14
        )
    assert torch.allclose(*angles, atol=1e-12)


def test_it_is_symmetric_at_initialization_and_not_when_learned() -> None:
    q, k, p = normal(1, 2, 5, 6, seed=1), normal(1, 2, 5, 6, seed=2), positions.arange(5)
    for encoding, symmetric in ((PoPE(6, 2).requires_grad_(False), True), (drawn(), False)):
        a, b = encoding.rotate(q, k, p)
        there, back = a @ b.mT, None
        a, b = encoding.rotate(q, k, p.flip(0))
        back = a @ b.mT
        assert torch.allclose(there, back, atol=1e-12) == symmetric
        assert not encoding.claims.symmetric


def test_key_heads_may_be_fewer_and_each_has_its_delta() -> None:
    q, k, p = normal(1, 4, 5, 6, seed=1), normal(1, 2, 5, 6, seed=2), positions.arange(5)
    encoding = drawn(2)
    found = attention(q, k, k, encoding=encoding, q_positions=p, causal=True)
    assert found.shape == q.shape
    with pytest.raises(EncodingError, match="PoPE: k must have 2 heads, one per row of delta, got 4"):
        encoding.rotate(q, q, p)


def test_out_is_twice_as_wide() -> None:
    q, p, encoding = normal(1, 2, 5, 6), positions.arange(5), drawn()
    out = torch.empty(1, 2, 5, 12, dtype=torch.float64), torch.empty(1, 2, 5, 12, dtype=torch.float64)
    assert encoding.rotate(q, q, p, out=out)[0] is out[0]
    assert torch.equal(out[1], encoding.rotate(q, q, p)[1])
    with pytest.raises(EncodingError, match=r"PoPE: out for q must be torch.float64 \[1, 2, 5, 12\] on cpu, got"):
        encoding.rotate(q, q, p, out=(q, q))


def test_delta_gets_a_gradient_at_initialization() -> None:
    encoding, q = PoPE(6, 2), normal(1, 2, 5, 6)
    assert (encoding.delta == 0).all()
    a, b = encoding.rotate(q, normal(1, 2, 5, 6, seed=1), positions.arange(5))
    (a @ b.mT).square().sum().backward()
    assert encoding.delta.grad is not None
    assert (encoding.delta.grad.abs() > 1e-6).all()
