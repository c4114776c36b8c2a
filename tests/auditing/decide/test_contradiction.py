"""A proof that runs contradict: a model that branches on its dtype, on state or on chance is named as that."""

from __future__ import annotations

import itertools
import os
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from orderproof import audit, prove
from orderproof.auditing.decide import contradiction, relation
from orderproof.auditing.search.witness import WitnessSearch
from orderproof.records.audit import Deviation, Report

INPUTS = torch.randn(2, 7, 6, generator=torch.Generator().manual_seed(0))
BLAME = "please report it"


class Attention(nn.Module):
    """Attention that is causal if a condition holds in the call."""

    def __init__(self, is_causal: Callable[[Tensor], bool]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.query, self.is_causal = nn.Linear(6, 6), is_causal

    def forward(self, x: Tensor) -> Tensor:
        scores = self.query(x) @ x.transpose(-1, -2)
        if self.is_causal(x):
            scores = scores.masked_fill(torch.ones(x.shape[1], x.shape[1]).triu(1).bool(), -1e9)  # the mask
        return scores.softmax(-1) @ x


class OtherOutputs(Attention):
    """In float64 it returns something of another shape, or by another name."""

    def __init__(self, change: Callable[[Tensor], object]) -> None:
        super().__init__(lambda _: True)
        self.change = change

    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        return y if y.dtype == torch.float32 else self.change(y)  # type: ignore[return-value]


def line_of(text: str) -> int:
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(k for k, line in enumerate(lines, start=1) if line.endswith(text))


def of_dtype(dtype: torch.dtype) -> Attention:
    return Attention(lambda x: x.dtype == dtype)


def blames(report: Report) -> bool:
    return BLAME in report.model_dump_json()


def test_a_mask_in_float32_only_is_named_with_its_line() -> None:
    finding = prove(of_dtype(torch.float32), "causal", inputs=INPUTS)
    assert finding.verdict == "undecided"
    place = f"test_contradiction.py:{line_of('# the mask')}"
    assert finding.reason.startswith("the model computes other things in float64 than in float32 (")
    assert f"{place}): a proof was found for float32, but two runs in float64 differ by " in finding.reason


def test_a_mask_in_float64_only_hides_no_violation_in_float32() -> None:
    report = audit(of_dtype(torch.float64), laws=["causal"], inputs=INPUTS)
    assert report.findings[0].verdict == "refuted"
    assert any("a float64 copy of the model computes something else than the model" in note for note in report.notes)
    assert not blames(report)


def test_without_a_graph_the_dtype_is_the_reason_that_no_witness_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WitnessSearch, "search", _search_without_graph)
    finding = prove(of_dtype(torch.float64), "causal", inputs=INPUTS)
    assert finding.verdict == "undecided"
    assert finding.reason.startswith("the model computes other things in float64 than in float32 (")
    assert f"test_contradiction.py:{line_of('# the mask')}): " in finding.reason
    assert "; no witness was found: " in finding.reason


def _search_without_graph(search: WitnessSearch, weights: str) -> None:
    """The search, if the recorded graph could not be run in float64."""
    del weights
    search.disagrees("float64 copy", 1.0, 0.0)


def test_order_in_float64_only_is_named_too() -> None:
    class Ordered(Attention):
        def forward(self, x: Tensor) -> Tensor:
            y = super().forward(x)
            return y if y.dtype == torch.float32 else y.cumsum(1)

    finding = prove(Ordered(lambda _: False), "permutation", inputs=INPUTS)
    assert finding.verdict == "undecided"
    assert finding.reason.startswith("the model computes other things in float64 than in float32")


@pytest.mark.parametrize(
    "change", [Tensor.sum, lambda y: y[:, :3], lambda y: {"other": y}], ids=["scalar", "shorter", "other name"]
)
def test_other_outputs_in_float64_are_noted_as_the_models(change: Callable[[Tensor], object]) -> None:
    report = audit(OtherOutputs(change), laws=["causal", "batch"], inputs=INPUTS)
    assert [f.verdict for f in report.findings] == ["proved", "proved"]
    assert any("computes something else than the model: it returns no output 'output'" in n for n in report.notes)
    assert not blames(report)


@pytest.mark.parametrize("first", [0, 1])
def test_a_counter_is_no_error_of_the_prover(first: int) -> None:
    count = itertools.count(first)
    assert not blames(audit(Attention(lambda _: next(count) % 2 == 0), laws=["causal"], inputs=INPUTS))


@pytest.mark.parametrize("seed", [0, 1])
def test_a_random_branch_is_no_error_of_the_prover(seed: int) -> None:
    random.seed(seed)
    assert not blames(audit(Attention(lambda _: random.random() < 0.5), laws=["causal"], inputs=INPUTS))
    assert not blames(audit(Attention(lambda _: bool(torch.rand(()) < 0.5)), laws=["causal"], inputs=INPUTS))


def test_the_clock_and_the_environment_are_no_errors_of_the_prover(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORDERPROOF_TEST_MASK", "1")
    assert not blames(audit(Attention(lambda _: time.time_ns() // 1000 % 2 == 0), laws=["causal"], inputs=INPUTS))
    masked = Attention(lambda _: os.environ["ORDERPROOF_TEST_MASK"] == "1")
    report = audit(masked, laws=["causal"], inputs=INPUTS)
    assert report.findings[0].verdict == "proved"
    assert any("environment variables" in text for text in report.findings[0].scope.assumptions)


def deviate(monkeypatch: pytest.MonkeyPatch, deviation: Deviation) -> None:
    """Let runs contradict each proof by this deviation."""
    for module in (relation, contradiction):
        monkeypatch.setattr(module, "measured_deviation", lambda *_, **__: (deviation, True))


def test_chance_that_repeats_once_is_still_found(monkeypatch: pytest.MonkeyPatch) -> None:
    agreeing = iter([True, True, False])
    monkeypatch.setattr(WitnessSearch, "repeats", lambda *_: next(agreeing))
    deviate(monkeypatch, Deviation(float32=0.5))
    finding = prove(Attention(lambda _: True), "causal", inputs=INPUTS)
    assert finding.reason == f"a proof was found, but two runs differ by 0.5: {contradiction.NOT_REPEATABLE}"


def test_a_violation_in_both_dtypes_is_not_excused_by_a_branch(monkeypatch: pytest.MonkeyPatch) -> None:
    deviate(monkeypatch, Deviation(float32=0.5, float64=0.5))
    finding = prove(of_dtype(torch.float32), "causal", inputs=INPUTS)
    assert finding.reason.endswith(contradiction.PROVER_ERROR)


def test_what_is_left_is_an_error_of_the_prover(monkeypatch: pytest.MonkeyPatch) -> None:
    deviate(monkeypatch, Deviation(float32=0.0, float64=0.5))
    finding = prove(Attention(lambda _: True), "causal", inputs=INPUTS)
    assert finding.verdict == "undecided"
    assert finding.reason == f"a proof was found, but two runs differ by 0.5: {contradiction.PROVER_ERROR}"
