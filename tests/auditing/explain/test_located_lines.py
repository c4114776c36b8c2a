"""Each faulty module is located at its line with a remedy for the operator there, and its corrected twin passes.

The modules are in `located/`: experts with a capacity, packed documents, calls on a cache, and padded rows.
"""

from __future__ import annotations

import io
from functools import cache

import pytest
import torch
from rich.console import Console
from torch import nn

from orderproof import audit
from orderproof.records.audit import Finding, Report
from orderproof.report.html_page import render_html
from orderproof.report.markdown import render_markdown
from orderproof.report.place import shown_place
from orderproof.report.terminal import render_text
from tests.auditing.explain.located import caching, capacity, packing, padding
from tests.auditing.explain.located.lines import marked_line

PADS, ROWS, COMPOSITION, PACKING = "padding", "batch", "batch_composition", "packing"
DECODING, CHUNKS = "cached_decoding", "chunked_prefill"
LEFT, RIGHT = "left_padded_decoding", "right_padded_decoding"
LOCATED: dict[type[nn.Module], dict[str, str]] = {  # the laws that fail, with words of the remedy
    capacity.SwitchRouter: {PADS: "running sum"},
    capacity.ExpertsFirst: {PADS: "running sum", COMPOSITION: "running sum"},
    capacity.TopTwo: {PADS: "running sum", ROWS: "running sum", COMPOSITION: "running sum"},
    capacity.TokensFirst: {PADS: "running sum", ROWS: "running sum", COMPOSITION: "running sum"},
    capacity.ExpertChoice: {PADS: "this choice"},
    capacity.SharedLoad: {PADS: "this statistic", ROWS: "statistics", COMPOSITION: "this statistic"},
    packing.GPTNeoXAttention: {PACKING: "Attend within a document"},
    packing.ShortConvolution: {PACKING: "this convolution"},
    packing.LinearAttention: {PACKING: "from the zero state"},
    packing.RunningMean: {PACKING: "this running sum"},
    packing.CentredRow: {PACKING: "this statistic"},
    packing.Pooled: {PACKING: "Pool within a document"},
    caching.GPT2Positions: {DECODING: "Count positions on", CHUNKS: "Count positions on"},
    caching.KeysFromZero: {DECODING: "Count positions on", CHUNKS: "Count positions on"},
    caching.TopLeftMask: {DECODING: "align the causal mask", CHUNKS: "align the causal mask"},
    caching.ShortConvolution: {DECODING: "this convolution", CHUNKS: "this convolution"},
    caching.GatedScan: {CHUNKS: "this recurrence"},
    caching.RunningSum: {DECODING: "running sum", CHUNKS: "running sum"},
    caching.NormalisedCall: {DECODING: "this statistic", CHUNKS: "this statistic"},
    caching.WindowCutFirst: {CHUNKS: "drop keys of a window after the call"},
    padding.BertAttention: {PADS: "before the softmax", COMPOSITION: "Apply the padding mask"},
    padding.ConvolutionModule: {PADS: "this convolution", COMPOSITION: "this convolution"},
    padding.Recurrent: {PADS: "out of the state"},
    padding.QuantisedTensor: {PADS: "this statistic", ROWS: "statistics, scales", COMPOSITION: "this statistic"},
    padding.PooledWindow: {PADS: "this pooling", COMPOSITION: "Pool within a row"},
    padding.Mixed: {PADS: "this operator", COMPOSITION: "padding mask"},
    padding.RowsAsTokens: {PADS: "before the softmax", ROWS: "Attend within a row", COMPOSITION: "padding mask"},
    padding.PadsCounted: {LEFT: "count positions by the mask", RIGHT: "padding mask"},
    padding.MaskDroppedOnCache: {LEFT: "padding mask of every cached token", RIGHT: "single token"},
}
OF_ATTENTION = {
    packing.GPTNeoXAttention, caching.TopLeftMask, caching.WindowCutFirst, padding.BertAttention, padding.RowsAsTokens,
    padding.PadsCounted, padding.MaskDroppedOnCache,
}  # fmt: skip


@cache
def audited(part: type[nn.Module], *, faulty: bool) -> Report:
    module, laws = part(faulty), list(LOCATED[part])
    if isinstance(module, caching.Cached):
        return audit(caching.CachedAdapter(module), laws=laws)
    if isinstance(module, padding.CachedAndPadded):
        return audit(padding.PaddedAdapter(module), laws=laws)
    if isinstance(module, packing.Packed):
        inputs = {"x": torch.randn(2, 9, 8), "position_ids": torch.arange(9).repeat(2, 1)}
        return audit(module, inputs=inputs, laws=laws, expect={PACKING: "holds"})
    return audit(module, inputs=torch.randint(50, (2, 9)), kind="encoder", laws=laws)


def place_of(finding: Finding) -> tuple[str, int]:
    file, _, line = shown_place(finding).source.rpartition(":")
    return file.rsplit("/", 1)[-1], int(line or 0)


@pytest.mark.parametrize("part", LOCATED)
def test_the_line_is_that_of_the_fault_and_the_remedy_fits_its_operator(part: type[nn.Module]) -> None:
    failed = [f for f in audited(part, faulty=True).findings if f.outcome == "fail"]
    assert {f.law for f in failed} == set(LOCATED[part])
    assert {place_of(f) for f in failed} == {marked_line(part)}
    for f in failed:
        assert LOCATED[part][f.law] in f.remedy
        if part not in OF_ATTENTION:
            assert not {"softmax", "attend", "causal mask"} & set(f.remedy.lower().split())
            assert "scaled_dot_product_attention" not in f.remedy_diff


@pytest.mark.parametrize("part", LOCATED)
def test_the_corrected_module_has_no_finding(part: type[nn.Module]) -> None:
    report = audited(part, faulty=False)
    assert report.exit_code == 0
    assert {f.outcome for f in report.findings} == {"pass"}


def test_a_cause_is_shown_once_and_the_json_keeps_everything() -> None:
    report = audited(capacity.TopTwo, faulty=True)
    assert [(f.code, f.same_cause_as) for f in report.findings] == [
        ("OP202", ""),
        ("OP204", "OP202"),
        ("OP407", "OP202"),
    ]
    console = Console(file=io.StringIO(), width=200)
    render_text(report, console, details=False)
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert shown.count("to do ") == 1
    assert shown.count("the cause is that of OP202, ") == 2
    page = render_html(report).partition('id="evidence"')[0]
    assert page.count('class="remedy"><span class="quiet">To do</span> Leave pads out') == 1
    assert page.count("the cause is that of OP202, ") == 2
    listed = render_markdown(report)
    assert listed.count("To do: ") == 1
    assert listed.count("the cause is that of OP202, ") == 2
    assert all(f["remedy"] and f["witness"] for f in report.model_dump()["findings"])


def test_an_undecided_law_has_no_cause() -> None:
    report = audit(capacity.ExpertsFirst(True), inputs=torch.randint(50, (2, 9)), kind="encoder", laws=[PADS, ROWS])
    assert [(f.verdict, f.same_cause_as) for f in report.findings] == [("refuted", ""), ("undecided", "")]


def test_a_model_without_positions_is_shown_once() -> None:
    report = audit(
        padding.RowsAsTokens(False),
        inputs=torch.randint(50, (2, 9)),
        kind="encoder",
        laws=["permutation", "prompt_permutation"],
    )
    assert [f.same_cause_as for f in report.findings if f.outcome == "fail"] == ["", "OP101"]
