from __future__ import annotations

import math

import pytest
import torch

from orderproof import positions
from orderproof.encodings import GRAPE, Rotary
from orderproof.errors import EncodingError
from tests.encodings.examples import normal


@pytest.mark.parametrize("layout", ["half", "interleaved"])
def test_it_is_initialized_as_rotary(layout: str) -> None:
    grape, q, k, p = GRAPE(8, 3, layout=layout), normal(2, 3, 5, 8), normal(2, 3, 5, 8, seed=1), positions.offset(30, 5)
    for ours, theirs in zip(grape.rotate(q, k, p), Rotary(8, layout=layout).rotate(q, k, p), strict=True):
        assert torch.allclose(ours, theirs, atol=1e-5)  # frequencies are parameters, in float32


@pytest.mark.parametrize("shared", [True, False])
def test_it_is_the_power_of_one_matrix(shared: bool) -> None:
    torch.manual_seed(0)
    grape, p = GRAPE(6, 2, shared=shared).double(), torch.tensor([0, 1, 7, 40])
    torch.nn.init.normal_(grape.log_frequencies)
    x = normal(1, 2, 4, 6)
    found, _ = grape.rotate(x, x, p)
    for h in range(2):
        generator = torch.zeros(6, 6, dtype=torch.float64)
        for i, log in enumerate(grape.log_frequencies[0 if shared else h].tolist()):
            generator[i + 3, i], generator[i, i + 3] = math.exp(log), -math.exp(log)
        for t in range(4):
            rotated = torch.linalg.matrix_exp(int(p[t]) * generator) @ x[0, h, t]
            assert torch.allclose(found[0, h, t], rotated, atol=1e-11)


def test_rotated_in_the_authors_direction_it_gives_the_same_scores() -> None:
    """They turn (a, b) to (a cos + b sin, b cos - a sin), which is ours with a and b exchanged."""
    grape, q, k, p = GRAPE(8, 2), normal(1, 2, 5, 8), normal(1, 2, 5, 8, seed=1), positions.arange(5)
    angles = p.double()[:, None] * grape.log_frequencies.detach().double().exp()
    cos, sin = angles.cos(), angles.sin()

    def theirs(x: torch.Tensor) -> torch.Tensor:
        a, b = x.chunk(2, dim=-1)
        return torch.cat([a * cos + b * sin, b * cos - a * sin], dim=-1)

    ours = grape.rotate(q.roll(4, -1), k.roll(4, -1), p)
    assert torch.allclose(ours[0] @ ours[1].mT, theirs(q) @ theirs(k).mT, atol=1e-12)


def test_the_frequencies_get_gradients_and_can_be_reset() -> None:
    grape, x = GRAPE(8, 2, shared=False), normal(1, 2, 6, 8)
    rotated = grape.rotate(x, normal(1, 2, 6, 8, seed=1), positions.arange(6))
    (rotated[0] @ rotated[1].mT).square().sum().backward()
    assert grape.log_frequencies.grad is not None
    assert (grape.log_frequencies.grad.abs() > 1e-9).all()
    before = grape.log_frequencies.detach().clone()
    torch.nn.init.normal_(grape.log_frequencies)
    grape.reset_parameters()
    assert torch.equal(grape.log_frequencies, before)


def test_invalid_arguments_are_rejected() -> None:
    with pytest.raises(EncodingError, match="GRAPE: head_width must be an even integer, 2 or more, got 7"):
        GRAPE(7, 2)
    with pytest.raises(EncodingError, match="GRAPE: heads must be an integer, 1 or more, got 0"):
        GRAPE(8, 0)
    with pytest.raises(EncodingError, match="GRAPE: shared must be True or False, got 1"):
        GRAPE(8, 2, shared=1)  # type: ignore[arg-type]
    x = normal(1, 4, 6, 8)
    with pytest.raises(EncodingError, match="GRAPE: k must have 4 heads, one per set of parameters; got 2"):
        GRAPE(8, 4, shared=False).rotate(x, x[:, :2], positions.arange(6))
    assert GRAPE(8, 4).rotate(x, x[:, :2], positions.arange(6))[1].shape == (1, 2, 6, 8)
