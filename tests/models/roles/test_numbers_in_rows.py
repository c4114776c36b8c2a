"""A matrix of floats: [token, width], or [row, token] where calls show that its rows are separate."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from orderproof import prove
from orderproof.models import from_module
from orderproof.models.plain_module import _SEPARATE_ROWS


class Wave(nn.Module):
    """A model of a signal [row, time]."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.out = nn.Conv1d(1, 8, 3, padding=1), nn.Linear(8, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.conv(x[:, None]).transpose(1, 2).relu()).squeeze(-1)


class MaskedMean(nn.Module):
    """Signals less the mean of their real numbers."""

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        mean = (x * mask).sum(1, keepdim=True) / mask.sum(1, keepdim=True)
        return (x - mean).masked_fill(~mask, 0.0)


class Features(nn.Module):
    """A number for each column of a table, which has a fixed number of columns."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.out = nn.Parameter(torch.randn(10, 8)), nn.Linear(8, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.out((x[..., None] * self.weight).relu().mean(1))


class Attention(nn.Module):
    """Attention without weights, of vectors of any width."""

    def forward(self, x: Tensor) -> Tensor:
        return (x @ x.T).softmax(-1) @ x


class Places(nn.Module):
    """The places of the tokens are added to vectors of any width."""

    def forward(self, x: Tensor) -> Tensor:
        return x + torch.arange(len(x))[:, None] / 10


def test_signals_are_rows_of_numbers() -> None:
    subject = from_module(Wave(), torch.randn(2, 24))
    assert subject.axes_text["input 0"].startswith("[batch, token]")
    assert [prove(subject, law).verdict for law in ("batch", "causal")] == ["proved", "refuted"]
    assert sum("axis 1" in note for note in subject.notes) == 1


def test_one_signal_is_a_row_too() -> None:
    subject = from_module(Wave(), torch.randn(1, 24))
    assert subject.axes_text["input 0"].startswith("[batch, token]")


def test_signals_may_have_a_mask() -> None:
    mask = torch.arange(24) < torch.tensor([[24], [9]])
    subject = from_module(MaskedMean(), (torch.randn(2, 24), mask))
    assert subject.axes_text["input 0"].startswith("[batch, token]")
    assert prove(subject, "padding").verdict == "proved"


def test_a_table_of_separate_rows_gets_a_note() -> None:
    subject = from_module(Features(), torch.randn(4, 10))
    assert subject.axes_text["input 0"].startswith("[token, 10]")
    assert _SEPARATE_ROWS in subject.notes
    stated = from_module(Features(), torch.randn(4, 10), token_axis=1)
    assert _SEPARATE_ROWS not in stated.notes


@pytest.mark.parametrize("module", [Attention(), Places(), nn.GRU(6, 6)], ids=lambda m: type(m).__name__)
def test_rows_that_see_each_other_are_tokens(module: nn.Module) -> None:
    subject = from_module(module, torch.randn(5, 6))
    assert subject.axes_text["input 0"].startswith("[token, 6]")
    assert _SEPARATE_ROWS not in subject.notes
