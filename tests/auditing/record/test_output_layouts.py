"""Outputs with an entry that is no token, before or after the tokens."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from orderproof import prove


class WithSummary(nn.Module):
    """Attention without positions, and the mean of all tokens as one more entry."""

    def __init__(self, *, first: bool) -> None:
        super().__init__()
        self.qkv = nn.Linear(8, 24)
        self.first = first

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        seen = (q @ k.mT).softmax(-1) @ v
        mean = seen.mean(1, keepdim=True)
        return torch.cat([mean, seen] if self.first else [seen, mean], dim=1)


@pytest.mark.parametrize("first", [True, False], ids=["before", "after"])
def test_calls_with_other_rows_agree_wherever_the_other_entry_is(first: bool) -> None:
    finding = prove(WithSummary(first=first), "permutation", inputs=torch.randn(2, 7, 8))
    assert finding.verdict == "proved"
    assert 1 in finding.scope.compared_rows


class OrderedWithSummary(nn.Module):
    """A running sum that counts the tokens, and the mean of all tokens as one more entry."""

    def forward(self, x: Tensor) -> Tensor:
        counted = (x * torch.arange(x.shape[1])[:, None]).cumsum(1)
        return torch.cat([counted, x.mean(1, keepdim=True)], dim=1)


def test_the_other_entry_is_not_taken_for_the_last_token() -> None:
    model, inputs = OrderedWithSummary(), torch.randn(2, 7, 8)
    assert prove(model, "prompt_permutation", inputs=inputs).verdict == "undecided"
    stated = prove(model, "prompt_permutation", inputs=inputs, outputs="batch,token+1,d")
    assert stated.verdict == "refuted"
