"""The section for a model card, read as Markdown is: its tables, its lists, and no markup of a name's."""

from __future__ import annotations

from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from orderproof.report import write_markdown
from orderproof.report.markdown import ASSUMPTIONS_SHOWN, code_span, escape_markdown, render_markdown
from tests.report import examples

REPORTS = [examples.everyday, examples.causal_proof, examples.measured, examples.hostile, examples.huge_assumptions]
READER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
TOLD = {"heading", "paragraph", "table", "thead", "tbody", "tr", "th", "td", "bullet_list", "list_item", "strong"}


def read(text: str) -> list[Token]:
    """Every token, those within lines too."""
    return [t for token in READER.parse(text) for t in (token, *(token.children or ()))]


def shown(text: str) -> str:
    """What a reader sees."""
    return " ".join("".join(t.content for t in read(text) if t.type in ("text", "code_inline")).split())


@pytest.mark.parametrize("make", REPORTS, ids=lambda make: make.__name__)
def test_there_is_nothing_but_headings_lists_a_table_code_and_emphasis(make):
    kinds = {t.type.removesuffix("_open").removesuffix("_close") for t in read(render_markdown(make()))}
    assert kinds <= TOLD | {"inline", "text", "code_inline"}


@pytest.mark.parametrize("make", REPORTS, ids=lambda make: make.__name__)
def test_every_finding_is_a_row_of_as_many_cells_as_the_head(make):
    tokens = READER.parse(render_markdown(make()))
    counts: list[int] = []
    for t in tokens:
        if t.type == "tr_open":
            counts.append(0)
        elif t.type in ("th_open", "td_open"):
            counts[-1] += 1
    shown_findings = [f for f in make().findings if f.outcome != "not_applicable"]
    tables = [t for t in tokens if t.type == "table_open"]
    assert len(set(counts)) == 1
    assert len(counts) == len(tables) + len(shown_findings)


def test_the_card_says_what_is_proved_with_its_scope_and_what_is_measured():
    text = render_markdown(examples.measured())
    assert text.startswith("## Token order of `arch:toy`\n\n`arch:toy`: ")
    assert "`arch:toy`: fails OP405 left\\_padded\\_decoding; whether it" in text
    assert "; 3 checks passed, 1 failed, 1 undecided. Audited: decoder, 1 parameter." in text
    assert "| OP201 | `causal` |" in text
    assert "- OP201 `causal`" in text
    assert "for these weights, at length 8; values used: `mask`" in text
    assert "2 comparisons, largest difference 0.00031 (5.2e-13 in float64); positive control 0.96" in text
    assert "1 comparison, no difference; positive control 0.96; 1 more could not be run" in text
    assert "failed: pads on the left, then one token at a time: differs by 0.89. To do: Count positions" in text
    assert text.endswith("Versions: orderproof 0.1.0, torch 2.13.0, transformers 5.23.0\n")


def test_a_healthy_model_has_no_section_of_failed_checks():
    text = render_markdown(examples.everyday())
    assert "1 check passed, none failed." in text
    assert "### Failed checks" not in text
    assert "| OP101 | sees token order | yes | witness: swap tokens 0 and 1: differs by 0.057 |" in text
    assert "### Not applicable\n\n- OP203 packing: the model takes no document ids" in text


def test_outputs_are_named_where_there_are_several():
    report = examples.everyday()
    assert "| output |" not in render_markdown(report)
    other = report.findings[0].model_copy(update={"output": "pooled|output"})
    text = render_markdown(report.model_copy(update={"findings": (*report.findings, other)}))
    assert "| code | property | output |" in text
    assert "`pooled\\|output`" in text


def test_many_assumptions_are_cut_with_a_count():
    text = render_markdown(examples.huge_assumptions())
    assert text.count("\n- assumption") == ASSUMPTIONS_SHOWN
    assert f"- {40 - ASSUMPTIONS_SHOWN} more in the JSON" in text


@pytest.mark.parametrize(
    "name",
    [
        examples.HOSTILE,
        "a`b", "``", "`", "a|b", "*b* _c_ **d**", "[x](http://e.org)", "![x](y)", "# h", "- l", "1. l",
        "http://e.org www.e.org", "$x$", "\\", "a\nb", "&amp;", "<b>", "~~x~~", "==x==", "<!--", "[^1]", "",
    ],
)  # fmt: skip
def test_a_name_is_what_a_reader_sees_and_nothing_more(name: str):
    from orderproof.report import phrases

    seen = " ".join(phrases.escape_control_characters(name).split())
    for made in (code_span(name), escape_markdown(name)):
        tokens = READER.parse(f"x: {made} .")
        assert [t.type for t in tokens] == ["paragraph_open", "inline", "paragraph_close"]
        assert {t.type for t in tokens[1].children} <= {"text", "code_inline", "text_special"}
        text = "".join(t.content for t in tokens[1].children)
        assert text == f"x: {seen or ('-' if made == '`-`' else '')} ."


def test_the_file_is_written(tmp_path: Path):
    write_markdown(examples.measured(), tmp_path / "card.md")
    assert (tmp_path / "card.md").read_text(encoding="utf-8") == render_markdown(examples.measured())
