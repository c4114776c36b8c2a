"""Each kind of padding: pooled outputs, further sequences, masks that are required; modules and corrected twins."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from orderproof import audit
from orderproof.errors import UsageError
from orderproof.records.audit import Finding, Report
from orderproof.report.place import finding_place
from tests.models.roles import padded_modules
from tests.models.roles.padded_modules import CASES, Attention, Case, FinalToken, FirstToken, hidden, ids, real, vectors
from tests.pairs import one_in

LAWS = ("padding", "pooled_padding", "batch_composition")


def audited(case: Case, right: bool) -> Report:
    return audit(case.build(right), inputs=case.inputs(), laws=LAWS, kind="encoder")


def missed(report: Report) -> list[Finding]:
    """The findings of checks that are not as expected."""
    applied = {f.law for f in report.findings if f.measurement is not None or f.proof is not None or f.witness}
    return [f for f in report.findings if f.law in applied and not f.expectation_met and f.verdict != "not_applicable"]


def fault_line(name: str) -> str:
    lines = Path(padded_modules.__file__).read_text(encoding="utf-8").splitlines()
    return next(f"padded_modules.py:{k}" for k, line in enumerate(lines, 1) if line.endswith(f"# fault: {name}"))


@pytest.mark.parametrize("case", one_in(2, CASES), ids=lambda case: case.name)
def test_a_fault_fails_its_law(case: Case) -> None:
    failed = {f.law: f for f in audited(case, False).findings if f.verdict == "refuted"}
    assert case.law in failed
    if case.name != "towers":  # whose fault is in a function that both towers call
        assert finding_place(failed[case.law]).source.endswith(fault_line(case.line or case.name))


@pytest.mark.parametrize("case", one_in(2, CASES), ids=lambda case: case.name)
def test_the_corrected_twin_passes(case: Case) -> None:
    report = audited(case, True)
    assert missed(report) == []
    assert any(f.law == case.law and f.verdict in ("proved", "held") for f in report.findings)


@pytest.mark.parametrize(("module", "side"), [(FirstToken, "right"), (FinalToken, "left")])
def test_a_pool_for_one_side_passes_and_names_the_other(module: type[nn.Module], side: str) -> None:
    inputs = ids() if module is FirstToken else vectors(2, 9)
    report = audit(module(True), inputs=inputs, laws=("padding", "pooled_padding"), kind="encoder")
    assert missed(report) == []
    assert {(f.law, f.call_mode) for f in report.findings} == {("padding", f"padded {side}"), ("pooled_padding", "")}
    other = {"right": "left", "left": "right"}[side]
    assert any(f"ignores pads on the {side}; it reads pads on the {other}" in note for note in report.notes)


def test_places_counted_from_the_wrong_end_lose_real_tokens() -> None:
    case = next(case for case in CASES if case.name == "last")
    found = next(f for f in audited(case, False).findings if f.law == "pooled_padding")
    assert found.witness is not None
    assert found.witness.change.startswith("with 3 pads on the left, real token 6 must change the output")


def test_the_table_names_the_mask_of_each_sequence() -> None:
    cases = {case.name: case for case in CASES}
    roles = {r.name: r.role for r in audited(cases["cross"], True).subject.inputs}
    assert roles["src_mask"] == "padding mask, 1 at real tokens"
    assert roles["tgt_mask"] == "padding mask of tgt, 1 at real tokens"
    assert roles["tgt"] == "a sequence of its own, held in other laws"
    roles = {r.name: r.role for r in audited(cases["memory"], True).subject.inputs}
    assert roles["memory_key_padding_mask"] == "padding mask of memory, True at pads; not given by default"
    roles = {r.name: r.role for r in audited(cases["lengths"], True).subject.inputs}
    assert roles["x_lens"] == "the number of real tokens of each row, for pads on the right"


def test_a_further_sequence_has_findings_of_its_own() -> None:
    case = next(case for case in CASES if case.name == "cross")
    modes = {(f.law, f.call_mode) for f in audited(case, True).findings}
    assert {("padding", "padded"), ("padding", "pads of tgt")} <= modes


class TwoMasks(Attention):
    def forward(self, x: Tensor, keep: Tensor, drop: Tensor) -> Tensor:
        return x + self.attend(x, x, hidden((keep == 0) | drop))


def test_two_masks_that_contradict_each_other_are_refused() -> None:
    inputs = (vectors(2, 9), real(), torch.zeros(2, 9, dtype=torch.bool))
    with pytest.raises(UsageError, match="'keep' and 'drop' both hide tokens, one with 1 at real tokens and the other"):
        audit(TwoMasks(True), inputs=inputs, laws=("padding",))
    report = audit(TwoMasks(True), inputs=inputs, laws=("padding",), roles={"drop": "mask"})
    assert [f.verdict for f in report.findings] == ["proved"]


def test_a_stated_mask_that_hides_nothing_is_refused() -> None:
    class Dropped(Attention):
        def forward(self, x: Tensor, keep: Tensor) -> Tensor:
            return x + self.attend(x, x, 0.0)

    with pytest.raises(UsageError, match="expected input 'keep' to hide tokens; it hides none"):
        audit(Dropped(True), inputs=(vectors(2, 9), real()), laws=("padding",), roles={"keep": "mask"})
    report = audit(Dropped(True), inputs=(vectors(2, 9), real()), laws=("padding",), roles={"keep": "mask:real"})
    assert [f.verdict for f in report.findings] == ["refuted"]


def test_lengths_have_pads_on_the_right_only() -> None:
    case = next(case for case in CASES if case.name == "lengths")
    modes = {f.call_mode for f in audited(case, True).findings if f.law == "padding"}
    assert modes == {"padded right"}


class CountedKeys(Attention):
    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        counted = torch.arange(x.shape[1])[None] < mask.sum(1, keepdim=True)
        return x + self.attend(x, x, hidden(~counted))


def test_a_mask_that_hides_all_keys_is_read_the_other_way_round() -> None:
    inputs = {"x": torch.randn(2, 9, 16), "mask": torch.ones(2, 9).long()}
    report = audit(CountedKeys(True), inputs=inputs, roles={"mask": "mask"}, laws=("batch",))
    assert {r.name: r.role for r in report.subject.inputs}["mask"].startswith("padding mask, 1 at real tokens")
    assert {f.verdict for f in report.findings} == {"proved"}
