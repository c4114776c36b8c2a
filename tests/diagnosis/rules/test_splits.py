"""Parts of a dimension that do not adjoin have no lemma."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from orderproof import prove


class Parts(nn.Module):
    """The tokens in parts that begin and end at these indices, and overlap where the indices decrease."""

    def __init__(self, indices: list[int]) -> None:
        super().__init__()
        self.indices = indices

    def forward(self, x: Tensor) -> Tensor:
        parts = x.tensor_split(self.indices, 1)
        return torch.cat([part.cumsum(1) for part in parts], 1)[:, : x.shape[1]]


@pytest.mark.parametrize("indices", [[5, 3], [6, 1, 2]])
def test_overlapping_parts_are_undecided(indices: list[int]) -> None:
    finding = prove(Parts(indices).eval(), "causal", inputs=torch.randn(2, 7, 6))
    assert finding.verdict != "proved"
    assert "internal error" not in finding.reason


@pytest.mark.parametrize("indices", [[3, 5], [0, 7], [-2]])
def test_adjoining_parts_are_proved(indices: list[int]) -> None:
    assert prove(Parts(indices).eval(), "causal", inputs=torch.randn(2, 7, 6)).verdict == "proved"
