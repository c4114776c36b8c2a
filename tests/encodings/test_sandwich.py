from __future__ import annotations

import math

import pytest
import torch

from orderproof import positions
from orderproof.encodings import Sandwich, Sinusoidal
from orderproof.errors import EncodingError


def test_bias_is_the_formula_of_the_paper() -> None:
    q, k = torch.tensor([3, 500_000]), torch.tensor([0, 3, 7])
    found = Sandwich(6).bias(q, k, dtype=torch.float64)
    for h in range(6):
        for i, m in enumerate(q.tolist()):
            for j, n in enumerate(k.tolist()):
                total = math.fsum(math.cos((m - n) * 10_000 ** (-2 * w / 128)) for w in range(64))
                assert float(found[0, h, i, j]) == pytest.approx(6 / (8 * (h + 1)) * total, abs=1e-9)


def test_it_is_the_inner_product_of_sinusoidal_encodings() -> None:
    p = positions.arange(40)
    table = Sinusoidal(128).encoding_table(p, dtype=torch.float64)
    found = Sandwich(8).bias(p, p, dtype=torch.float64)[0, 0]
    assert torch.allclose(found, table @ table.T, atol=1e-12)


def test_invalid_arguments_are_rejected() -> None:
    with pytest.raises(EncodingError, match="Sandwich: width must be an even integer, 2 or more, got 7"):
        Sandwich(2, width=7)
