"""A proved law is compared with other numbers of rows and unusual masks, and apart from what earlier calls left."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from orderproof import audit
from orderproof.auditing.api import audit_context, report_on_law
from orderproof.auditing.search.call_variants import ROWS, rows_without_theorem
from orderproof.batch_layout import padding_slots
from orderproof.blocks import Transformer
from orderproof.models import from_module
from orderproof.models.row_counts import with_row_count
from orderproof.records.audit import Finding, Report, Theorem
from orderproof.report import phrases

MANY = 1000
Leaks = Callable[[Tensor, Tensor | None], bool]


class Attention(nn.Module):
    """One causal layer that shows later tokens where `leaks` says so; fully masked rows are NaN, as in many models."""

    def __init__(self, leaks: Leaks) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.project, self.head = nn.Embedding(50, 16), nn.Linear(16, 48), nn.Linear(16, 50)
        self.leaks = leaks

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Logits [batch, token, 50] of ids [batch, token]."""
        x = self.embed(input_ids)
        query, key, value = self.project(x).chunk(3, -1)
        scores = query @ key.transpose(1, 2) / 4
        if attention_mask is not None:
            scores = scores.masked_fill(attention_mask[:, None, :] == 0, -torch.inf)
        if not self.leaks(input_ids, attention_mask):
            later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
            scores = scores.masked_fill(later, torch.finfo(torch.float32).min)
        logits: Tensor = self.head(x + scores.softmax(-1) @ value)
        return logits


class WithoutMask(Attention):
    """The same layer without a mask."""

    def forward(self, input_ids: Tensor) -> Tensor:  # type: ignore[override]
        return super().forward(input_ids)


class MixesFourRows(WithoutMask):
    """Rows meet in batches of four."""

    def forward(self, input_ids: Tensor) -> Tensor:  # type: ignore[override]
        own = super().forward(input_ids)
        return own + own.mean(0, keepdim=True) if len(range(int(input_ids.shape[0]))) == 4 else own


def _never(_ids: Tensor, _mask: Tensor | None) -> bool:
    return False


def _read(mask: Tensor | None) -> bool:
    """True for a mask; reading its values, a program has no theorem for every mask."""
    return mask is not None and bool(mask.sum() >= 0)


def _report(module: nn.Module, *laws: str) -> Report:
    return audit(from_module(module, (torch.randint(0, 50, (2, 7)),)), laws=laws)


def _findings(module: nn.Module, law: str = "causal") -> dict[str, Finding]:
    subject = from_module(module, (torch.randint(0, 50, (2, 7)),))
    return {f.call_mode: f for f in report_on_law(audit_context(subject), law).findings}


@pytest.mark.parametrize("rows", ROWS)
def test_a_leak_with_other_numbers_of_rows_is_a_failed_check(rows: int) -> None:
    report = _report(WithoutMask(lambda ids, _mask: int(ids.shape[0]) == rows), "causal")
    (causal,) = report.findings
    assert (causal.verdict, causal.outcome, causal.scope.length) == ("refuted", "fail", 7)
    assert causal.witness is not None
    assert causal.witness.onset == f"it is proved with 2 rows and violated with {rows} row{'s' * (rows > 1)}"
    assert causal.witness.onset in str(report).replace("\n", " ")
    assert "test_other_rows.py:" in causal.fix_source
    assert report.exit_code == 1


def test_rows_that_meet_in_batches_of_four_are_a_failed_check() -> None:
    (batch,) = _report(MixesFourRows(_never), "batch").findings
    assert (batch.verdict, batch.outcome) == ("refuted", "fail")


def test_a_leak_of_padded_calls_with_more_rows_is_found() -> None:
    padded = _findings(Attention(lambda ids, mask: _read(mask) and len(ids) == 16))["padded"]
    assert (padded.verdict, padded.expectation_met) == ("refuted", False)
    assert padded.witness is not None
    assert padded.witness.onset.endswith("with 16 rows")


def test_a_violation_that_the_audit_of_the_call_does_not_find_is_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orderproof.auditing.search.witness.WitnessSearch.search", lambda *_: None)
    causal = _findings(WithoutMask(lambda ids, _mask: int(ids.shape[0]) == 4))[""]
    assert (causal.verdict, causal.outcome) == ("undecided", "undecided")
    assert causal.reason == "it is proved with 2 rows, and runs with 4 rows violate it"


@pytest.mark.parametrize(
    ("theorem", "expected"),
    [
        (Theorem(proved=True), (1,)),
        (Theorem(proved=True, conditions=("batch is even",)), ROWS),
        (Theorem(proved=False), ROWS),
        (None, ROWS),
    ],
)
def test_rows_are_compared_where_no_theorem_holds(theorem: Theorem | None, expected: tuple[int, ...]) -> None:
    assert rows_without_theorem(theorem) == expected


def test_a_correct_model_is_proved_and_compared_with_one_row() -> None:
    subject = from_module(Transformer(16, 2, 1, causal=True, vocabulary=50), (torch.randint(0, 50, (2, 7)),))
    causal = report_on_law(audit_context(subject), "causal").findings[0]
    assert (causal.verdict, causal.scope.compared_rows) == ("proved", (1,))
    assert "runs with 1 row agree" in phrases.evidence_text(causal)


def test_an_output_without_an_axis_of_rows_is_not_compared_by_its_other_axes() -> None:
    class Squeezes(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.cumsum(1).squeeze(0)  # with one row, axis 1 is the width

    (finding,) = audit(Squeezes(), inputs=(torch.randn(2, 7, 6),), laws=["causal"]).findings
    assert finding.verdict == "proved"
    assert 1 not in finding.scope.compared_rows


def test_an_input_without_rows_is_the_same_with_every_number_of_rows() -> None:
    class Weighted(nn.Module):
        def forward(self, x: Tensor, weights: Tensor) -> Tensor:
            return x * weights

    subject = from_module(Weighted(), (torch.randn(2, 7, 4), torch.randn(4)))
    five = with_row_count(subject, 5)
    assert five is not None
    assert [tuple(x.shape) for x in five.sample(6).inputs] == [(5, 6, 4), (4,)]
    assert torch.equal(five.sample(6).inputs[1], subject.sample(6).inputs[1])
    assert torch.equal(five.sample(6).inputs[0][:2], subject.sample(6).inputs[0])
    assert with_row_count(from_module(nn.Linear(4, 4), (torch.randn(7, 4),)), 5) is None


def test_a_call_with_other_rows_that_would_end_the_process_is_left_out() -> None:
    def leaks(ids: Tensor, mask: Tensor | None) -> bool:
        if len(ids) == 1:
            sys.exit("not so")
        return mask is not None and int(mask.sum()) > MANY

    found = _findings(Attention(leaks))
    assert {mode: f.verdict for mode, f in found.items()} == {"": "proved", "padded": "proved"}
    assert found["padded"].scope.compared_rows == (3, 4, 16)


@pytest.mark.parametrize(
    ("layout", "leaks"),
    [
        ("pads inside", lambda _ids, mask: _read(mask) and bool((mask[:, 0] & mask[:, -1]).all() and not mask.all())),
        ("one real token", lambda _ids, mask: _read(mask) and int(mask.sum(1).min()) == 1),
        ("one row of pads", lambda _ids, mask: _read(mask) and not mask.any(1).all()),
        (
            "one row without pads",
            lambda _ids, mask: _read(mask) and bool(mask[0].all() and not mask.all() and mask.any(1).all()),
        ),
    ],
)
def test_a_leak_with_an_unusual_mask_is_a_failed_check(layout: str, leaks: Leaks) -> None:
    padded = _report(Attention(leaks), "causal").findings[-1]
    assert (padded.verdict, padded.call_mode, padded.outcome) == ("refuted", layout, "fail")


@pytest.mark.parametrize("law", ["causal", "padding"])
def test_a_row_of_pads_may_be_nan(law: str) -> None:
    padded = _findings(Attention(lambda _ids, mask: mask is not None and int(mask.sum()) > MANY), law)["padded"]
    assert padded.verdict == "proved"
    assert {"pads inside", "one real token", "one row of pads", "one row without pads"} < {*padded.scope.compared_masks}


def test_pads_are_where_their_layout_says() -> None:
    def rows(layout: str, count: int = 3) -> list[str]:
        slots = padding_slots(count, 7, layout=layout)  # type: ignore[arg-type]
        return ["".join(".x"[not pad] for pad in row) for row in slots]

    assert rows("padded", 2) == ["..xxxxx", "xxxxx.."]
    assert rows("padded right first", 2) == ["xx.....", ".....xx"]
    assert rows("padded right", 4) == ["xxxxx..", "xxxxxx.", "xx.....", "xxxxxxx"]
    assert rows("padded left") == ["xxxxxxx", "..xxxxx", ".xxxxxx"]
    assert rows("pads inside") == ["xxx..xx"] * 3
    assert rows("one real token") == ["...x...", "xxxxx..", "..xxxxx"]
    assert rows("one row of pads") == ["..xxxxx", "xxxxx..", "......."]
    assert rows("one row of pads", 1) == ["..xxxxx"]
    assert rows("one row without pads") == ["..xxxxx", "xxxxx..", "xxxxxxx"]


class Counter(WithoutMask):
    """A buffer counts the calls with at least ``least`` tokens, and is added to the logits."""

    def __init__(self, least: int) -> None:
        super().__init__(_never)
        self.least = least
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, input_ids: Tensor) -> Tensor:  # type: ignore[override]
        if len(range(int(input_ids.shape[1]))) >= self.least:
            self.calls += 1
        return super().forward(input_ids) + self.calls


class RunningMean(WithoutMask):
    """It subtracts the running mean of earlier calls; each call replaces the buffer of the mean."""

    def __init__(self) -> None:
        super().__init__(_never)
        self.register_buffer("mean", torch.zeros(50))

    def forward(self, input_ids: Tensor) -> Tensor:  # type: ignore[override]
        logits = super().forward(input_ids)
        before = self.mean
        self.mean = 0.9 * before + 0.1 * logits.detach().mean((0, 1))
        return logits - before


def test_a_state_that_only_longer_calls_change_is_undecided() -> None:
    module = Counter(40)
    for law in ("causal", "batch"):  # the runs of the first law leave no state for those of the second
        (found,) = _report(module, law).findings
        assert (found.verdict, found.outcome) == ("undecided", "undecided")
        assert found.reason == (
            "it is proved at 7 tokens, and calls with 64 tokens change the state of the module, so that equal inputs "
            "give other outputs"
        )
    assert float(module.calls) == 0


@pytest.mark.parametrize("module", [Counter(0), RunningMean()])
def test_a_proof_for_a_module_with_state_is_of_one_call(module: nn.Module) -> None:
    report = _report(module, "causal", "batch", "stateless")
    found = {f.law: f for f in report.findings}
    assert {law: f.verdict for law, f in found.items()} == {
        "causal": "proved", "batch": "proved", "stateless": "refuted",
    }  # fmt: skip
    assert any(text.startswith("of one call: the call changes") for text in found["causal"].scope.assumptions)
    assert "error in the prover" not in str(report)


def test_runs_that_a_kept_state_changes_are_no_error_in_the_prover(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orderproof.auditing.record.execution.changes_state", lambda _captured: False)
    monkeypatch.setattr("orderproof.auditing.search.other_calls.MAX_SECONDS", 0.0)
    causal = _findings(RunningMean())[""]
    assert causal.verdict == "undecided"
    assert "calls change the state of the module" in causal.reason
    assert "error in the prover" not in causal.reason
