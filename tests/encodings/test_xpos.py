from __future__ import annotations

import math

import pytest
import torch

from orderproof import positions
from orderproof.encodings import Rotary, XPos, attention
from orderproof.errors import EncodingError
from tests.encodings.examples import normal


@pytest.mark.parametrize("layout", ["half", "interleaved"])
def test_a_score_is_the_formula_of_the_paper(layout: str) -> None:
    width, m, places = 8, 900, [0, 3, 500, 899, 900]
    q, k = normal(1, 1, 1, width, seed=1), normal(1, 1, 5, width, seed=2)
    rotated = XPos(width, layout=layout).rotate(q, k, torch.tensor([m]), torch.tensor(places))
    scores = (rotated[0] @ rotated[1].mT)[0, 0, 0]
    for n, score, key in zip(places, scores.tolist(), k[0, 0], strict=True):
        expected = 0.0
        for i in range(width // 2):
            a, b = (i, i + width // 2) if layout == "half" else (2 * i, 2 * i + 1)
            one, other = complex(q[0, 0, 0, a], q[0, 0, 0, b]), complex(key[a], key[b])
            angle, zeta = (m - n) * 10_000.0 ** (-2 * i / width), (2 * i / width + 0.4) / 1.4
            expected += (one * other.conjugate() * complex(math.cos(angle), math.sin(angle))).real * zeta ** (
                (m - n) / 512
            )
        assert score == pytest.approx(expected, abs=1e-12)


def test_without_decay_it_is_rotary() -> None:
    x, p = normal(2, 3, 5, 8), positions.offset(70, 5)
    found = XPos(8, scale_base=1e18).rotate(x, x, p)[0]
    assert torch.allclose(found, Rotary(8).rotate(x, x, p)[0], atol=1e-13)


def test_a_key_is_the_same_however_many_come_after_it() -> None:
    x = normal(1, 1, 1025, 8)
    encoding = XPos(8)
    early, late = (encoding.rotate(x[:, :, :n], x[:, :, :n], positions.arange(n))[1] for n in (513, 1025))
    assert torch.equal(early, late[:, :, :513])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_scores_are_finite_up_to_the_maximum_position_and_an_error_beyond(dtype: torch.dtype) -> None:
    encoding = XPos(64)
    last = encoding.max_position_for(dtype)
    q, k = (normal(1, 1, 2, 64, seed=seed).to(dtype) for seed in (1, 2))
    p = torch.tensor([last - 1, last])
    rotated = encoding.rotate(q, k, p)
    assert all(x.isfinite().all() for x in rotated)
    exact = XPos(64).rotate(q.double(), k.double(), positions.arange(2))
    wide = [x.double() for x in rotated]
    scores, expected = wide[0] @ wide[1].mT, exact[0] @ exact[1].mT
    assert (scores - expected).tril().abs().max() < 0.02 * expected.abs().max() + 40 * torch.finfo(dtype).eps
    with pytest.raises(EncodingError, match=f"XPos: q_positions must be at most {last} in {dtype}, got {last + 1}"):
        encoding.rotate(q, k, p + 1)
    with pytest.raises(EncodingError, match="XPos: k_positions must be at most"):
        encoding.rotate(q, k, p, p + 1)


def test_it_claims_its_maximum_position_in_float32() -> None:
    assert XPos(128).claims.max_position == XPos(128).max_position_for(torch.float32) == 18130


def test_it_rejects_bidirectional_attention() -> None:
    q = normal(1, 2, 4, 8)
    with pytest.raises(EncodingError, match="XPos is defined for causal attention only; pass causal=True"):
        attention(q, q, q, encoding=XPos(8), q_positions=positions.arange(4), causal=False)


def test_invalid_arguments_are_rejected() -> None:
    with pytest.raises(EncodingError, match="XPos: scale_base must be a number above 0, got 0"):
        XPos(8, scale_base=0)
    with pytest.raises(EncodingError, match="XPos: layout must be 'half' or 'interleaved', got 'x'"):
        XPos(8, layout="x")  # type: ignore[arg-type]
    with pytest.raises(EncodingError, match="XPos: head_width must be an even integer, 2 or more, got 7"):
        XPos(7)
    with pytest.raises(EncodingError, match="XPos: base must be a number above 0"):
        XPos(8, base=-1)
