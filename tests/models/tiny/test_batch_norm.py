"""Batch norms of tiny models are calibrated, or unchanged if that fails."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from orderproof.errors import SubjectError
from orderproof.models import from_module, load
from orderproof.models.tiny.batch_norm import calibrate_batch_norm


class Attenuated(nn.Module):
    """Divides its input by 100 and normalises it with a batch norm."""

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


def test_batch_norm_rescales_a_vanishing_signal() -> None:
    module = Attenuated()
    subject = subject_of(module)
    calibrate_batch_norm(subject)
    with torch.no_grad():
        output = module(torch.randn(64, 5, 8, generator=torch.Generator().manual_seed(1)))
    assert 0.5 < float(output.std()) < 2
    assert not module.training
    assert not module.norm.training
    assert module.norm.momentum == 0.1


def test_a_model_with_a_fixed_batch_size_is_not_calibrated() -> None:
    module = Attenuated(rows=2)
    calibrate_batch_norm(subject_of(module))
    assert torch.equal(module.norm.running_var, torch.ones(8))
    assert not module.norm.training


@pytest.mark.parametrize("name", ["mobilenet_v1", "efficientnet"])
def test_a_deep_stack_of_convolutions_distinguishes_two_images(name: str) -> None:
    subject = load(f"arch:{name}", tiny=True)
    with torch.no_grad():
        one, other = (
            next(iter(subject.module(*subject.sample(subject.default_length, k).inputs).values())) for k in (0, 1)
        )
    assert float((one - other).abs().max()) > 0.1 * float(one.abs().max())
