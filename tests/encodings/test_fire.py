from __future__ import annotations

import itertools
import math

import pytest
import torch

from orderproof import positions
from orderproof.encodings import FIRE, attention
from orderproof.errors import EncodingError
from tests.encodings.examples import HEAD_WIDTH, HEADS, build, normal


@pytest.mark.parametrize("learned", [False, True])
def test_bias_is_the_formula_of_the_paper(learned: bool) -> None:
    fire = FIRE(3, hidden=5, threshold=10, learned_threshold=learned).double()
    for parameter in fire.parameters():
        torch.nn.init.normal_(parameter)
    c, threshold = abs(float(fire.c.detach())), 10.0
    if fire.multiplier is not None:
        threshold *= abs(float(fire.multiplier.detach()))
    w1, b1 = fire.inner.weight[:, 0].tolist(), fire.inner.bias.tolist()
    w2, b2 = fire.outer.weight.tolist(), fire.outer.bias.tolist()
    q, k = torch.tensor([[3, 0], [12, 2000]]), torch.tensor([0, 3, 7])
    found = fire.bias(q, k, dtype=torch.float64)
    for b, h, i, j in itertools.product(range(2), range(3), range(2), range(3)):
        m, n = int(q[b, i]), int(k[j])
        share = math.log(c * abs(m - n) + 1) / math.log(c * max(m, threshold) + 1)
        inner = [max(0.0, w * share + bias) for w, bias in zip(w1, b1, strict=True)]
        expected = sum(w * x for w, x in zip(w2[h], inner, strict=True)) + b2[h]
        assert float(found[b, h, i, j].detach()) == pytest.approx(expected, rel=1e-12, abs=1e-13)


def test_a_learned_threshold_removes_the_claims_and_gets_a_gradient() -> None:
    fixed, learned = FIRE(2).claims, FIRE(2, learned_threshold=True)
    assert (fixed.relative, fixed.symmetric, fixed.relative_up_to) == (True, True, 512)
    assert (learned.claims.relative, learned.claims.symmetric, learned.claims.relative_up_to) == (False, False, None)
    p = positions.arange(600)[::100]
    learned.bias(p, p).square().sum().backward()
    assert all(parameter.grad is not None for parameter in learned.parameters())


def test_shift_invariance_ends_at_the_threshold_and_not_before() -> None:
    fire, p = build("fire").double(), positions.arange(6)

    def at(start: int) -> torch.Tensor:
        return fire.bias(p + start, p + start, dtype=torch.float64)[..., -1, :].detach()

    assert torch.equal(at(0), at(512 - 5))
    assert not torch.equal(at(0), at(512 - 4))


def test_the_oldest_key_of_a_long_row_always_has_share_one() -> None:
    fire = build("fire").double()
    first = torch.zeros(1, dtype=torch.int64)
    found = fire.bias(torch.tensor([512, 1000, 10_000]), first, dtype=torch.float64)
    assert torch.allclose(found, found[..., :1, :].expand_as(found), rtol=1e-13)


def test_flex_looks_up_the_bias_of_each_row_of_a_batch() -> None:
    fire = build("fire").requires_grad_(False)
    q, k, v = (normal(2, HEADS, 5, HEAD_WIDTH, seed=s, dtype=torch.float32) for s in range(3))
    p = positions.offset(torch.tensor([0, 900]), 5)
    flex, eager = (
        attention(q, k, v, encoding=fire, q_positions=p, causal=True, backend=backend) for backend in ("flex", "eager")
    )
    assert torch.allclose(flex, eager, atol=1e-5)


def test_invalid_arguments_are_rejected() -> None:
    with pytest.raises(EncodingError, match="FIRE: threshold must be an integer, 1 or more, got 0"):
        FIRE(2, threshold=0)
