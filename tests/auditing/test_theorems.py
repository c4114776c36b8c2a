"""Theorems of an audit: a theorem about calls with and without a mask holds for both."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from orderproof import prove

TURN = 40  # [tokens] up to which the module keeps the order


class ReversesLongInputs(nn.Module):
    """A map of each token; more than `TURN` tokens are reversed first, in calls with or without a mask."""

    def __init__(self, *, masked: bool) -> None:
        super().__init__()
        self.masked = masked
        self.map = nn.Linear(8, 8)

    def forward(self, x: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """The outputs."""
        reverses = (attention_mask is not None) == self.masked and x.shape[1] > TURN
        return self.map(x.flip(1) if reverses else x)


@pytest.mark.parametrize("masked", [True, False])
def test_the_range_of_lengths_is_that_of_the_calls_with_and_without_a_mask(masked: bool) -> None:
    module, x = ReversesLongInputs(masked=masked).eval(), torch.randn(2, TURN + 1, 8)
    finding = prove(module, "causal", inputs=x[:, :7])
    mask = (torch.ones(2, TURN + 1),) if masked else ()
    kept = (torch.arange(TURN + 1) < TURN)[:, None]
    first, second = module(x, *mask), module(torch.where(kept, x, 0.0), *mask)
    assert not torch.allclose(first[:, :TURN], second[:, :TURN])  # the law fails at this length
    theorem = finding.theorem
    assert theorem is not None
    assert theorem.proved
    assert (theorem.least_length, theorem.greatest_length) == (2, TURN)
    assert theorem.covers[0] == "no attention mask"
    assert theorem.covers[1].startswith("every attention mask")
