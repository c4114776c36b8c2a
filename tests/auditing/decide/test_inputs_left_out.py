"""A decoder that computes the logits of all tokens only where it is given the targets."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from orderproof import audit


class LanguageModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(20, 8)
        self.head = nn.Linear(8, 20)

    def forward(self, tokens: Tensor, targets: Tensor | None = None) -> Tensor:
        x = self.words(tokens)
        x = x + scaled_dot_product_attention(x, x, x, is_causal=True)
        return self.head(x if targets is not None else x[:, [-1]])


TOKENS = torch.arange(14).view(2, 7)


def test_the_inputs_that_are_not_given_are_named() -> None:
    (finding,) = audit(LanguageModel().eval(), inputs=TOKENS, kind="decoder", laws=["causal"]).findings
    assert finding.reason.endswith("one output per token (not given: targets)")


def test_nothing_is_named_where_all_inputs_are_given() -> None:
    inputs = {"tokens": TOKENS, "targets": TOKENS}
    (finding,) = audit(LanguageModel().eval(), inputs=inputs, kind="decoder", laws=["causal"]).findings
    assert finding.verdict == "proved"
