"""A report and a study in their panels: every number of the file, and a clear word where a file is not one."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

from orderproof.errors import UsageError
from orderproof.explain import bundled_study, read_study
from orderproof.records.audit import Report
from orderproof.report import phrases, place, summary, witness_phrases
from tests.browser import CHROMIUM, WHY_NOT
from tests.explain.conftest import Open
from tests.explain.examples import HOSTILE, cell, study, study_text
from tests.explain.page_actions import go
from tests.pairs import first_soon
from tests.report import examples
from tests.report.page_examples import off_by_one

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason=WHY_NOT)]


def cells(page: Page, selector: str) -> list[list[str]]:
    script = "rows => rows.map(row => [...row.children].map(cell => cell.innerText.trim()))"
    return page.locator(selector).evaluate_all(script)


def load(page: Page, panel: str, text: str, tmp_path: Path, name: str = "given.json") -> str:
    """Choose a file; what the panel says of it."""
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    page.evaluate("id => { document.getElementById(id).textContent = '' }", f"{panel}-note")  # of an earlier file
    page.locator(f"#{panel}-file").set_input_files(file)
    page.locator(f"#{panel}-note:not(:empty)").wait_for(state="attached")
    return page.inner_text(f"#{panel}-note")


def opened(page: Page) -> Page:
    page.evaluate("document.querySelectorAll('#model details, #lab details').forEach(d => d.open = true)")
    return page


# ---------------------------------------------------------------- a report


@pytest.mark.parametrize(
    "make",
    [
        examples.everyday,
        examples.causal_proof,
        examples.measured,
        examples.theorems,
        examples.theorem_of_rows,
        off_by_one,
    ],
)
@pytest.mark.parametrize("embedded", first_soon([False, True]))
def test_every_finding_is_in_the_panel(open_page: Open, tmp_path: Path, make: Callable[[], Report], embedded: bool):
    report = make()
    page = open_page("model", **({"report": report} if embedded else {})).page
    if not embedded:
        assert load(page, "report", report.to_json(), tmp_path) == "Shown: given.json"
    opened(page)
    assert page.inner_text("#report .conclusion") == summary.summary_sentence(report)
    shown = sorted(tuple(" ".join(cell.split()) for cell in row) for row in cells(page, "#model .findings tbody tr"))
    rows = []
    for f in (*phrases.checks(report.findings), *phrases.properties(report.findings)):
        check = f.kind == "check"
        name = phrases.law_name(f) if check else phrases.property_name(f)
        label = phrases.OUTCOME_LABELS[f.outcome]
        known = " ".join(f"{phrases.evidence_text(f)} {f.statement}".split())
        rows.append((f.code, name, label if check else label.lower(), known))
    assert shown == sorted(rows)
    excluded = [f for f in report.findings if f.outcome == "not_applicable"]
    assert page.locator("#report-excluded li").count() == len(excluded)
    precision = sorted(tuple(row[:3]) for row in cells(page, "#model table[class^=precision] tbody tr"))
    measured = [f for f in report.findings if f.deviation.float32 is not None or f.deviation.float64 is not None]
    assert precision == sorted(
        (
            phrases.law_title(f),
            phrases.format_difference(f.deviation.float32),
            phrases.format_difference(f.deviation.float64),
        )
        for f in measured
    )
    text = page.inner_text("#model")
    swap = cells(page, "#model table.swapped tbody tr")
    assert swap == [
        [row.condition, row.dtype, phrases.cosine(row.cosine), phrases.format_difference(row.max_abs_difference)]
        for row in (report.sentence_pair.distances if report.sentence_pair else ())
    ]
    for f in report.findings:
        for entry in f.entries:
            assert entry.operator in text
            assert entry.source in text
            assert entry.source_line.strip() in text
        if f.witness:
            assert f"Witness: {witness_phrases.witness_title(f)}" in text
            assert f.witness.change in text
            difference = phrases.format_difference(f.witness.relative_difference)
            assert f"difference {difference}, {witness_phrases.witness_origin(f.witness)}" in text
    failed = [f for f in report.findings if f.outcome == "fail"]
    assert page.locator("#report .failed").count() == len(failed)
    for f, section in zip(failed, page.locator("#report .failed").all_inner_texts(), strict=True):
        for said in (
            phrases.law_title(f),
            f.statement,
            f.expected_because,
            place.shown_place(f).source,
            f.remedy,
        ):
            assert said in section
        assert all(line in section for line in f.remedy_diff.splitlines())
        mask = place.mask_of(f)
        assert mask is None or page.locator("#report .mask-picture td").count() >= sum(map(len, mask.rows))
    assert page.inner_text("#report-subject") == report.subject.name


@pytest.mark.parametrize(
    ("change", "ending"),
    [
        ({"interrupted": True}, "; interrupted after 3 findings."),
        ({"findings": (), "sentence_pair": None}, ": no law was checked."),
        ({"findings": (), "interrupted": True}, ": interrupted after 0 findings."),
    ],
)
def test_an_interrupted_or_empty_audit_has_no_result(open_page: Open, change: dict[str, Any], ending: str):
    report = examples.causal_proof().model_copy(update=change)
    page = open_page("model", report=report).page
    sentence = page.inner_text("#report .conclusion")
    assert sentence == summary.summary_sentence(report)
    assert sentence.endswith(ending)
    assert page.locator("#report .conclusion").get_attribute("class") == "conclusion"
    assert page.inner_text("#report-note") == ""


def test_a_witness_marks_the_tokens_that_changed(open_page: Open):
    report = examples.everyday()
    page = opened(open_page("model", report=report).page)
    found = next(f.witness for f in report.findings if f.witness and f.witness.tokens_before)
    run = page.locator("#model .witness .run").first
    assert run.locator("li > :first-child").all_inner_texts() == list(found.tokens_before)
    marked = [i for i, (a, b) in enumerate(zip(found.tokens_before, found.tokens_after, strict=True)) if a != b]
    assert (
        run.locator("li").evaluate_all("all => all.flatMap((li, i) => li.querySelector('mark') ? [i] : [])") == marked
    )


def test_the_size_of_a_number_is_written_as_in_every_report(open_page: Open):
    values = [0.0, 2.2e-16, 1.84e-7, 9.99e-5, 0.0001, 0.00123, 0.0996, 0.131, 1.0, 2.61, 12.7, 99.0, 99.96, 12345.6]
    report = examples.everyday()
    first = report.findings[0]
    findings = tuple(
        first.model_copy(update={"deviation": first.deviation.model_copy(update={"float64": value})})
        for value in values
    )
    page = open_page("model", report=report.model_copy(update={"findings": findings})).page
    rows = cells(page, "#model table.precision tbody tr")
    assert [row[2] for row in rows] == [phrases.format_difference(value) for value in values]


WRONG_REPORTS = {
    "not JSON": ("{", "is not JSON"),
    "a list": ("[]", "expected a report of orderproof audit --json, an object"),
    "schema 1": (json.dumps({"schema": 1}), "expected schema version 2 of a report of orderproof audit --json, got 1"),
    "no schema": ("{}", "got none"),
    "no findings": (json.dumps({"schema": 2}), "expected a report with a subject and findings"),
    "unknown outcome": (
        json.dumps({"schema": 2, "subject": {}, "findings": [{"law": "x", "outcome": "maybe"}]}),
        "no known outcome",
    ),
    "half a finding": (
        json.dumps({"schema": 2, "subject": {}, "findings": [{"law": "x", "outcome": "pass", "witness": {}}]}),
        "a field is missing or does not match the schema",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "said"), WRONG_REPORTS.values(), ids=WRONG_REPORTS)
def test_a_file_that_is_no_report_is_refused_in_words_and_the_page_goes_on(
    open_page: Open, tmp_path: Path, text: str, said: str
):
    seen = open_page("model", report=examples.everyday())
    note = load(seen.page, "report", text, tmp_path)
    assert said in note
    assert "given.json" in note
    assert seen.page.locator("#report-note.problem").count() == 1
    assert seen.page.inner_text("#report-subject") == examples.everyday().subject.name
    assert seen.complaints == []
    assert load(seen.page, "report", examples.measured().to_json(), tmp_path, "good.json") == "Shown: good.json"


@pytest.mark.parametrize("embedded", [True, False])
def test_a_hostile_report_and_study_create_no_element(open_page: Open, tmp_path: Path, embedded: bool):
    report = examples.hostile()
    hostile = study_text(
        question=HOSTILE, measure=HOSTILE,
        cells=[{**cell("none", [0.5, 0.5, 0.5]), "label": HOSTILE, "encoding": HOSTILE}],
        published=[{"label": HOSTILE, "text": HOSTILE, "source": HOSTILE}],
    )  # fmt: skip
    file = tmp_path / "study.json"
    file.write_text(hostile, encoding="utf-8")
    seen = open_page("model", **({"report": report, "study": read_study(file)} if embedded else {}))
    if not embedded:
        load(seen.page, "report", report.to_json(), tmp_path)
        load(seen.page, "study", hostile, tmp_path, "study.json")
    opened(seen.page)
    assert seen.page.locator("img, iframe, object, embed, [onerror]").count() == 0
    assert seen.page.locator("script").count() == 5
    assert '<script>alert("x")</script>' in seen.page.inner_text("#model")
    go(seen.page, "lab")
    assert '<script>alert("x")</script>' in seen.page.inner_text("#lab")
    assert "\u202e" not in seen.page.inner_text("body")
    assert (seen.dialogs, seen.complaints) == ([], [])


# ---------------------------------------------------------------- a study

TITLE = re.compile(r"^(.*), (\d+): (−?[\d.]+) \((−?[\d.]+) to (−?[\d.]+)\)$")


def points(page: Page, part: str) -> dict[str, list[tuple[int, float, float, float, float, float]]]:
    """Each line's points: x, score, low, high in its label, and where they are drawn."""
    found: dict[str, list[Any]] = {}
    script = "all => all.map(c => [c.textContent, ...['cx', 'cy'].map(name => Number(c.getAttribute(name)))])"
    for title, x, y in page.locator(f"#{part} circle").evaluate_all(script):
        label, at, *scores = TITLE.match(title).groups()
        found.setdefault(label, []).append((int(at), *(float(score) for score in scores), x, y))
    return found


@pytest.mark.parametrize("embedded", [True, False])
def test_every_curve_of_a_study_is_drawn_where_its_numbers_say(open_page: Open, tmp_path: Path, embedded: bool):
    data = study()
    file = tmp_path / "study.json"
    file.write_text(json.dumps(data), encoding="utf-8")
    page = open_page("lab", **({"study": read_study(file)} if embedded else {})).page
    if not embedded:
        load(page, "study", json.dumps(data), tmp_path)
    for part, key, at in (("learning", "curve", "step"), ("lengths", "lengths", "length")):
        drawn = points(page, part)
        assert set(drawn) == {each["label"] for each in data["cells"]}
        for each in data["cells"]:
            labelled = [point[:4] for point in drawn[each["label"]]]
            wanted = [(p[at], p["iqm"], p["low"], p["high"]) for p in each[key]]
            assert [p[0] for p in labelled] == [p[0] for p in wanted]
            assert all(a == pytest.approx(b, abs=5e-4) for a, b in zip(labelled, wanted, strict=True))
        every = [point for line in drawn.values() for point in line]
        (_, s1, *_, y1), (_, s2, *_, y2) = min(every, key=lambda p: p[1]), max(every, key=lambda p: p[1])
        for _, score, *_, y in every:  # heights are linear in the scores
            assert y == pytest.approx(y1 + (score - s1) * (y2 - y1) / (s2 - s1), abs=0.2)
            assert (y2 - y1) / (s2 - s1) < 0


def test_the_trained_lengths_are_shaded_and_the_ceilings_dashed_at_their_heights(open_page: Open, tmp_path: Path):
    page = open_page("lab").page
    load(page, "study", study_text(), tmp_path)
    chart = page.locator("#lengths .chart").first
    drawn = points(page, "lengths")
    line = drawn["none, causal, 2 layers"]
    at = {point[0]: point[4] for point in line}
    box = chart.locator("rect.trained")
    assert float(box.get_attribute("x")) == pytest.approx(at[4], abs=0.1)
    assert float(box.get_attribute("width")) == pytest.approx(at[8] - at[4], abs=0.1)
    slope = (line[1][5] - line[0][5]) / (line[1][1] - line[0][1])
    path = chart.locator("path.ceiling")
    heights = [tuple(map(float, pair.split())) for pair in path.get_attribute("d").removeprefix("M ").split(" L ")]
    for (x, y), length in zip(heights, (4, 8, 12), strict=True):
        assert x == pytest.approx(at[length], abs=0.1)
        assert y == pytest.approx(line[0][5] + slope * (0.5 + 0.01 * length - line[0][1]), abs=0.3)
    assert path.evaluate("p => getComputedStyle(p).strokeDasharray") != "none"
    assert chart.locator("path.band").count() == 2
    assert page.locator("#lengths .chart").count() == 2  # causal with two layers, and with one


def test_no_ceiling_is_drawn_where_the_models_of_a_chart_have_several(open_page: Open, tmp_path: Path):
    other = cell("rotary", [0.9, 0.9, 0.9])
    other["lengths"][1]["ceiling"] = 0.3
    page = open_page("lab").page
    load(page, "study", study_text(cells=[cell("none", [0.5, 0.5, 0.5]), other]), tmp_path)
    path = page.locator("#lengths path.ceiling").get_attribute("d")
    drawn = {length: x for length, _, _, _, x, *_ in points(page, "lengths")["none, causal, 2 layers"]}
    across = [float(pair.split()[0]) for pair in path.removeprefix("M ").split(" L ")]
    assert across == pytest.approx([drawn[4], drawn[12]], abs=0.1)


def test_the_numbers_and_the_published_rows_are_shown_with_the_curves(open_page: Open, tmp_path: Path):
    page = open_page("lab").page
    load(page, "study", study_text(), tmp_path)
    rows = cells(opened(page), "#study-numbers tbody tr")
    assert len(rows) == 9
    assert rows[0] == ["none, causal, 2 layers", "4", "0.540", "0.500 to 0.570", "0.540", "prompt_permutation"]
    assert rows[2][1] == "12 (not trained)"
    assert "Kazemnejad copy .986 2305.19466" in page.inner_text("#study")


@pytest.mark.parametrize("lengths", [[], [{"length": 6, "in_training_range": True, "iqm": 0.9, "low": 0.8, "high": 1}]])
def test_a_study_of_one_length_has_scores_and_no_line_over_lengths(open_page: Open, tmp_path: Path, lengths: list[Any]):
    data = study(cells=[{**cell("t5", [0.5, 0.6, 0.7]), "lengths": lengths}], trained_lengths=[6, 6])
    seen = open_page("lab")
    assert load(seen.page, "study", json.dumps(data), tmp_path) == "Shown: given.json"
    assert seen.page.locator("#scores circle").count() == len(lengths)
    assert seen.page.locator("#lengths").count() == 0
    assert seen.page.locator("#study text", has_text="NaN").count() == 0
    assert seen.complaints == []


def test_the_scores_of_the_bundled_study_are_drawn_where_their_numbers_say(open_page: Open):
    data = bundled_study()
    page = open_page("lab", study=data).page
    plots = page.locator("#scores figure")
    titles = ["Bidirectional, 1 layer", "Bidirectional, 2 layers", "Causal, 1 layer", "Causal, 2 layers"]
    assert plots.locator("figcaption").all_inner_texts() == titles
    places: dict[str, list[tuple[float, float]]] = {}
    for i, title in enumerate(titles):
        cells = [each for each in data.cells if (each.causal, each.layers) == (i > 1, 1 + i % 2)]
        script = "all => all.map(c => [Number(c.getAttribute('cx')), c.className.baseVal, c.textContent])"
        drawn = plots.nth(i).locator("circle").evaluate_all(script)
        for (x, kind, text), each in zip(drawn, cells, strict=True):
            (score,) = each.lengths
            assert f": {score.iqm:.3f} ({score.low:.3f} to {score.high:.3f})" in text
            assert ("above" in kind) == (score.low > 0.5)
            places.setdefault(title, []).append((score.iqm, x))
        lines = plots.nth(i).locator("line.ceiling").evaluate_all("all => all.map(l => Number(l.getAttribute('x1')))")
        places[title].append((0.5, *lines))
    (s1, x1), (s2, x2) = min(places[titles[0]]), max(places[titles[0]])
    for score, x in (point for found in places.values() for point in found):
        assert x == pytest.approx(x1 + (score - s1) * (x2 - x1) / (s2 - s1), abs=0.1)
    assert page.locator("#study-conclusion").is_visible()


WRONG_STUDIES: dict[str, tuple[dict[str, Any], str, str]] = {
    "schema": ({"schema": 1}, "schema version 3 of a study, got 1", "schema"),
    "kind": ({"kind": "report"}, 'expected kind "study"', "kind"),
    "no cells": ({"cells": []}, "expected cells", "cells"),
    "no number": ({"cells": [{**cell("t5", [0.5, 0.6, 0.7]), "curve": [{"step": 1}]}]}, "a number is missing", "curve"),
}


@pytest.mark.parametrize(("changed", "said", "field"), WRONG_STUDIES.values(), ids=WRONG_STUDIES)
def test_a_file_that_is_no_study_is_refused_by_the_page_and_by_the_command(
    open_page: Open, tmp_path: Path, changed: dict[str, Any], said: str, field: str
):
    seen = open_page("lab")
    assert said in load(seen.page, "study", study_text(**changed), tmp_path)
    assert seen.complaints == []
    with pytest.raises(UsageError, match=f"given.json: not a study of schema version 3: .*{field}"):
        read_study(tmp_path / "given.json")
