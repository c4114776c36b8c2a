"""A theorem of several recordings is tested by runs in each of them, and needs the consent of the recheck."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from orderproof import prove
from orderproof.records.audit import Finding
from orderproof.theorems.facts.moved_fact import MovedFact
from orderproof.theorems.walks.operator_rules import TABLE, load_rooms

TOKENS = (torch.randn(2, 7, 8, generator=torch.Generator().manual_seed(0)),)


class BetweenTwentyAndForty(nn.Module):
    """Does something else with some numbers of tokens than with the seven of an audit."""

    def forward(self, x: Tensor) -> Tensor:
        return self.changed(x) if 20 < x.shape[1] < 40 else x * 2

    def changed(self, x: Tensor) -> Tensor:
        raise NotImplementedError


class Reverses(BetweenTwentyAndForty):
    def changed(self, x: Tensor) -> Tensor:
        return x.flip(1)


class ReversesLargeNumbers(BetweenTwentyAndForty):
    def changed(self, x: Tensor) -> Tensor:
        return x + (x > 50).to(x.dtype).flip(1)


class Adds(BetweenTwentyAndForty):
    def changed(self, x: Tensor) -> Tensor:
        return x + x.cumsum(1)


class Fills(BetweenTwentyAndForty):
    def changed(self, x: Tensor) -> Tensor:
        return x.index_fill(2, torch.zeros(1, dtype=torch.int64), 0.5)


@pytest.fixture
def wrong_flip(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules in which `flip` keeps the order of its operand."""
    load_rooms()
    monkeypatch.setattr(TABLE["flip"], "open_rule", lambda call: call.operand)
    monkeypatch.setattr(TABLE["flip"], "moved_rule", _still)


def _still(call: Any) -> MovedFact:
    fact: MovedFact = call.operand
    return fact


def proof(kind: type[nn.Module], law: str) -> Finding:
    return prove(kind(), law, inputs=TOKENS)


@pytest.mark.parametrize("law", ["causal", "permutation"])
@pytest.mark.usefixtures("wrong_flip")
def test_runs_find_what_a_wrong_rule_misses(law: str) -> None:
    finding = proof(Reverses, law)
    assert finding.verdict != "proved"
    assert finding.theorem is None or not finding.theorem.proved


@pytest.mark.parametrize("law", ["causal", "permutation"])
@pytest.mark.usefixtures("wrong_flip")
def test_the_recheck_refuses_what_runs_do_not_find(law: str) -> None:
    finding = proof(ReversesLargeNumbers, law)
    assert finding.theorem is not None
    assert not finding.theorem.proved
    assert "not accepted by the recheck" in finding.theorem.reason


def test_an_operator_without_a_rule_in_the_recheck_costs_the_theorem() -> None:
    finding = proof(Fills, "causal")
    assert finding.verdict == "proved"
    assert finding.theorem is not None
    assert not finding.theorem.proved
    assert "has no rule in the recheck" in finding.theorem.reason


def test_a_right_theorem_of_several_recordings_stays() -> None:
    finding = proof(Adds, "causal")
    assert finding.theorem is not None
    assert finding.theorem.proved
    assert finding.theorem.greatest_length is None
