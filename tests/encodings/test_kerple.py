from __future__ import annotations

import itertools
import math

import pytest
import torch

from orderproof import positions
from orderproof.encodings import KERPLE, ALiBi
from orderproof.errors import EncodingError
from tests.encodings.examples import normal


def softplus(x: float) -> float:
    return math.log1p(math.exp(x))


@pytest.mark.parametrize("kind", ["log", "power"])
def test_bias_is_the_formula_of_the_paper(kind: str) -> None:
    kerple = KERPLE(3, kind=kind).double()
    q, k = torch.tensor([[3, 0], [9, 200]]), torch.tensor([0, 3, 7])
    found = kerple.bias(q, k, dtype=torch.float64)
    for b, h, i, j in itertools.product(range(2), range(3), range(2), range(3)):
        raw, far = kerple.raw[:, h].tolist(), abs(int(q[b, i]) - int(k[j]))
        r1 = softplus(raw[0])
        if kind == "log":
            expected = -r1 * math.log(1 + softplus(raw[1]) * far)
        else:
            expected = -r1 * far ** (2 / (1 + math.exp(-raw[1])))
        assert float(found[b, h, i, j].detach()) == pytest.approx(expected, rel=1e-13, abs=1e-15)


def test_a_power_of_one_is_alibi() -> None:
    kerple, slopes = KERPLE(8, kind="power").double(), torch.tensor(ALiBi(8).slopes, dtype=torch.float64)
    with torch.no_grad():
        kerple.raw.copy_(torch.stack([torch.log(torch.expm1(slopes)), torch.zeros(8)]))
    p = positions.arange(9)
    found, expected = (e.bias(p, p, dtype=torch.float64) for e in (kerple, ALiBi(8)))
    assert torch.allclose(found, expected, rtol=1e-13)


@pytest.mark.parametrize(("kind", "largest"), [("log", 1.0), ("power", 2.0)])
def test_initial_values_have_the_range_of_the_authors(kind: str, largest: float) -> None:
    torch.manual_seed(0)
    r1, r2 = KERPLE(1000, kind=kind).double().rates().detach()
    for rates, top in ((r1, 2.0), (r2, largest)):
        assert 0 < rates.min() < 0.1 * top
        assert 0.9 * top < rates.max() < top
        assert float(rates.mean()) == pytest.approx(top / 2, rel=0.1)


@pytest.mark.parametrize("kind", ["log", "power"])
def test_parameters_stay_in_their_bounds_and_gradients_are_finite(kind: str) -> None:
    kerple, p = KERPLE(4, kind=kind), positions.arange(6)
    with torch.no_grad():
        kerple.raw.copy_(normal(2, 4) * 50)
    r1, r2 = kerple.rates()
    assert (r1 >= 0).all()
    assert (r2 >= 0).all()
    assert kind == "log" or (r2 <= 2).all()
    kerple.bias(p, p).sum().backward()
    assert kerple.raw.grad is not None
    assert kerple.raw.grad.isfinite().all()


def test_invalid_arguments_are_rejected() -> None:
    with pytest.raises(EncodingError, match="KERPLE: kind must be 'log' or 'power', got 'gauss'"):
        KERPLE(2, kind="gauss")
    with pytest.raises(EncodingError, match="KERPLE: heads must be an integer, 1 or more, got 0"):
        KERPLE(0)
