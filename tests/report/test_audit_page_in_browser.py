"""The page as a browser shows it, opened from disk: what it says, what it asks for, how it folds, who can read it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from orderproof.records.audit import Report
from orderproof.report import write_html
from tests.browser import CHROMIUM, CONTRAST, NARROW, WHY_NOT, WIDE, Seen, a_window, from_disk
from tests.report import examples, page_examples

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=WHY_NOT)

REPORTS = {
    "everyday": examples.everyday,
    "causal": examples.causal_proof,
    "measured": examples.measured,
    "hostile": examples.hostile,
}
each_report = pytest.mark.parametrize("make", REPORTS.values(), ids=REPORTS)
READ = """() => {
  document.querySelectorAll("details").forEach(folded => folded.open = true);
  const cells = row => [...row.children].map(cell => cell.innerText.trim());
  const rows = selector => [...document.querySelectorAll(selector)].map(cells);
  const failed = rows(".failed > h2").map(([outcome], i) => {
    const [code, name] = document.querySelectorAll(".failed > h2")[i].lastChild.data.trim().split(" ");
    return [code, name, outcome];
  });
  const summary = "> details > summary";
  return {
    checks: [...failed, ...rows(`#not-checked ${summary}`), ...rows(`#checks ${summary}`)],
    properties: rows(`#properties ${summary}`),
    precision: rows("#precision tbody tr").map(row => row.slice(0, 4)),
    measured: Object.fromEntries([...document.querySelectorAll(".comparisons tbody")].map(
      body => [body.dataset.law, [...body.rows].map(cells)])),
    data: JSON.parse(document.getElementById("orderproof-report").textContent),
  };
}"""


Open = Callable[..., Seen]


@pytest.fixture(scope="module")
def window() -> Iterator[Seen]:
    """One page of one browser for the whole module; nothing but files is let through to it."""
    with a_window(from_disk) as seen:
        yield seen


@pytest.fixture
def see(window: Seen, tmp_path: Path) -> Open:
    """Write the page of a report and open it from disk."""

    def see(report: Report, *, width: int = WIDE) -> Seen:
        file = tmp_path / f"{len(list(tmp_path.iterdir()))}.html"
        write_html(report, file)
        for log in (window.asked, window.complaints, window.dialogs):
            log.clear()
        window.page.emulate_media(color_scheme="light")
        window.page.set_viewport_size({"width": width, "height": 900})
        window.page.goto(file.as_uri())
        return window

    return see


def plain(report: Report) -> Any:
    """The report's JSON as the page embeds it: without the steps of proofs."""

    def bare(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: [] if key == "steps" else bare(each) for key, each in value.items()}
        return [bare(each) for each in value] if isinstance(value, list) else value

    return bare(json.loads(report.to_json()))


def digits(value: float | None) -> str:
    return "not run" if value is None else f"{value:.2g}"


@pytest.mark.parametrize("make", [examples.everyday, examples.causal_proof, examples.measured])
def test_the_page_says_what_the_json_says(see: Open, make: Callable[[], Report]):
    shown = see(make()).page.evaluate(READ)
    data = plain(make())
    assert shown["data"] == data
    findings = [f for f in data["findings"] if f["outcome"] != "not_applicable"]
    for kind, name, label in (("check", "law", str.upper), ("property", "trait", str.lower)):
        rows = [[f["code"], f[name], label(f["outcome"])] for f in findings if f["kind"] == kind]
        table = shown["checks" if kind == "check" else "properties"]
        assert sorted([row[0], row[1].split("\n")[0], row[2]] for row in table) == sorted(rows)
    deviations = []
    for f in data["findings"]:
        deviations += [f["deviation"], *([f["completion"]["deviation"]] if f["completion"] else [])]
    run = [d for d in deviations if any(value is not None for value in d.values())]
    assert [row[1:3] for row in shown["precision"]] == [[digits(d["float32"]), digits(d["float64"])] for d in run]


def test_every_comparison_is_in_the_page_with_its_numbers(see: Open):
    seen = see(examples.measured())
    shown = seen.page.evaluate(READ)["measured"]
    findings = [f for f in plain(examples.measured())["findings"] if f["measurement"]]
    assert set(shown) == {f["law"] for f in findings}
    for f in findings:
        body = shown[f["law"]]
        rows = [
            [c["description"], "not possible" if c["float32"] is None else digits(c["float32"]),
             "" if c["float64"] is None else digits(c["float64"])] for c in f["measurement"]["comparisons"]
        ]  # fmt: skip
        control = f["measurement"]["control_difference"]
        rows += [["control", digits(control), ""]] if control is not None else []
        assert [[row[0].split("\n")[0], *row[1:]] for row in body] == rows
    text = seen.page.inner_text("#failed-1")
    assert "the law requires 0.152568, the model gives -2.70433" in text
    assert "Count positions by the mask, not by the cache." in text
    assert "first run" not in text


@each_report
def test_nothing_leaves_the_page_and_nothing_goes_wrong(see: Open, make: Callable[[], Report]):
    seen = see(make())
    seen.page.locator("button[data-open=true]").evaluate_all("buttons => buttons.forEach(b => b.click())")
    assert [url for url in seen.asked if not url.startswith("file:")] == []
    assert len(seen.asked) == 1
    assert seen.complaints == []
    assert seen.dialogs == []


def test_a_law_and_its_proof_fold_by_mouse(see: Open):
    page = see(examples.everyday()).page
    parts = page.locator("details")
    assert parts.evaluate_all("all => all.filter(d => d.open).length") == 0
    law = page.locator(".law").first
    law.locator("> summary").click()
    module = law.locator(".module").nth(1)
    module.locator("summary").click()
    assert module.locator("tbody tr").first.is_visible()
    assert parts.evaluate_all("all => all.filter(d => d.open).length") == 2
    page.get_by_role("button", name="Open all").click()
    assert parts.evaluate_all("all => all.every(d => d.open)")
    page.get_by_role("button", name="Close all").click()
    assert parts.evaluate_all("all => all.every(d => !d.open)")


def test_a_law_folds_by_keyboard_and_the_results_are_one_key_away(see: Open):
    page = see(examples.everyday()).page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    assert page.locator("a.skip").bounding_box()["x"] >= 0
    page.keyboard.press("Enter")
    page.wait_for_url("**#results")
    opened = "() => document.activeElement.tagName + document.activeElement.parentElement.open"
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.tagName") == "SUMMARY":
            break
    assert page.evaluate(opened) == "SUMMARYfalse"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    assert page.evaluate(opened) == "SUMMARYtrue"
    page.keyboard.press("Space")
    assert page.evaluate(opened) == "SUMMARYfalse"


def test_a_hostile_report_creates_no_element_and_raises_no_dialog(see: Open):
    count = "() => [...document.querySelectorAll('*')].map(e => e.tagName)"
    tame = examples.hostile().to_json().replace(json.dumps(examples.HOSTILE, ensure_ascii=False)[1:-1], "plain")
    assert "onerror" not in tame
    wanted = see(Report.from_json(tame)).page.evaluate(count)
    seen = see(examples.hostile())
    assert seen.page.evaluate(count) == wanted
    assert seen.page.locator("img, iframe, object, embed, link, form, [onerror]").count() == 0
    assert '<script>alert("x")</script>&amp;]]>--><img src=x onerror=alert(1)>' in seen.page.inner_text("h1")
    assert (seen.dialogs, seen.complaints) == ([], [])


@each_report
def test_the_page_is_never_wider_than_the_window(see: Open, make: Callable[[], Report]):
    page = see(make()).page
    for is_open in (False, True):
        page.evaluate("is_open => document.querySelectorAll('details').forEach(d => d.open = is_open)", is_open)
        for width in (NARROW, 768, WIDE):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [NARROW, 768, WIDE])
def test_codes_and_outcomes_are_never_wrapped(see: Open, width: int):
    page = see(examples.measured(), width=width).page
    lines = """cells => cells.map(cell => {
      const range = document.createRange();
      range.selectNodeContents(cell);
      return new Set([...range.getClientRects()].map(box => Math.round(box.bottom))).size;
    })"""
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    cells = ".law .code, .law .outcome, .failed .outcome, .comparisons td.number"
    assert set(page.locator(cells).evaluate_all(lines)) <= {0, 1}


def test_on_a_narrow_screen_the_outcomes_are_seen_without_scrolling(see: Open):
    page = see(examples.measured(), width=NARROW).page
    for cell in page.locator(".law > summary > *, .failed > h2 > *").all():
        box = cell.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= NARROW


@pytest.mark.parametrize("make", [examples.everyday, examples.measured, page_examples.off_by_one])
def test_nothing_is_cut_on_a_phone(see: Open, make: Callable[[], Report]):
    page = see(make(), width=390).page
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    cut = """() => [...document.querySelectorAll("body *")].filter(e => e.scrollWidth > e.clientWidth + 1 &&
      getComputedStyle(e).overflowX !== "visible").map(e => e.outerHTML.slice(0, 80))"""
    assert page.evaluate(cut) == []


def test_a_report_without_failures_is_two_screens(see: Open):
    page = see(page_examples.healthy(), width=1280).page
    assert page.evaluate("document.documentElement.scrollHeight") <= 2 * 800


def test_a_mask_is_drawn_with_the_cells_that_must_be_hidden(see: Open):
    page = see(page_examples.off_by_one()).page
    rows = page.locator(".failed .mask tr").evaluate_all("rows => rows.map(r => [...r.cells].map(c => c.className))")
    assert rows[0] == ["seen", "wrong", "unseen"]
    assert rows[2] == ["seen", "seen", "seen"]
    colours = page.locator(".mask td").evaluate_all("cells => cells.map(c => getComputedStyle(c).backgroundColor)")
    assert len(set(colours)) == 3
    assert page.locator(".diff pre").inner_text().splitlines() == [
        "-mask = torch.ones(n, n).tril(1)", "+mask = torch.ones(n, n).tril(0)"
    ]  # fmt: skip


@pytest.mark.parametrize("make", [examples.everyday, examples.measured, page_examples.off_by_one])
def test_every_text_has_the_contrast_of_level_aa(see: Open, make: Callable[[], Report]):
    page = see(make()).page
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    papers = set()
    for scheme, width in (("light", WIDE), ("dark", WIDE), ("light", NARROW), ("dark", NARROW)):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 900})
        papers.add(page.evaluate("getComputedStyle(document.documentElement).backgroundColor"))
        found = page.evaluate(CONTRAST)
        assert len(found) > 30
        assert [(text, round(ratio, 2)) for text, ratio, least in found if ratio < least] == []
    assert len(papers) == 2
