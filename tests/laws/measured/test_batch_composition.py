"""Batch composition of models that are called with a batch and give another number of rows."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from orderproof.errors import UnsupportedCallError
from orderproof.laws.measured.batch_composition import _compare_rows


@pytest.mark.parametrize("rows", [(0,), (1, 0, 1)])
def test_output_without_one_row_per_row_is_not_compared(rows: tuple[int, ...]) -> None:
    """A vision model may put the patches of all images into one axis."""
    calls = SimpleNamespace(default_output=torch.zeros(8, 64), default_tokens=torch.zeros(2, 4, 64))
    with pytest.raises(UnsupportedCallError, match=r"expected an output of shape \[2, \.\.\.\], .* got \[8, 64\]"):
        _compare_rows(calls, rows=rows)
