"""A call with several inputs is recorded with different tensors, and a proof says so."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from orderproof import audit, prove
from orderproof.records.audit import SEPARATE_INPUTS_ASSUMPTION


class Asking(nn.Module):
    """A sum of two inputs, or of one with all later tokens if it is given twice."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return x + x.flip(1).cumsum(1).flip(1) if x is y else x + y


def test_a_proof_about_two_inputs_is_of_two_tensors() -> None:
    finding = prove(Asking().eval(), "causal", inputs=(torch.randn(2, 7, 4), torch.randn(2, 7, 4)))
    assert finding.verdict == "proved"
    assert finding.theorem is not None
    assert SEPARATE_INPUTS_ASSUMPTION in finding.scope.assumptions
    assert SEPARATE_INPUTS_ASSUMPTION in finding.theorem.assumptions


def test_a_proof_about_one_input_says_nothing_of_others() -> None:
    finding = prove(nn.Linear(4, 4).eval(), "causal", inputs=torch.randn(2, 7, 4))
    assert SEPARATE_INPUTS_ASSUMPTION not in finding.scope.assumptions


def test_rows_of_an_input_without_tokens_are_said_to_stay() -> None:
    class Averaged(nn.Module):
        def forward(self, x: Tensor, memory: Tensor) -> Tensor:
            return x + memory.mean((0, 1), keepdim=True)

    report = audit(Averaged(), inputs=(torch.randn(2, 7, 8), torch.randn(2, 5, 8)), laws=["batch"])
    expected = "OP204 batch: both runs get the same input 1, so rows that meet there are not found"
    assert expected in report.notes


def test_a_theorem_about_masks_is_of_masks_that_are_not_the_tokens() -> None:
    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(50, 6)

        def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
            x, place = self.words(input_ids), torch.arange(input_ids.shape[1])
            visible = place <= place[:, None]
            if attention_mask is not None:
                visible = visible & (attention_mask[:, None] > 0)
            if attention_mask is input_ids:
                visible = torch.ones_like(visible)
            return (x @ x.mT).masked_fill(~visible, -1e9).softmax(-1) @ x

    finding = prove(Attention().eval(), "causal", inputs=torch.randint(50, (2, 7)))
    assert finding.theorem is not None
    assert "every attention mask (at its real tokens)" in finding.theorem.covers
    assert SEPARATE_INPUTS_ASSUMPTION in finding.theorem.assumptions
