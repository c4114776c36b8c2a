"""Batch norms of tiny models: with the statistics of what reaches them, or as they were."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from orderproof.errors import SubjectError
from orderproof.subjects import from_module, load
from orderproof.subjects.settling import settle


class Faded(nn.Module):
    """Makes its input a hundredth of what it was, then divides by what its batch norm takes for its size."""

    def __init__(self, rows: int | None = None) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(8)
        self.rows = rows

    def forward(self, x: Tensor) -> Tensor:
        if self.rows not in (None, len(x)):
            raise SubjectError(f"expected {self.rows} rows")
        normed: Tensor = self.norm(x.transpose(1, 2) / 100)
        return normed.transpose(1, 2)


def subject_of(module: nn.Module) -> Any:
    return from_module(module.eval(), (torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0)),))


def test_a_signal_that_fades_is_of_ordinary_size_behind_the_batch_norm() -> None:
    module = Faded()
    subject = subject_of(module)
    settle(subject)
    with torch.no_grad():
        made = module(torch.randn(64, 5, 8, generator=torch.Generator().manual_seed(1)))
    assert 0.5 < float(made.std()) < 2
    assert not module.training
    assert not module.norm.training
    assert module.norm.momentum == 0.1


def test_a_model_that_takes_so_many_rows_and_no_more_stays_as_it_was() -> None:
    module = Faded(rows=2)
    settle(subject_of(module))
    assert torch.equal(module.norm.running_var, torch.ones(8))
    assert not module.norm.training


@pytest.mark.parametrize("name", ["mobilenet_v1", "efficientnet"])
def test_a_deep_stack_of_convolutions_tells_two_images_apart(name: str) -> None:
    subject = load(f"arch:{name}", tiny=True)
    with torch.no_grad():
        one, other = (next(iter(subject.module(*subject.sample(subject.length, k).inputs).values())) for k in (0, 1))
    assert float((one - other).abs().max()) > 0.1 * float(one.abs().max())
