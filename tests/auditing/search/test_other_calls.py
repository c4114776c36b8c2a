"""A law that is proved at one length or mask is compared at others: a program may branch on either."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from orderproof import audit, explain
from orderproof.auditing.api import audit_context, report_on_law
from orderproof.auditing.decide.theorems import MASK_ASSUMPTION
from orderproof.auditing.search.call_variants import LENGTHS, lengths_without_theorem
from orderproof.batch_layout import PAD_LAYOUTS
from orderproof.errors import INTERNAL_ERROR
from orderproof.models import from_module, load
from orderproof.records.audit import Finding, Report, Scope, Theorem
from orderproof.report import phrases
from orderproof.report.law_groups import short_evidence
from tests.pairs import one_in

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
    how = "if this is intended, state it: --as encoder or --expect causal=fails"
    assert padded.expected_because == f"it is proved at 7 tokens with pads at other places; {how}"
    assert "FAIL OP201 causal (padded left)" in str(report)


@pytest.mark.parametrize(("model", "length"), [(LongInputs, 64), (UnknownLengths, 64)])
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
        f"argument 'token_mask' is taken for a padding mask, True at {marked}, since it hides a token in that way; "
        "--role NAME=mask (in Python roles=) states another, --role token_mask=held says that there is none"
    ) in report.notes
    outcomes = {(f.law, f.call_mode): f.outcome for f in report.findings}
    assert outcomes == {("causal", ""): "pass", ("causal", "padded"): "fail", ("padding", "padded"): "pass"}


def test_the_scope_names_the_calls_that_were_compared() -> None:
    plain, padded = _causal(HonestAboutFew)
    assert (plain.scope.compared_lengths, plain.scope.compared_masks) == ((), ())
    assert padded.scope.compared_lengths == LENGTHS
    assert padded.scope.compared_masks == PAD_LAYOUTS[1:]
    assert (plain.scope.compared_rows, padded.scope.compared_rows) == ((1,), (1, 3, 4, 16))
    known, why = short_evidence(padded).split("; ", 1)
    assert known == "proved at 7 tokens, compared at up to 320 and with 1, 3, 4 and 16 rows"
    assert why.startswith("for every length not proved: the graph cannot be recorded: control flow depends on data")
    words = phrases.evidence_text(padded)
    assert (
        "runs at 2, 3, 16, 33, 64, 65, 128, 257, 258 and 320 tokens, with 1, 3, 4 and 16 rows and with other attention "
        "masks (padded right"
    ) in words


@pytest.mark.parametrize(
    ("theorem", "expected"),
    one_in(
        2,
        [
            (Theorem(proved=True), []),
            (Theorem(proved=True, greatest_length=63), [64, 65, 127, 128, 257, 258, 320]),
            (Theorem(proved=True, least_length=3, greatest_length=300), [2, 301, 320, 601]),
            (Theorem(proved=True, conditions=("tokens is even",)), [*LENGTHS]),
            (Theorem(proved=True, open_length=False), [*LENGTHS]),
            (Theorem(proved=False, reason="why"), [*LENGTHS]),
        ],
    ),
)
def test_lengths_are_compared_where_no_theorem_holds(theorem: Theorem, expected: list[int]) -> None:
    subject = from_module(LongInputs(), (torch.randint(0, 50, (2, 7)),))
    (finding,) = _causal(HonestAboutFew)[:1]
    one = finding.model_copy(update={"theorem": theorem, "scope": Scope(length=7)})
    assert lengths_without_theorem(subject, one) == expected


def test_a_slow_model_is_compared_in_few_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orderproof.auditing.search.other_calls.MAX_SECONDS", 0.0)
    _, padded = _causal(HonestAboutFew)
    assert (padded.verdict, padded.scope.compared_lengths) == ("proved", ())
    assert (padded.scope.compared_masks, padded.scope.compared_rows) == ((), ())


class AnyKeyword(VisibleMask):
    """The same leak in a module that passes all keywords on."""

    def forward(self, input_ids: Tensor, **options: Tensor) -> Tensor:  # type: ignore[override]
        return self.logits(input_ids, options.get("attention_mask"))


class AnyArgument(VisibleMask):
    """The same leak for a second argument without a name."""

    def forward(self, input_ids: Tensor, *masks: Tensor) -> Tensor:  # type: ignore[override]
        return self.logits(input_ids, masks[0] if masks else None)


class MixesRowsWithMask(Decoder):
    """Rows meet where a mask is given."""

    def logits(self, input_ids: Tensor, mask: Tensor | None) -> Tensor:
        own = super().logits(input_ids, mask)
        return own if mask is None else own + own.mean(0, keepdim=True)

    def leaks(self, input_ids: Tensor, mask: Tensor | None) -> bool:
        return False


class Hidden:
    """An object that holds a tensor, which is no container."""

    def __init__(self, logits: Tensor) -> None:
        self.logits = logits


class ReturnsAnObject(Decoder):
    """A second output is an attribute of an object."""

    def forward(self, input_ids: Tensor) -> dict[str, object]:  # type: ignore[override]
        return {"hidden": self.embed(input_ids), "rest": Hidden(self.embed(input_ids.flip(1))), "count": 2}


def test_a_mask_among_all_keywords_is_given_too() -> None:
    report = _report(AnyKeyword, laws=["causal"])
    outcomes = {f.call_mode: f.outcome for f in report.findings}
    assert outcomes == {"": "pass", "padded": "fail"}
    plain = next(f for f in report.findings if not f.call_mode)
    assert "with the defaults of **options in forward" in plain.scope.assumptions


def test_arguments_without_names_are_said_to_be_left_out() -> None:
    report = _report(AnyArgument, laws=["causal"])
    expected = (
        "OP201 causal is proved with the defaults of *masks in forward; whether it holds with a mask was not checked"
    )
    assert any(note.startswith(expected) for note in report.notes)


def test_rows_that_meet_in_calls_with_a_mask_are_a_failed_check() -> None:
    outcomes = {f.call_mode: f.outcome for f in _report(MixesRowsWithMask, laws=["batch"]).findings}
    assert outcomes == {"": "pass", "padded": "fail"}


def test_outputs_that_are_not_looked_into_are_named() -> None:
    report = _report(ReturnsAnObject, laws=["causal"])
    assert [f.output for f in report.findings] == ["hidden"]
    assert "output 'rest' is an object of type Hidden: tensors in it are not audited" in report.notes


def test_one_tensor_given_twice_is_said_to_be_two() -> None:
    class Joined(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            return x.flip(1) if x is y else x + y

    x = torch.randn(2, 7, 4)
    said = "input 0 and input 1 are one tensor in the example and two in the audit"
    assert any(note.startswith(said) for note in from_module(Joined(), (x, x)).notes)
    assert not any(note.startswith(said) for note in from_module(Joined(), (x, x.clone())).notes)


def test_a_theorem_says_which_masks_and_layouts_it_is_about() -> None:
    (plain,) = _causal(type("Honest", (HonestAboutFew,), {"leaks": lambda *_: False}))
    assert plain.theorem is not None
    assert plain.theorem.covers == ("no attention mask", "every attention mask (at its real tokens)")
    assert MASK_ASSUMPTION in plain.theorem.assumptions
    assert "at the recorded dtype, layout and device" in plain.theorem.assumptions[0]


def test_a_vacuous_proof_is_compared_at_other_lengths() -> None:
    class MovesForwardOnceInSixtyFour(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            steps = x.shape[1] // 64
            return functional.pad(x, (0, 0, 0, steps))[:, steps:]

    module, x = MovesForwardOnceInSixtyFour(), torch.randn(2, 7, 6)
    (finding,) = audit(module, inputs=(x,), laws=["causal"]).findings
    assert (finding.verdict, finding.witness is not None) == ("refuted", True)


class EndsTheProcess(Decoder):
    """A call with a mask, or of many tokens, ends the process."""

    def forward(self, input_ids: Tensor, some_mask: Tensor | None = None) -> Tensor:  # type: ignore[override]
        if some_mask is not None or len(range(int(input_ids.shape[1]))) >= 64:
            sys.exit("not so")
        return self.logits(input_ids, None)

    def leaks(self, input_ids: Tensor, mask: Tensor | None) -> bool:
        return False


class NeverReturns(Decoder):
    """A call with a mask does not return."""

    def forward(self, input_ids: Tensor, some_mask: Tensor | None = None) -> Tensor:  # type: ignore[override]
        while some_mask is not None:
            time.sleep(0.01)
        return self.logits(input_ids, None)

    def leaks(self, input_ids: Tensor, mask: Tensor | None) -> bool:
        return False


def test_a_call_that_would_end_the_process_is_left_out() -> None:
    (plain,) = _causal(EndsTheProcess)
    assert plain.verdict == "proved"
    assert max(plain.scope.compared_lengths) < 64


def test_a_call_with_a_mask_that_does_not_return_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orderproof.models.roles.mask_calls.MAX_SECONDS", 0.5)
    (plain,) = _causal(NeverReturns)
    assert plain.verdict == "proved"


def test_reports_name_every_layout_of_pads() -> None:
    assert {*PAD_LAYOUTS} - {"padded"} <= {*phrases.NAMED_CALL_MODES}
    page = Path(explain.__file__).with_name("static") / "report_phrases.js"
    assert all(json.dumps(layout) in page.read_text(encoding="utf-8") for layout in PAD_LAYOUTS)


@pytest.mark.parametrize(("name", "verdict"), [("whisper", "proved"), ("gemma4_vision", "undecided")])
def test_a_model_without_tokens_is_run_with_inputs_of_its_own_size_only(name: str, verdict: str) -> None:
    report = audit(load(f"arch:{name}", tiny=True), laws=["batch"])
    assert [f.verdict for f in report.findings] == [verdict]
    assert not [note for note in report.notes if INTERNAL_ERROR in note]
