"""A one-hot encoding is recorded where its size does not depend on data."""

import torch
import torch.nn.functional as F
from torch import nn

from orderproof import audit, prove

INPUTS = torch.randn(2, 7, 16)


class Routed(nn.Module):
    """Experts that are chosen for each token; with `mixed` the choice of a token depends on all."""

    def __init__(self, *, mixed=False):
        super().__init__()
        self.gate = nn.Linear(16, 4)
        self.experts = nn.Parameter(torch.randn(4, 16, 16))
        self.mixed = mixed

    def forward(self, x):
        scores = self.gate(x)
        scores = scores - scores.mean(1, keepdim=True) if self.mixed else scores
        chosen = F.one_hot(scores.argmax(-1), num_classes=4).to(x.dtype)
        return torch.einsum("btd,edf,bte->btf", x, self.experts, chosen)


def test_a_choice_of_experts_is_proved_for_every_length():
    for law in ("causal", "permutation", "batch"):
        finding = prove(Routed(), law, inputs=INPUTS)
        assert (finding.verdict, finding.theorem.proved) == ("proved", True)


def test_a_choice_that_depends_on_later_tokens_is_found():
    found = {f.law: f.verdict for f in audit(Routed(mixed=True), inputs=INPUTS, laws=["causal", "batch"]).findings}
    assert found == {"causal": "refuted", "batch": "proved"}


def test_a_number_of_classes_that_depends_on_data_is_refused():
    class Open(nn.Module):
        def forward(self, x):
            return F.one_hot(x.argmax(-1)).float().sum(-1, keepdim=True) + x

    finding = prove(Open(), "causal", inputs=INPUTS)
    assert finding.verdict == "undecided"
    assert "the size of a tensor depends on data" in finding.reason


def test_the_rows_of_attention_weights_are_decided():
    class Weights(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = nn.MultiheadAttention(16, 2, batch_first=True)

        def forward(self, x):
            return self.attention(x, x, x)

    found = {
        (f.law, f.output): f.verdict for f in audit(Weights(), inputs=INPUTS, laws=["batch", "permutation"]).findings
    }
    assert set(found.values()) == {"proved"}
    assert len(found) == 4
