"""Products of bfloat16 matrices in float32: equal to those of PyTorch up to one rounding, and nothing else changes."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from orderproof.laws.measured import bfloat16_products
from orderproof.laws.measured.bfloat16_products import LEAST_ROWS, float32_products


@pytest.fixture(autouse=True)
def _processor_without_bfloat16(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bfloat16_products, "has_bfloat16_products", lambda: False)


def matrices(rows: int) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    x, weight = torch.randn(2, rows, 48, generator=generator), torch.randn(32, 48, generator=generator)
    return x.bfloat16(), weight.bfloat16(), torch.randn(32, generator=generator).bfloat16()


PRODUCTS = {
    "linear": functional.linear,
    "linear without bias": lambda x, weight, _: functional.linear(x, weight),
    "matrices": lambda x, weight, _: x[0] @ weight.T,
    "batch of matrices": lambda x, weight, _: torch.bmm(x, weight.T.expand(2, 48, 32)),
    "batch of matrices and a sum": lambda x, weight, bias: torch.baddbmm(bias, x, weight.T.expand(2, 48, 32)),
    "scaled sum": lambda x, weight, bias: torch.addmm(bias, x[0], weight.T, beta=0.5, alpha=2.0),
}


@pytest.mark.parametrize("rows", [1, LEAST_ROWS, 16])
@pytest.mark.parametrize("name", PRODUCTS)
def test_a_product_is_that_of_pytorch_up_to_one_rounding(name: str, rows: int) -> None:
    arguments = matrices(rows)
    expected = PRODUCTS[name](*arguments)
    with float32_products():
        found = PRODUCTS[name](*arguments)
    exact = PRODUCTS[name](*(x.double() for x in arguments))
    assert found.dtype == torch.bfloat16
    unit = torch.finfo(torch.bfloat16).eps * exact.abs().max()
    assert float((found.double() - exact).abs().max()) <= unit
    assert float((found.double() - expected.double()).abs().max()) <= 2 * unit


def test_products_in_other_dtypes_are_the_same() -> None:
    x, weight, bias = (tensor.float() for tensor in matrices(8))
    expected = functional.linear(x, weight, bias)
    with float32_products():
        assert torch.equal(functional.linear(x, weight, bias), expected)


def test_autocast_multiplies_in_bfloat16() -> None:
    x, weight, bias = (tensor.float() for tensor in matrices(8))
    with torch.autocast("cpu", torch.bfloat16):
        expected = functional.linear(x, weight, bias)
        with float32_products():
            found = functional.linear(x, weight, bias)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found, expected)
