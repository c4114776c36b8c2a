"""The line where positions are lost, where the model splits its table."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from orderproof import audit


class SplitTable(nn.Module):
    """Adds halves of a table: the last row to all tokens, or the sum of the rows."""

    def __init__(self, *, summed: bool) -> None:
        super().__init__()
        self.summed = summed
        self.register_buffer("table", torch.arange(512.0).reshape(32, 16))

    def forward(self, x: Tensor) -> Tensor:
        if self.summed:
            low, high = self.table[: x.shape[1]].chunk(2, -1)
            low, high = low.sum(0), high.sum(0)
        else:
            low, high = self.table[x.shape[1]].chunk(2)
        return x + torch.cat([low, high])


@pytest.mark.parametrize("summed", [False, True])
def test_a_table_in_two_parts_is_no_internal_error(summed: bool) -> None:
    model, inputs = SplitTable(summed=summed), torch.randn(2, 7, 16)
    (found,) = audit(model, inputs=inputs, kind="encoder", laws=["permutation"]).findings
    assert found.verdict == "proved"
