"""An unexpected exception of a rule is an internal error: no proof, and its reason in the finding."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from orderproof import prove
from orderproof.diagnosis import rule
from orderproof.diagnosis.rule import OperatorCall, lemma_summaries, rules


class Activation(nn.Module):
    """Applies tanh to each element."""

    def forward(self, x: Tensor) -> Tensor:
        return x.tanh()


def test_error_of_a_rule_makes_the_verdict_undecided_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    matching = rule.find_rule(torch.ops.aten.tanh.default)
    assert matching is not None

    def broken(_: OperatorCall) -> None:
        raise IndexError("no such dimension")

    monkeypatch.setitem(rule._by_operator, "aten.tanh.default", replace(matching, apply=broken))  # type: ignore[arg-type]
    finding = prove(Activation(), "permutation", inputs=torch.randn(2, 5, 3))
    assert finding.verdict == "undecided"
    assert "internal error, please report it: the rule of aten.tanh.default failed" in finding.reason
    assert "no such dimension" in finding.reason


def test_each_lemma_has_one_summary() -> None:
    summaries = lemma_summaries()
    assert {each.lemma for each in rules()} <= set(summaries)
    assert len(set(summaries.values())) == len(summaries)
