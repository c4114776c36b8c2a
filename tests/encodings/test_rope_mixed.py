from __future__ import annotations

import math

import pytest
import torch

from orderproof import positions
from orderproof.encodings import RopeMixed
from orderproof.errors import EncodingError
from tests.encodings.examples import normal


@pytest.mark.parametrize("layout", ["half", "interleaved"])
def test_it_is_the_formula_of_the_paper(layout: str) -> None:
    encoding, p = RopeMixed(8, 3, layout=layout).requires_grad_(False), positions.grid(3, 4) * 7
    x = normal(2, 3, 12, 8)
    found, _ = encoding.rotate(x, x, p)
    for h in range(3):
        for t in range(12):
            for i in range(4):
                row, column = encoding.frequencies[:, h, i].double().tolist()
                angle = int(p[0, t]) * row + int(p[1, t]) * column
                a, b = (i, i + 4) if layout == "half" else (2 * i, 2 * i + 1)
                rotated = complex(x[1, h, t, a], x[1, h, t, b]) * complex(math.cos(angle), math.sin(angle))
                assert complex(found[1, h, t, a], found[1, h, t, b]) == pytest.approx(rotated, abs=1e-12)


def test_it_starts_with_half_of_the_pairs_across_the_other_half() -> None:
    torch.manual_seed(3)
    encoding = RopeMixed(16, 5, base=10.0)
    along, across = encoding.frequencies.detach().double().chunk(2, dim=-1)
    lengths = torch.tensor([10.0 ** (-4 * j / 16) for j in range(4)], dtype=torch.float64)
    for half in (along, across):
        assert torch.allclose(half.norm(dim=0), lengths.expand(5, 4), atol=1e-6)
    assert (along * across).sum(dim=0).abs().max() < 1e-6
    # One direction a head, another in another head.
    ratios = along[0] / along[1]
    assert torch.allclose(ratios, ratios[:, :1].expand_as(ratios), rtol=1e-4)
    assert ratios[:, 0].unique().numel() == 5
    before = encoding.frequencies.clone()
    encoding.reset_parameters()
    assert not torch.equal(before, encoding.frequencies)


def test_the_frequencies_learn() -> None:
    encoding, x = RopeMixed(8, 2), normal(1, 2, 6, 8)
    rotated = encoding.rotate(x, normal(1, 2, 6, 8, seed=1), positions.grid(2, 3))
    (rotated[0] @ rotated[1].mT).square().sum().backward()
    assert encoding.frequencies.grad is not None
    assert (encoding.frequencies.grad.abs() > 1e-6).all()


def test_invalid_arguments_are_rejected() -> None:
    with pytest.raises(EncodingError, match="RopeMixed: head_width must be a multiple of 4, got 6"):
        RopeMixed(6, 2)
    with pytest.raises(EncodingError, match="RopeMixed: heads must be an integer, 1 or more, got 0"):
        RopeMixed(8, 0)
    with pytest.raises(EncodingError, match="RopeMixed: base must be a number above 0, got 0"):
        RopeMixed(8, 2, base=0)
    x = normal(1, 4, 6, 8)
    with pytest.raises(EncodingError, match="RopeMixed: k must have 4 heads, one per set of parameters; got 2"):
        RopeMixed(8, 4).rotate(x, x[:, :2], positions.grid(2, 3))
