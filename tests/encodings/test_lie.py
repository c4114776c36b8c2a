from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from orderproof import positions
from orderproof.encodings import LieRE, ModelSizes, Rotary
from orderproof.errors import EncodingError
from tests.encodings.examples import normal


def exponential(skew: np.ndarray) -> np.ndarray:
    """Exponential of a skew-symmetric matrix, by the eigenvectors of the Hermitian matrix -i skew."""
    values, vectors = np.linalg.eigh(-1j * skew)
    return ((vectors * np.exp(1j * values)) @ vectors.conj().T).real


def test_it_is_the_exponential_of_the_combined_generators() -> None:
    torch.manual_seed(2)
    encoding = LieRE(6, extent=4).requires_grad_(False)
    generators = np.zeros((2, 6, 6))
    for a in range(2):
        generators[a][np.triu_indices(6, 1)] = encoding.above[a].numpy()
        generators[a] -= generators[a].T
    x, p = normal(2, 3, 6, 6), positions.grid(2, 3) * torch.tensor([[3], [40]])
    found, _ = encoding.rotate(x, x, p)
    for t in range(6):
        rotation = exponential(sum(int(p[a, t]) * generators[a] for a in range(2)))
        assert np.abs(found[1, 2, t].numpy() - rotation @ x[1, 2, t].numpy()).max() < 1e-10


def test_it_is_a_rotation() -> None:
    encoding, x = LieRE(7, axes=3).requires_grad_(False), normal(1, 2, 9, 7)
    found, _ = encoding.rotate(x, x, positions.mrope(1, 3, 3, past=500))
    assert torch.allclose(found.norm(dim=-1), x.norm(dim=-1), rtol=1e-10)


def test_rotary_is_a_case_of_it() -> None:
    encoding = LieRE(4, axes=1).requires_grad_(False)
    encoding.above.zero_()
    # Above the diagonal, row by row: (0,1) (0,2) (0,3) (1,2) (1,3) (2,3); layout "half" pairs 0 with 2 and 1 with 3.
    encoding.above[0, 1], encoding.above[0, 4] = -1.0, -0.01
    x, p = normal(1, 1, 5, 4), positions.offset(11, 5)
    assert torch.allclose(encoding.rotate(x, x, p)[0], Rotary(4).rotate(x, x, p)[0], atol=1e-7)


def test_on_one_axis_it_is_relative_and_on_two_it_is_not() -> None:
    q, k = normal(1, 1, 4, 6, seed=1), normal(1, 1, 4, 6, seed=2)
    for axes in (1, 2):
        torch.manual_seed(4)
        encoding = LieRE(6, axes=axes, extent=8).requires_grad_(False)
        assert encoding.claims.relative == (axes == 1)
        p = positions.arange(4) if axes == 1 else positions.grid(2, 2)
        apart = p + (30 if axes == 1 else torch.tensor([[30], [0]]))
        scores = [a @ b.mT for a, b in (encoding.rotate(q, k, places) for places in (p, apart))]
        assert torch.allclose(*scores, atol=1e-9) == (axes == 1)


def test_it_is_initialized_with_at_most_one_period_over_its_extent() -> None:
    torch.manual_seed(1)
    encoding = LieRE.for_model(ModelSizes(width=64, heads=2, causal=False, length=32))
    assert 0 <= encoding.above.min() < encoding.above.max() <= 2 * math.pi / 32
    assert encoding.above.max() > 1.8 * math.pi / 32
    assert LieRE.for_model(ModelSizes(width=64, heads=2, causal=False)).extent == 16


def test_the_generators_learn() -> None:
    encoding, x = LieRE(6), normal(1, 1, 6, 6)
    rotated = encoding.rotate(x, normal(1, 1, 6, 6, seed=1), positions.grid(2, 3))
    (rotated[0] @ rotated[1].mT).square().sum().backward()
    assert encoding.above.grad is not None
    assert (encoding.above.grad.abs() > 1e-8).all()


def test_invalid_arguments_are_rejected() -> None:
    with pytest.raises(EncodingError, match="LieRE: axes must be an integer, 1 or more, got 0"):
        LieRE(6, axes=0)
    with pytest.raises(EncodingError, match="LieRE: extent must be an integer, 1 or more, got 0"):
        LieRE(6, extent=0)
