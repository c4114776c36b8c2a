"""A violation that shows only where replaced tokens are far larger than the others."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from orderproof import prove


class LargestToken(nn.Module):
    """The largest real token of each row, of which pads are less a number."""

    def __init__(self, number: float) -> None:
        super().__init__()
        self.number, self.last = number, nn.Linear(4, 4)

    def forward(self, x: Tensor, attention_mask: Tensor) -> Tensor:
        """[row, token, 4] and the mask of real tokens to [row, 4]."""
        return self.last((x - self.number * (1 - attention_mask)[..., None]).amax(1))


@pytest.mark.parametrize(("number", "verdict"), [(20.0, "refuted"), (1e9, "proved")])
def test_large_pads_show_that_a_number_hides_none(number: float, verdict: str) -> None:
    torch.manual_seed(0)
    inputs = {"x": torch.randn(2, 6, 4), "attention_mask": torch.ones(2, 6, dtype=torch.long)}
    assert prove(LargestToken(number).eval(), "padding", inputs=inputs).verdict == verdict
