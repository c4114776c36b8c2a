"""A study on a terminal, as Markdown and as a page: the numbers are there, and nothing in it acts."""

from __future__ import annotations

import base64
import io
import json
import re
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import jsonschema
import pytest
from rich.console import Console

from orderproof.records.study import Difference, Estimate, Study, SweepPoint
from orderproof.report import study_phrases, study_schema
from orderproof.report.study_conclusion import compared_cells, conclusion, differences_from_best
from orderproof.report.study_html import render_study_html
from orderproof.report.study_markdown import render_study_markdown
from orderproof.report.study_terminal import render_study
from tests.report.examples import HOSTILE
from tests.report.study_examples import FEW, IN_NATS, MANY, ONE_LENGTH, cell, study

EVERY = [pytest.param(s, id=n) for n, s in {"few": FEW, "one": ONE_LENGTH, "many": MANY, "nats": IN_NATS}.items()]
NASTY = study(cell(HOSTILE, proved=(HOSTILE,)), cell(f"{HOSTILE} 2"), name=HOSTILE, suffix=HOSTILE)


def printed(found: Study, *, width: int = 80, **options: object) -> str:
    stream = io.StringIO()
    render_study(found, Console(file=stream, width=width, **options))  # type: ignore[arg-type]
    return stream.getvalue()


@pytest.mark.parametrize("found", [FEW, ONE_LENGTH, IN_NATS], ids=["few", "one length", "nats"])
def test_the_json_satisfies_its_schema_and_reads_back(found: Study) -> None:
    data = json.loads(found.to_json())
    jsonschema.validate(data, study_schema())
    assert Study.model_validate(data) == found
    with pytest.raises(jsonschema.ValidationError, match="3 was expected"):
        jsonschema.validate({**data, "schema": 1}, study_schema())


def test_a_score_with_its_interval_and_one_without():
    assert study_phrases.format_estimate(Estimate(iqm=0.5, low=0.45, high=0.6)) == "0.500 [0.450, 0.600]"
    assert study_phrases.format_estimate(Estimate(iqm=0.5, low=0.5, high=0.5)) == "0.500"
    assert study_phrases.format_estimate(Estimate(iqm=0.1 + 1e-16, low=0.1, high=0.1)) == "0.100"
    assert study_phrases.format_estimate(None) == "-"
    assert study_phrases.score(None) == "-"


@pytest.mark.parametrize(("seconds", "text"), [(8.24, "8.2 s"), (210.0, "3.5 min"), (7560.0, "2.1 h")])
def test_a_duration(seconds, text):
    assert study_phrases.duration(seconds) == text


def test_many_lengths_are_thinned_but_the_border_of_training_stays():
    found = study(cell("rotary", lengths=range(1, 61), trained=17))
    shown = study_phrases.shown_lengths(found)
    assert len(shown) <= study_phrases.MAX_LENGTHS
    assert {1, 17, 18, 60} <= set(shown)
    assert shown == sorted(shown)
    assert study_phrases.shown_lengths(FEW) == [5, 10, 15, 20, 25, 30, 35, 40]


def test_a_difference_is_read_from_the_best_cell():
    """The pair is recorded the other way round: its sign, its interval and its counts are turned."""
    pair = Difference(
        first="far", second="near", lengths=(4,), difference=-0.25, low=-0.5, high=-0.125, better=1, worse=3, ties=1
    )
    found = study(cell("far", reach=10.0), cell("near", reach=30.0), differences=(pair,))
    assert [one.label for one in compared_cells(found)] == ["near", "far"]
    (one,) = differences_from_best(found)
    assert (one.first, one.difference, one.low, one.high, one.better, one.worse) == ("near", 0.25, 0.125, 0.5, 3, 1)
    assert study_phrases.difference_cells(one) == ["+0.250", "[+0.125, +0.500]", "3 / 1 / 1"]
    assert "over length 4" in study_phrases.differences_text(found)
    assert "| far | +0.250 | [+0.125, +0.500] | 3 / 1 / 1 |" in render_study_markdown(found)


def test_the_conclusion_has_two_sentences_that_the_intervals_allow():
    def pair(other: str, low: float) -> Difference:
        return Difference(
            first="a", second=other, lengths=(25,), difference=low + 0.1, low=low, high=0.5, better=9, worse=1, ties=0
        )  # fmt: skip

    cells = [cell(name, seeds=10, reach=r) for name, r in (("a", 30.0), ("b", 28.0), ("c", 15.0))]
    solved = [one.model_copy(update={"solves_trained_lengths": True}) for one in cells]
    failed = cell("d", seeds=10, reach=0.0).model_copy(update={"solves_trained_lengths": False})
    found = study(*solved, failed, differences=(pair("b", -0.01), pair("c", 0.02)))
    first, second = conclusion(found).split(". ")
    assert first.startswith(
        '3 of 4 cells solve the trained lengths (0.95 or more); "d" (0.500) does not, and is not compared'
    )
    assert '"a" (' in second
    assert '; it cannot be distinguished from "b" (' in second
    assert second.endswith("and is better than the other one.")
    first_of_all = study(*solved, differences=(pair("b", 0.01), pair("c", 0.02)))
    assert re.search(r', and is better than "b" \(0\.\d{3}\) and "c" \(0\.\d{3}\)\.$', conclusion(first_of_all))
    few = study(*(one.model_copy(update={"seeds": 5}) for one in solved))
    assert conclusion(few).endswith("With 5 seeds (10 are needed) the cells are not ranked.")


def test_cells_of_different_numbers_of_seeds():
    assert study_phrases.seeds(study(cell("a", seeds=1), cell("b", seeds=5))) == "1 to 5 seeds"
    assert study_phrases.seeds(study(cell("a", seeds=1))) == "1 seed"


def test_a_terminal_shows_every_cell_with_ceilings_and_laws():
    text = " ".join(printed(FEW).split())
    assert "none 0.500 0.500 0.500 0.500" in text
    assert "rotary 0.967 [0.907, 0.989] 0.500 0.571 [0.511, 0.631] 0.500" in text
    assert "permutation, prompt_permutation for none" in text
    assert "Trained at lengths 5 to 20, 5 seeds." in text
    assert "3 cells, 12.5 s of training (processor two cores)" in text


def test_a_study_of_one_length_has_no_column_for_others():
    assert "longer lengths" not in printed(ONE_LENGTH)
    assert "Trained at length 6" in " ".join(printed(ONE_LENGTH).split())
    assert "prompt_permutation for none, bidirectional, 1 layer; none, bidirectional, 2 layers" in printed(
        ONE_LENGTH, width=200
    )


def test_a_cross_entropy_says_that_lower_is_better_and_has_no_ceiling():
    text = printed(IN_NATS)
    assert "lower is better" in text
    assert "ceiling" not in text.lower()
    assert "bag optimum" in text


@pytest.mark.parametrize("found", [*EVERY, pytest.param(NASTY, id="nasty")])
def test_lines_end_without_blanks_and_fit_and_no_colour_is_plain_text(found):
    text = printed(found, no_color=True, force_terminal=True)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert all(line == line.rstrip() and len(line) <= 80 for line in text.splitlines())


@pytest.mark.parametrize("found", EVERY)
def test_markdown_tables_have_as_many_cells_in_every_row(found):
    blocks = [block for block in render_study_markdown(found).split("\n\n") if block.startswith("| ")]
    assert blocks
    for block in blocks:
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}) == 1


def test_markdown_has_the_command_the_numbers_the_pictures_and_what_others_report():
    text = render_study_markdown(FEW, pictures={"scores": "images/a b.svg"})
    for expected in (
        "orderproof compare made_up", "| rotary | 5 | 0.967 [0.907, 0.989] | 0.500 |", "![scores](images/a%20b.svg)",
        "`permutation`, `prompt_permutation`", "- a paper: none .5. A 2020.", "- processor: two cores", "torch 2",
        "20, trained | 25 |", "5 of 5 above", "| ceiling | 0.500 |", "## Paired differences", "[-0.500, +0.100]",
        "5 seeds per cell",
    ):  # fmt: skip
        assert expected in text


def test_ceilings_that_cells_do_not_share_are_in_the_cells():
    text = render_study_markdown(study(cell("a", ceiling=0.25), cell("b", ceiling=0.75)))
    assert "(ceiling 0.250)" in text
    assert "(ceiling 0.750)" in text
    assert "\n| ceiling |" not in text


def test_cells_that_do_not_solve_the_trained_lengths_are_marked_and_not_compared():
    failed = cell("b").model_copy(update={"solves_trained_lengths": False})
    text = render_study_markdown(study(cell("a"), failed))
    assert "| b (not solved, not compared) |" in text
    assert "## Paired differences" not in text


def test_the_sweep_of_learning_rates_is_part_of_the_page():
    tried = (
        SweepPoint(learning_rate=0.003, seeds=3, solved=2, steps=450.0, score=0.99),
        SweepPoint(learning_rate=0.01, seeds=3, solved=0, steps=600.0, score=0.5),
    )
    text = render_study_markdown(study(cell("a").model_copy(update={"sweep": tried, "learning_rate": 0.003})))
    assert "| a | 0.003 | 0.003 (0.990, 2 of 3 solved in 450 steps), 0.01 (0.500) |" in text


def test_hostile_text_does_not_act_in_markdown():
    text = render_study_markdown(NASTY, pictures={HOSTILE: "a)](javascript:x"})
    fenced = text.split("```")
    outside = "".join(fenced[::2])
    outside = re.sub(r"(`+).*?\1", "", outside)
    assert "<script" not in outside
    assert "<img" not in outside
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "](a%29%5D%28javascript%3Ax)" in text


class Tags(HTMLParser):
    """The elements of a page with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text.append(data)


@pytest.mark.parametrize("found", [pytest.param(FEW, id="few"), pytest.param(NASTY, id="nasty")])
def test_a_page_runs_nothing_and_loads_nothing(found):
    tags = Tags(render_study_html(found))
    assert "script" not in {tag for tag, _ in tags.seen}
    assert not any(name.startswith("on") for _, attributes in tags.seen for name in attributes)
    sources = [attributes[name] or "" for _, attributes in tags.seen for name in ("src", "href") if name in attributes]
    assert sources
    assert all(source.startswith(("data:image/svg+xml;base64,", "#")) for source in sources)
    assert "\u202e" not in "".join(tags.text)


def test_a_page_has_the_numbers_and_its_pictures_inside():
    page = Tags(render_study_html(FEW))
    text = " ".join("".join(page.text).split())
    for expected in (
        "0.967 [0.907, 0.989]",
        "permutation, prompt_permutation",
        "5 of 5 above",
        "orderproof compare made_up",
    ):
        assert expected in text
    pictures = [a["src"] or "" for tag, a in page.seen if tag == "img"]
    drawn = [" ".join(ET.fromstring(base64.b64decode(p.split(",")[1])).itertext()) for p in pictures]
    assert ["score by length" in drawn[0], "learning curves" in drawn[1]] == [True, True]
    assert all(label in each for each in drawn for label in ("none", "rotary", "alibi"))


def test_pages_are_reproducible():
    assert render_study_html(FEW) == render_study_html(FEW)
    assert render_study_markdown(FEW) == render_study_markdown(FEW)
