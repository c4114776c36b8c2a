"""Models that return rows and tokens on one axis, as language models that end in `logits.view(-1, words)`."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from orderproof import audit


class LanguageModel(nn.Module):
    def __init__(self, *, causal: bool = True, time_first: bool = False, leaks: bool = False) -> None:
        super().__init__()
        self.words = nn.Embedding(20, 8)
        self.head = nn.Linear(8, 20)
        self.causal, self.time_first, self.leaks = causal, time_first, leaks

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.words(tokens)
        x = x + scaled_dot_product_attention(x, x, x, is_causal=self.causal)
        x = x - x.mean(0, keepdim=True) if self.leaks else x
        y = self.head(x.transpose(0, 1) if self.time_first else x)
        return y.reshape(-1, y.shape[-1])


TOKENS = torch.arange(14).view(2, 7)


@pytest.mark.parametrize("time_first", [False, True])
def test_causality_is_proved_of_flat_logits(time_first: bool) -> None:
    report = audit(LanguageModel(time_first=time_first).eval(), inputs=TOKENS, laws=["causal", "batch"])
    for finding in report.findings:
        assert finding.verdict == "proved"
        assert finding.theorem.proved


def test_a_look_ahead_in_flat_logits_is_refuted() -> None:
    (finding,) = audit(LanguageModel(causal=False).eval(), inputs=TOKENS, laws=["causal"]).findings
    assert finding.verdict == "refuted"


def test_a_leak_between_rows_of_flat_logits_is_refuted() -> None:
    (finding,) = audit(LanguageModel(leaks=True).eval(), inputs=TOKENS, laws=["batch"]).findings
    assert finding.verdict == "refuted"


def test_tokens_before_rows_are_found_where_the_first_row_reaches_the_others() -> None:
    class Reaches(LanguageModel):
        def forward(self, tokens: Tensor) -> Tensor:
            x = self.words(tokens)
            x = x + 0.1 * x[:1]
            return self.head(x.cumsum(1).transpose(0, 1)).reshape(-1, 20)

    found = audit(Reaches().eval(), inputs=TOKENS, laws=["causal", "batch"]).findings
    assert {finding.law: finding.verdict for finding in found} == {"causal": "proved", "batch": "refuted"}


def test_stated_axes_leave_the_output_as_it_is() -> None:
    (finding,) = audit(LanguageModel().eval(), inputs=TOKENS, laws=["causal"], outputs="both, word").findings
    assert finding.verdict == "undecided"
