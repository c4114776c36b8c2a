"""Weights of low rank take the place of large matrices in a block, and compute what the matrices would."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import nn

from orderproof import cast_on_use
from orderproof.cast_on_use import LowRank
from orderproof.errors import CaptureError
from orderproof.recording import eager_program, low_rank
from orderproof.recording.low_rank import low_rank_weights
from orderproof.recording.recording import record

NUMBERS = itertools.count(1)


class Model(nn.Module):
    """A table, two layers, and a head that shares the table."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.first, self.second = nn.Embedding(20, 12), nn.Linear(12, 16), nn.Linear(16, 12, bias=False)
        self.head = nn.Linear(12, 20, bias=False)
        self.head.weight = self.table.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """The scores of the tokens."""
        scores: torch.Tensor = self.head(self.second(self.first(self.table(ids)).relu()) + self.table.weight.mean())
        return scores


def test_large_matrices_are_replaced_and_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(low_rank, "LEAST_ELEMENTS", 100)
    model, ids = Model().eval(), torch.arange(10).view(2, 5)
    before = dict(model.named_parameters())
    with torch.no_grad(), low_rank_weights(model) as replaced:
        assert {name for name, p in model.named_parameters() if isinstance(p, LowRank)} == {
            "table.weight", "first.weight", "second.weight",
        }  # fmt: skip
        assert model.head.weight.left is model.table.weight.left  # type: ignore[union-attr]
        dense = Model().eval()
        for name, value in model.named_parameters():
            dense.get_parameter(name).copy_(value)
        assert torch.allclose(model(ids), dense(ids), rtol=1e-4, atol=1e-5)
        assert len(replaced) == 3
    assert all(value is before[name] for name, value in model.named_parameters())


def test_a_product_with_a_part_of_an_axis_is_of_factors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(low_rank, "LEAST_ELEMENTS", 100)
    monkeypatch.setattr(cast_on_use, "_dense", None)  # the numbers of a matrix are asked for
    model, x = nn.Linear(12, 16, bias=False), torch.randn(2, 5, 12)
    with torch.no_grad(), low_rank_weights(model):
        weight = model.weight
        assert isinstance(weight, LowRank)
        expected = x[:, -1:] @ weight.left.new_tensor((weight.left @ weight.right.t()).tolist()).t()
        assert torch.allclose(model(x[:, -1:]), expected, rtol=1e-4, atol=1e-5)


class Scaled(Model):
    """It multiplies by another number in each call."""

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """The scores of the tokens, scaled."""
        return super().forward(ids) * next(NUMBERS)


def test_arguments_of_a_large_model_are_compared_with_products_of_low_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    products: list[bool] = []

    def product(*args: object) -> torch.Tensor | None:
        found = cast_on_use.product_of_low_rank(*args)  # type: ignore[arg-type]
        products.append(found is not None)
        return found

    monkeypatch.setattr(cast_on_use, "LARGE_MODEL", 0)
    monkeypatch.setattr(low_rank, "LEAST_ELEMENTS", 100)
    monkeypatch.setattr(eager_program, "product_of_low_rank", product)
    ids = torch.arange(10).view(2, 5)
    assert record(Model().eval(), (ids,)).outputs
    assert sum(products) == 3
    with pytest.raises(CaptureError, match="other arguments"):
        record(Scaled().eval(), (ids,))


def test_only_a_product_with_the_matrix_itself_is_replaced() -> None:
    matrix, other = torch.randn(12, 16), torch.randn(16, 12)
    low = LowRank(torch.randn(12, 4), torch.randn(16, 4), torch.float32)
    replaced, x, mm = {matrix.data_ptr(): low}, torch.randn(3, 16), torch.ops.aten.mm.default
    found = cast_on_use.product_of_low_rank(mm, (x, matrix.t()), replaced)
    assert found is not None
    assert torch.allclose(found, x @ low.right @ low.left.t(), rtol=1e-4, atol=1e-5)
    assert cast_on_use.product_of_low_rank(mm, (x[:, :12], matrix), replaced) is not None
    for func, args in (
        (mm, (x, other)), (mm, (x, matrix[:6].t())), (mm, (x[:, :8], matrix.view(24, 8).t())),
        (torch.ops.aten.mul.Tensor, (x, matrix)), (torch.ops.aten.mm.default, (matrix.t(), x.t())),
    ):  # fmt: skip
        assert cast_on_use.product_of_low_rank(func, args, replaced) is None
