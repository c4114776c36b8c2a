"""The hints at masks of which a proof knows too little."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from orderproof import prove
from tests.theorems.idioms.stored_masks import Buffer, Frozen

X = torch.randn(2, 7, 6, generator=torch.Generator().manual_seed(0))


def test_the_reason_names_a_parameter_that_holds_a_mask_and_its_advice_helps() -> None:
    undecided = prove(Frozen().eval(), "causal", inputs=X)
    assert undecided.verdict == "undecided"
    assert "; the parameter bias holds a mask, and a proof is for every weight: register it" in undecided.reason
    assert prove(Frozen().eval(), "causal", inputs=X, weights="these").verdict == "proved"
    theorem = prove(Buffer().eval(), "causal", inputs=X).theorem
    assert theorem is not None
    assert theorem.proved


class Small(nn.Module):
    """Attention with a mask that is no masking value."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Attention."""
        return (x @ x.mT + torch.full((x.shape[1], x.shape[1]), -5e3).triu(1)).softmax(-1) @ x


def test_the_reason_names_a_mask_that_hides_small_scores_only() -> None:
    undecided = prove(Small().eval(), "causal", inputs=X)
    assert undecided.verdict == "undecided"
    assert "; a mask of -5000 does not hide scores that are as large: fill with float('-inf') or " in undecided.reason


class Trained(nn.Module):
    """A bias that is trained, or frozen without a mask: attention to every token."""

    def __init__(self, *, trained: bool) -> None:
        super().__init__()
        start = torch.full((7, 7), float("-inf")).triu(1) if trained else torch.zeros(7, 7)
        self.bias = nn.Parameter(start, requires_grad=trained)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Attention."""
        return (x @ x.mT + self.bias).softmax(-1) @ x


@pytest.mark.parametrize("trained", [True, False])
def test_other_parameters_are_no_masks(trained: bool) -> None:
    reason = prove(Trained(trained=trained), "causal", inputs=X).reason
    assert reason
    assert "holds a mask" not in reason
