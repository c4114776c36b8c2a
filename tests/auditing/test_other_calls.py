"""A law that is proved at one length or mask is compared at others: a program may branch on either."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from orderproof import audit
from orderproof.auditing.api import audit_context, report_on_law
from orderproof.auditing.other_calls import lengths_without_theorem
from orderproof.models import from_module
from orderproof.records.audit import Finding, Report, Scope, Theorem
from orderproof.report import phrases
from orderproof.report.law_groups import short_evidence

MANY = 1000


class Decoder(nn.Module):
    """One layer of attention over embedded tokens; subclasses choose the masks."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.project, self.head = nn.Embedding(50, 16), nn.Linear(16, 48), nn.Linear(16, 50)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Logits [batch, token, 50] of ids [batch, token]."""
        return self.logits(input_ids, attention_mask)

    def logits(self, input_ids: Tensor, mask: Tensor | None) -> Tensor:
        """The logits with a mask, 1 at real tokens."""
        x = self.embed(input_ids)
        query, key, value = self.project(x).unsqueeze(1).chunk(3, -1)
        keys = torch.ones_like(input_ids) if mask is None else mask
        visible = keys[:, None, None, :].bool()
        if not self.leaks(input_ids, mask):
            visible = visible & torch.ones(query.shape[-2], query.shape[-2], dtype=torch.bool).tril()
        bias = torch.where(visible, 0.0, torch.finfo(torch.float32).min)
        mixed: Tensor = self.head(x + functional.scaled_dot_product_attention(query, key, value, bias).squeeze(1))
        return mixed

    def leaks(self, input_ids: Tensor, mask: Tensor | None) -> bool:
        """Whether later tokens are visible in this call."""
        raise NotImplementedError


class PadsRightInTheFirstRow(Decoder):
    """It leaks where the last token of the first row is a pad."""

    def leaks(self, input_ids: Tensor, mask: Tensor | None) -> bool:
        return mask is not None and not bool(mask[0, -1])


class PadsLeftInEachRow(Decoder):
    """It leaks where each row begins with a pad, as in a batch for generation."""

    def leaks(self, input_ids: Tensor, mask: Tensor | None) -> bool:
        return mask is not None and not bool(mask[:, 0].any())


class MaskWithoutPads(Decoder):
    """It leaks where a mask is given that has no pads."""

    def leaks(self, input_ids: Tensor, mask: Tensor | None) -> bool:
        return mask is not None and bool(mask.all())


class LongInputs(Decoder):
    """It leaks from 64 tokens on."""

    def forward(self, input_ids: Tensor) -> Tensor:  # type: ignore[override]
        return self.logits(input_ids, None)

    def leaks(self, input_ids: Tensor, mask: Tensor | None) -> bool:
        return input_ids.shape[1] >= 64


class UnknownLengths(LongInputs):
    """The same, in a program that no recording with an open length can be made of."""

    def leaks(self, input_ids: Tensor, mask: Tensor | None) -> bool:
        return len(range(int(input_ids.shape[1]))) >= 64


class VisibleMask(Decoder):
    """It leaks where a mask is given, whose name is not a common one."""

    def forward(self, input_ids: Tensor, visible: Tensor | None = None, token_mask: Tensor | None = None) -> Tensor:  # type: ignore[override]
        return self.logits(input_ids, token_mask)

    def leaks(self, input_ids: Tensor, mask: Tensor | None) -> bool:
        return mask is not None


class HiddenMask(VisibleMask):
    """The same, with a mask that is True at pads."""

    def logits(self, input_ids: Tensor, mask: Tensor | None) -> Tensor:
        return super().logits(input_ids, None if mask is None else ~mask)


class HonestAboutFew(Decoder):
    """It never leaks, and reads the values of the mask, so that no theorem covers every mask."""

    def leaks(self, input_ids: Tensor, mask: Tensor | None) -> bool:
        return mask is not None and int(mask.sum()) > MANY


def _report(model: type[Decoder], **options: object) -> Report:
    torch.manual_seed(0)
    return audit(from_module(model(), (torch.randint(0, 50, (2, 7)),)), **options)  # type: ignore[arg-type]


def _causal(model: type[Decoder]) -> list[Finding]:
    torch.manual_seed(0)
    subject = from_module(model(), (torch.randint(0, 50, (2, 7)),))
    return list(report_on_law(audit_context(subject), "causal").findings)


@pytest.mark.parametrize(
    ("model", "layout", "words"),
    [
        (PadsRightInTheFirstRow, "padded right first", "in a batch padded on the right and on the left"),
        (PadsLeftInEachRow, "padded left", "in a batch padded on the left"),
        (MaskWithoutPads, "no pads", "with a mask without pads"),
    ],
)
def test_a_leak_with_pads_at_other_places_is_a_failed_check(model: type[Decoder], layout: str, words: str) -> None:
    plain, padded = _causal(model)
    assert (plain.verdict, plain.call_mode) == ("proved", "")
    assert (padded.verdict, padded.call_mode, padded.expectation_met) == ("refuted", layout, False)
    assert padded.witness is not None
    assert padded.witness.change.endswith(words)
    assert phrases.law_title(padded) == f"OP201 causal ({layout})"


def test_a_call_is_expected_to_be_like_the_proved_one() -> None:
    report = _report(PadsLeftInEachRow)
    padded = next(f for f in report.findings if f.law == "causal" and f.call_mode)
    assert (padded.expected, padded.outcome) == ("holds", "fail")
    assert padded.expected_because == "it is proved at 7 tokens with pads at other places"
    assert "FAIL OP201 causal (padded left)" in str(report)


@pytest.mark.parametrize(("model", "length"), [(LongInputs, 64), (UnknownLengths, 65)])
def test_a_leak_at_other_lengths_is_a_failed_check(model: type[Decoder], length: int) -> None:
    report = _report(model, laws=["causal", "batch"])
    causal = next(f for f in report.findings if f.law == "causal")
    assert (causal.verdict, causal.expectation_met, causal.scope.length) == ("refuted", False, length)
    assert causal.witness is not None
    assert causal.witness.onset == f"it is proved at 7 tokens and violated with {length} tokens"
    assert causal.witness.onset in str(report).replace("\n", " ")
    assert causal.proof is None
    assert "test_other_calls.py:" in causal.fix_source
    assert report.exit_code == 1


@pytest.mark.parametrize(("model", "marked"), [(VisibleMask, "real tokens"), (HiddenMask, "pads")])
def test_a_mask_is_recognised_by_its_effect(model: type[Decoder], marked: str) -> None:
    report = _report(model, laws=["causal", "padding"])
    assert (
        f"argument 'token_mask' is taken for a padding mask, True at {marked}: it hides a token in that way"
        in report.notes
    )
    outcomes = {(f.law, f.call_mode): f.outcome for f in report.findings}
    assert outcomes == {("causal", ""): "pass", ("causal", "padded"): "fail", ("padding", "padded"): "pass"}


def test_the_scope_names_the_calls_that_were_compared() -> None:
    plain, padded = _causal(HonestAboutFew)
    assert (plain.scope.compared_lengths, plain.scope.compared_masks) == ((), ())
    assert padded.scope.compared_lengths == (2, 3, 16, 33, 65, 129, 257)
    assert padded.scope.compared_masks == ("padded right first", "padded left", "padded right", "no pads")
    assert short_evidence(padded) == "proved at 7 tokens, compared at up to 257"
    words = phrases.evidence_text(padded)
    assert "runs at 2, 3, 16, 33, 65, 129 and 257 tokens and with other attention masks (padded right first, " in words


@pytest.mark.parametrize(
    ("theorem", "expected"),
    [
        (Theorem(proved=True), []),
        (Theorem(proved=True, greatest_length=63), [64, 65, 127, 129, 257]),
        (Theorem(proved=True, least_length=3, greatest_length=300), [2, 301, 601]),
        (Theorem(proved=True, conditions=("tokens is even",)), [2, 3, 16, 33, 65, 129, 257]),
        (Theorem(proved=True, open_length=False), [2, 3, 16, 33, 65, 129, 257]),
        (Theorem(proved=False, reason="why"), [2, 3, 16, 33, 65, 129, 257]),
    ],
)
def test_lengths_are_compared_where_no_theorem_holds(theorem: Theorem, expected: list[int]) -> None:
    subject = from_module(LongInputs(), (torch.randint(0, 50, (2, 7)),))
    (finding,) = _causal(HonestAboutFew)[:1]
    one = finding.model_copy(update={"theorem": theorem, "scope": Scope(length=7)})
    assert lengths_without_theorem(subject, one) == expected


def test_a_slow_model_is_compared_at_few_lengths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orderproof.auditing.other_calls.MAX_SECONDS", 0.0)
    _, padded = _causal(HonestAboutFew)
    assert (padded.verdict, padded.scope.compared_lengths) == ("proved", ())
    assert padded.scope.compared_masks == ("padded right first", "padded left", "padded right", "no pads")
