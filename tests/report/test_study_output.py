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

from orderproof.records.study import Estimate, Improvement, Study
from orderproof.report import study_phrases, study_schema
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
    with pytest.raises(jsonschema.ValidationError, match="2 was expected"):
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


def test_a_pair_read_the_other_way_round_is_the_rest():
    pair = Improvement(first="a", second="b", lengths=(4,), probability=0.75, low=0.5, high=0.875)
    found = study(cell("a"), cell("b"), improvements=(pair,))
    (_, one), (other, _) = study_phrases.improvement_matrix(found)
    assert one == pair
    assert other == Improvement(first="b", second="a", lengths=(4,), probability=0.25, low=0.125, high=0.5)
    assert study_phrases.compared_lengths_text(found) == "over length 4"


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
        "20, trained | 25 |", "5 of 5 above", "| ceiling | 0.500 |", "| 1 none |  | 0.75 [0.50, 0.90] |",
        "5 seeds per cell",
    ):  # fmt: skip
        assert expected in text


def test_ceilings_that_cells_do_not_share_are_in_the_cells():
    text = render_study_markdown(study(cell("a", ceiling=0.25), cell("b", ceiling=0.75)))
    assert "(ceiling 0.250)" in text
    assert "(ceiling 0.750)" in text
    assert "\n| ceiling |" not in text


def test_too_many_pairs_are_left_to_the_json():
    assert "pairs of cells, are in the JSON" in render_study_markdown(ONE_LENGTH)
    assert "pairs of cells, are in the JSON" in render_study_html(ONE_LENGTH)
    assert study_phrases.improvement_matrix(ONE_LENGTH) == []


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
