"""Time that runs out after a law is proved at one length does not take that proof away."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from typing import Any, NoReturn

import pytest
import torch
from torch import nn

from orderproof import audit
from orderproof.auditing.decide import verdict
from orderproof.auditing.record import open_calls
from orderproof.records.audit import Finding
from orderproof.time_limit import TimeLimitExceeded, time_limit

ALARM = pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="there is no time limit")


def out_of_time(*_arguments: Any, **_options: Any) -> NoReturn:
    """Take longer than the time limit allows."""
    signal.raise_signal(signal.SIGALRM)
    raise AssertionError("the alarm was not raised")


class Attention(nn.Module):
    """Causal attention."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(6, 6) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        return (self.q(x) @ self.k(x).mT).masked_fill(hidden, float("-inf")).softmax(-1) @ self.v(x)


def _finding(law: str) -> Finding:
    report = audit(Attention(), laws=[law], inputs=torch.randn(2, 7, 6), timeout=100.0)
    (finding,) = report.findings
    assert finding.proof is not None or finding.completion is not None
    return finding


@ALARM
@pytest.mark.parametrize("name", ["prove_agreement", "record_open", "disagreement"])
def test_a_slow_theorem_leaves_the_proof_at_one_length(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(open_calls, name, out_of_time)
    finding = _finding("causal")
    assert (finding.verdict, finding.reason) == ("proved", "")
    assert finding.theorem is not None
    assert (finding.theorem.proved, finding.theorem.reason) == (False, "the proof was not finished within 100 s")


@ALARM
def test_with_time_it_is_a_theorem() -> None:
    theorem = _finding("causal").theorem
    assert theorem is not None
    assert theorem.proved


@ALARM
def test_a_slow_proof_at_one_length_is_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdict.Relation, "findings", out_of_time)
    report = audit(Attention(), laws=["causal"], inputs=torch.randn(2, 7, 6), timeout=100.0)
    assert [(f.verdict, f.reason) for f in report.findings] == [("undecided", "not done after 100 s")]


@ALARM
def test_a_slow_recheck_leaves_the_proof_at_one_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdict, "with_rechecked_theorems", out_of_time)
    finding = _finding("causal")
    assert (finding.verdict, finding.theorem is not None and finding.theorem.proved) == ("proved", False)


@ALARM
def test_a_slow_theorem_leaves_the_entry_map(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_calls, "map_entries", out_of_time)
    finding = _finding("permutation")
    assert finding.verdict == "refuted"
    assert finding.completion is not None
    assert finding.completion.verdict == "proved"
    assert finding.completion.theorem is not None
    assert not finding.completion.theorem.proved


@ALARM
def test_slow_comparisons_leave_the_theorem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdict, "compare_other_calls", out_of_time)
    report = audit(Attention(), laws=["causal"], inputs=torch.randn(2, 7, 6), timeout=100.0)
    (finding,) = report.findings
    assert finding.verdict == "proved"
    assert finding.theorem is not None
    assert finding.theorem.proved
    assert any("causal: there was no time to compare calls" in note for note in report.notes)


def _left() -> float:
    return signal.getitimer(signal.ITIMER_REAL)[0]


@ALARM
@pytest.mark.parametrize(("apart", "expected"), [(False, 50.0), (True, 1000.0)])
def test_a_limit_within_another_one(apart: bool, expected: float) -> None:
    with time_limit(50.0):
        with time_limit(1000.0, apart=apart):
            inner = _left()
        outer = _left()
    assert expected - 10 < inner <= expected
    assert 40 < outer <= 50.0
    assert _left() == 0


@ALARM
def test_the_outer_limit_counts_the_time_of_the_inner_one() -> None:
    def wait(apart: bool) -> Callable[[], None]:
        def inner() -> None:
            with time_limit(1000.0, apart=apart):
                time.sleep(0.1)

        return inner

    for apart in (False, True):
        with time_limit(50.0):
            before = _left()
            wait(apart)()
            taken = before - _left()
        assert (taken < 0.09) == apart


@ALARM
def test_an_outer_limit_that_has_passed_ends_the_work() -> None:
    with pytest.raises(TimeLimitExceeded), time_limit(0.05), time_limit(1000.0):
        time.sleep(5)
