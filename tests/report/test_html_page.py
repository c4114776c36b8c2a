from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import jsonschema
import pytest

from orderproof.records.audit import AttentionMap, Deviation, Report
from orderproof.report import audit_schema, write_html
from orderproof.report.colour_ramp import DARK, LEVELS, LIGHT, contrast, ramp
from orderproof.report.html_page import (
    COMPARISONS_SHOWN,
    HEAT_MAP_SIDE,
    PAGE_LIMIT_BYTES,
    log_axis_percent,
    render_html,
)
from tests.report import examples

VOID = {"meta", "img", "br", "link", "input", "hr", "wbr"}
STYLE = Path(__file__).parents[2] / "src/orderproof/report/page.css"


class Page(HTMLParser):
    """The elements, attributes and visible text of a page; unbalanced tags are an error."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.texts.append((self.open[-1] if self.open else "", data))

    def tags(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def text(self) -> str:
        return " ".join(" ".join(text for tag, text in self.texts if tag not in {"script", "style"}).split())

    @property
    def data(self) -> object:
        return json.loads(next(text for tag, text in self.texts if tag == "script"))


@pytest.fixture(scope="module")
def everyday() -> Page:
    return Page(render_html(examples.everyday()))


def test_the_sections_are_in_order(everyday: Page):
    ids = [attributes["id"] for attributes in everyday.tags("section") if "id" in attributes]
    assert ids == ["properties", "entries", "swap", "checks", "evidence"]
    failed = [a["id"] for a in Page(render_html(examples.measured())).tags("section") if "id" in a]
    assert failed == ["failed-1", "not-checked", "properties", "checks", "evidence"]


def test_the_contents_link_to_every_section(everyday: Page):
    for page in (everyday, Page(render_html(examples.measured()))):
        ids = {a["id"] for _, a in page.elements if "id" in a}
        links = [(a["href"] or "").removeprefix("#") for a in page.tags("a")]
        assert set(links) <= ids
        assert {a["id"] for a in page.tags("section")} <= set(links)


def test_a_law_of_several_outputs_is_one_row_with_the_outputs_inside():
    report = examples.everyday()
    pooled = report.findings[0].model_copy(update={"output": "pooler_output", "outcome": "no"})
    page = Page(render_html(report.model_copy(update={"findings": (report.findings[0], pooled)})))
    assert [a["id"] for a in page.tags("details") if a.get("class") == "law"] == ["law-property-1"]
    assert "sees token order yes witness: swap tokens 0 and 1; no for pooler_output" in page.text
    assert page.text.index("last_hidden_state yes") < page.text.index("pooler_output no witness")


def test_nothing_is_fetched_and_only_the_one_script_may_run(everyday: Page):
    source = render_html(examples.everyday())
    assert not [a for _, a in everyday.elements if {"src", "srcset", "data", "action", "background"} & a.keys()]
    assert {a["href"] for _, a in everyday.elements if "href" in a} == {
        "#results", "#properties", "#entries", "#swap", "#checks", "#evidence"
    }  # fmt: skip
    assert not [key for _, a in everyday.elements for key in a if key.startswith("on")]
    assert not re.search(r"https?://|@import|url\(", source)
    policy = next(a["content"] for a in everyday.tags("meta") if "http-equiv" in a) or ""
    script = next(text for tag, text in everyday.texts if tag == "script" and "use strict" in text)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy.startswith("default-src 'none'")
    assert f"script-src 'sha256-{digest}'" in policy


def test_outcomes_entry_proof_and_exit_code_are_shown(everyday: Page):
    text = everyday.text
    for words in (
        "all-MiniLM-L6-v2: sees token order; order enters at one place, modeling_bert.py:104; 1 check passed, none",
        "Exit code 0: every check passed",
        "OP303 position_precision PASS measured: 12 of 12 lengths",
        "OP101 sees token order yes witness: swap tokens 0 and 1 Permuting the tokens permutes the output. witness",
        "1 law does not apply OP203 packing: the model takes no document ids",
        "embeddings = embeddings + position_embeddings",
        "proved for every value of every parameter",
        "85, at length 7; no parameter's values were used",
        "without positions float64 1 3.3e-16",
        "contraction_equivariant 36 a permutation that acts on both sides of a sum disappears",
        "torch 2.13.0",
    ):
        assert words in text


def test_the_proof_is_folded_by_module_and_equal_layers(everyday: Page):
    summaries = len(everyday.tags("summary"))
    assert summaries == len(everyday.tags("details"))
    modules = [a for a in everyday.tags("details") if a.get("class") == "module"]
    assert len(modules) == 1 + len({module for module, _, _ in examples.LAYER})
    assert "attention.self ×6 3 steps, layers 0-5 with equal proofs: movement_factored 2, attention_equivariant" in (
        everyday.text
    )


def test_changed_tokens_are_marked_in_the_witness(everyday: Page):
    marked = [text for tag, text in everyday.texts if tag == "mark"]
    assert marked == ["the", "cat", "cat", "the", "cat", "dog", "dog", "cat", "cat", "dog", "dog", "cat"]


def test_heat_maps_are_tables_with_labels_and_readable_values(everyday: Page):
    cells = [text for tag, text in everyday.texts if tag == "td" and re.fullmatch(r"0\.\d\d", text)]
    assert len(cells) >= 2 * 49
    assert len([a for a in everyday.tags("table") if a.get("class") == "map mono"]) == 2
    regions = [a for a in everyday.tags("div") if a.get("role") == "region"]
    assert all(a["tabindex"] == "0" and a["aria-label"] for a in regions)


def test_the_page_can_be_read_by_a_screen_reader_and_keyboard(everyday: Page):
    assert everyday.tags("html")[0]["lang"] == "en"
    assert len(everyday.tags("h1")) == len(everyday.tags("main")) == 1
    assert all(a.get("scope") in {"col", "row", "rowgroup"} for a in everyday.tags("th"))
    assert all(a.get("type") == "button" for a in everyday.tags("button"))


def test_the_data_are_embedded_and_satisfy_the_schema(everyday: Page):
    jsonschema.validate(everyday.data, audit_schema())
    report = Report.model_validate(everyday.data)
    assert report.findings[0].completion.proof.step_count == 85
    assert report.findings[0].completion.proof.steps == ()
    assert report.attention_maps == examples.everyday().attention_maps


def test_hostile_strings_stay_text():
    source = render_html(examples.hostile())
    page = Page(source)
    assert [a.get("type") for a in page.tags("script")] == ["application/json", None]
    assert not page.tags("img")
    assert (
        '<script>alert("x")</script>&amp;]]>--><img src=x onerror=alert(1)>\\x1b[31m\\u202e[bold]{{ 7 * 7 }}'
        in page.text
    )
    assert "49" not in page.text
    assert "\x1b" not in source
    assert "\u202e" not in source
    assert Report.model_validate(page.data).notes == (examples.HOSTILE,)
    assert source.lower().count("<script") == source.lower().count("</script") == 2


@pytest.mark.slow
def test_fifty_thousand_lines_through_equal_layers_fold_to_a_page():
    page = render_html(examples.huge(same=True))
    assert len(page.encode()) < 200_000
    assert f"×{examples.DISTINCT_STEPS // len(examples.LAYER)}" in page


def test_fifty_thousand_lines_that_differ_are_cut_with_a_count():
    source = render_html(examples.huge(same=False))
    assert len(source.encode()) <= PAGE_LIMIT_BYTES
    page = Page(source)
    match = re.search(r"([\d,]+) more steps in [\d,]+ more modules, in the JSON and the certificate", page.text)
    assert match
    hidden = int(match[1].replace(",", ""))
    partly = sum(int(n.replace(",", "")) for n in re.findall(r"([\d,]+) more steps? in the JSON", page.text))
    shown = source.count("<td>model.py:")
    assert hidden + partly + shown == examples.DISTINCT_STEPS


@pytest.mark.slow
def test_many_huge_proofs_share_the_page():
    report = examples.huge(same=False)
    findings = tuple(report.findings[0].model_copy(update={"code": f"OP{i}"}) for i in range(4))
    assert len(render_html(report.model_copy(update={"findings": findings})).encode()) <= PAGE_LIMIT_BYTES


def test_a_large_heat_map_is_cut_with_a_count():
    n = HEAT_MAP_SIDE + 12
    tokens = tuple(f"t{i}" for i in range(n))
    heat_map = AttentionMap(title="long", query_tokens=tokens, key_tokens=tokens, weights=((1 / n,) * n,) * n)
    source = render_html(examples.everyday().model_copy(update={"attention_maps": (heat_map,) * 40}))
    assert len(source.encode()) <= PAGE_LIMIT_BYTES
    page = Page(source)
    assert f"The first {HEAT_MAP_SIDE} of {n} queries and {n} keys" in page.text
    assert "34 more attention maps in the JSON" in page.text


def test_a_measured_law_has_its_comparisons_and_a_refuted_one_its_section():
    page = Page(render_html(examples.measured()))
    assert "measuring" in [a.get("id") for a in page.tags("details")]
    assert sorted(a["data-law"] or "" for a in page.tags("tbody") if "data-law" in a) == sorted(
        f.law for f in examples.measured().findings if f.measurement
    )
    for words in (
        "OP402 chunked_prefill PASS measured in 1 comparison What chunked_prefill says. measured: 1 comparison, no",
        "Tolerance: 0.0001 comparison float32 float64 in chunks of 2, 2, 3 tokens 0",
        "in chunks of 1, 6 tokens ValueError: one at a time not possible control 0.96",
        "FAIL OP405 left_padded_decoding What left_padded_decoding says. To do Count positions by the mask, not by the",
        "Witness compared pads on the left",
    ):
        assert words in page.text
    assert "first run" not in page.text
    assert "measuring" not in [a.get("id") for a in Page(render_html(examples.causal_proof())).tags("details")]


@pytest.mark.slow
def test_many_comparisons_are_cut_with_a_count():
    report = examples.measured()
    comparisons = report.findings[1].measurement.comparisons * 5000
    many = report.findings[1].measurement.model_copy(update={"comparisons": comparisons})
    finding = report.findings[1].model_copy(update={"measurement": many})
    source = render_html(report.model_copy(update={"findings": (finding,) * 16}))
    assert len(source.encode()) <= PAGE_LIMIT_BYTES
    assert f"{len(comparisons) - COMPARISONS_SHOWN:,} more comparisons in the JSON" in Page(source).text


def test_an_empty_report_is_a_page():
    report = examples.everyday().model_copy(
        update={"findings": (), "sentence_pair": None, "attention_maps": (), "notes": ()}
    )
    assert "No law was checked." in Page(render_html(report)).text


def test_a_proof_without_steps_says_where_they_are():
    report = examples.causal_proof()
    bare = report.findings[0].proof.model_copy(update={"steps": ()})
    finding = report.findings[0].model_copy(update={"proof": bare})
    page = Page(render_html(report.model_copy(update={"findings": (finding,)})))
    assert "The steps are in the certificate." in page.text


def test_the_file_is_written(tmp_path: Path):
    write_html(examples.everyday(), tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == render_html(examples.everyday())


@pytest.mark.parametrize(("value", "place"), [(None, 0), (0.0, 0), (1e-18, 0), (10.0, 100), (1e30, 100), (1e-30, 0)])
def test_a_difference_is_drawn_at_its_decade(value, place):
    assert log_axis_percent(value) == place


def test_exact_zeros_are_drawn():
    report = examples.causal_proof()
    finding = report.findings[0].model_copy(update={"deviation": Deviation(float32=0.0, float64=0.0)})
    assert "float32 0, float64 0 (exact)" in Page(render_html(report.model_copy(update={"findings": (finding,)}))).text


# ---------------------------------------------------------------- contrast, level AA


@pytest.mark.parametrize("ends", [LIGHT, DARK], ids=["light", "dark"])
def test_every_step_of_the_heat_map_can_be_read(ends):
    assert len(ramp(ends)) == LEVELS
    assert all(contrast(back, ink) >= 4.5 for back, ink in ramp(ends))


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_every_text_colour_can_be_read(scheme):
    block = re.findall(r":root \{(.*?)\}", STYLE.read_text(encoding="utf-8"), flags=re.DOTALL)[scheme]
    colours = {name: tuple(bytes.fromhex(code)) for name, code in re.findall(r"--([\w-]+): #([0-9a-f]{6})", block)}
    inks = set(colours) - {"paper", "panel", "line", "mark", "mark-ink"}
    assert {"ink", "quiet", "link", "pass", "fail", "undecided"} == inks
    for back in ("paper", "panel"):
        assert {ink for ink in inks if contrast(colours[ink], colours[back]) < 4.5} == set()
    assert contrast(colours["mark-ink"], colours["mark"]) >= 4.5


def test_only_checks_are_green_or_red(everyday: Page):
    classes = [a["class"].split() for a in everyday.tags("span") if (a.get("class") or "").startswith("outcome")]
    assert sorted({kind for _, kind in classes}) == ["no", "pass", "undecided", "yes"]
    styles = STYLE.read_text(encoding="utf-8")
    assert not re.search(r"\.(yes|no|proved|refuted)\b", styles)
