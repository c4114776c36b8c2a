"""The pictures of a study: what is on them, and that they are the same every time."""

from __future__ import annotations

import importlib.util
import re
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest

from orderproof.errors import UsageError
from orderproof.records.study import Study
from orderproof.report import study_plot
from orderproof.report.figures import COLOURS
from orderproof.report.study_plot import (
    CEILING_LABEL,
    CELLS_PER_PANEL,
    TRAINED_LABEL,
    panels,
    study_plot_bytes,
    write_study_plot,
)
from tests.report.examples import HOSTILE
from tests.report.study_examples import ENCODINGS, FEW, IN_NATS, MANY, ONE_LENGTH, cell, study


def text_of(found: Study, picture: study_plot.Picture) -> str:
    return " ".join(" ".join(ET.fromstring(study_plot_bytes(found, picture=picture)).itertext()).split())


@pytest.mark.parametrize(
    ("found", "picture"),
    [
        (FEW, "curves"), (FEW, "lengths"), (ONE_LENGTH, "lengths"), (MANY, "curves"), (IN_NATS, "lengths"),
        (study(cell("rotary", seeds=1)), "curves"),
    ],
)  # fmt: skip
def test_every_cell_the_ceiling_and_the_measure_are_named(found, picture):
    text = text_of(found, picture)
    names = {panel.title for panel in panels(found)} | {name for panel in panels(found) for name in panel.series}
    if found is ONE_LENGTH and picture == "lengths":
        names = {each.label for each in found.cells} | {"proved prompt_permutation"}
    assert {name for name in names if name not in text} == set()
    assert CEILING_LABEL in text
    assert study_plot.MEASURE_LABELS[found.measure] in text


def test_few_cells_share_a_panel_and_many_have_one_an_encoding():
    (one,) = panels(FEW)
    assert list(one.series) == ["none", "rotary", "alibi"]
    assert [panel.title for panel in panels(MANY)] == list(ENCODINGS)
    assert all(list(panel.series) == ["1 layer", "2 layers"] for panel in panels(MANY))
    widths = study(*(cell(f"width {n}", encoding="rotary") for n in range(CELLS_PER_PANEL + 1)))
    assert [panel.title for panel in panels(widths)] == [each.label for each in widths.cells]
    plain = study(*(cell(e) for e in ENCODINGS))
    assert [(panel.title, list(panel.series)) for panel in panels(plain)] == [(e, [""]) for e in ENCODINGS]


def test_no_cell_is_lost_or_drawn_in_two_panels():
    for found in (FEW, ONE_LENGTH, MANY, IN_NATS):
        shared = [each.label for panel in panels(found) for each in panel.series.values()]
        assert sorted(shared) == sorted(each.label for each in found.cells)


def test_series_differ_in_colour_or_mark_and_neighbours_in_their_line_too():
    styles = [study_plot._style(k) for k in range(12)]
    assert len({(s["color"], s["marker"]) for s in styles}) == 12
    assert all(a["linestyle"] != b["linestyle"] for a, b in pairwise(styles))
    assert {s["color"] for s in styles} <= set(COLOURS) - {"#000000"}  # black is for the ceiling


def test_trained_lengths_are_shaded_where_scores_are_by_length_only():
    assert TRAINED_LABEL in text_of(FEW, "lengths")
    assert TRAINED_LABEL in text_of(IN_NATS, "lengths")  # a single length
    assert TRAINED_LABEL not in text_of(FEW, "curves")


def test_without_a_ceiling_no_line_is_drawn_for_it():
    for picture in ("curves", "lengths"):
        assert CEILING_LABEL not in text_of(study(cell("rotary", ceiling=None)), picture)
    one = study(cell("rotary", ceiling=None, lengths=(6,), trained=6))
    assert CEILING_LABEL not in text_of(one, "lengths")


def test_a_ceiling_at_another_length_than_the_curves_is_not_drawn_on_them():
    untested = study(cell("rotary", lengths=(5, 10), trained=20), trained_lengths=(1, 20))
    assert CEILING_LABEL not in text_of(untested, "curves")
    assert CEILING_LABEL in text_of(untested, "lengths")


def test_a_study_with_no_curve_is_drawn():
    empty = study(cell("rotary").model_copy(update={"curve": ()}))
    assert "learning curves" in text_of(empty, "curves")


@pytest.mark.parametrize("found", [FEW, pytest.param(ONE_LENGTH, marks=pytest.mark.slow)])
def test_the_same_study_gives_the_same_bytes_without_a_date(found):
    for suffix in (".svg", ".png"):
        assert study_plot_bytes(found, picture="lengths", suffix=suffix) == study_plot_bytes(
            found, picture="lengths", suffix=suffix
        )
    assert not re.search(rb"<dc:date>", study_plot_bytes(found, picture="curves"))


@pytest.mark.parametrize("name", ["a.svg", "a.PNG"])
def test_a_picture_is_written_by_the_names_ending_and_hostile_names_do_not_act(tmp_path, name):
    write_study_plot(study(cell(f"costs $x_1$ {HOSTILE}"), name=HOSTILE), tmp_path / name, picture="curves")
    data = (tmp_path / name).read_bytes()
    if name.endswith("svg"):
        assert not [e for e in ET.fromstring(data).iter() if e.tag.endswith(("script", "}img"))]
    else:
        assert data.startswith(b"\x89PNG")


def test_another_ending_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"to end in \.svg or \.png"):
        write_study_plot(FEW, tmp_path / "a.pdf")


def test_without_matplotlib_the_error_names_the_extra(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"a picture of a study needs matplotlib: pip install .*\[plots\]"):
        study_plot_bytes(FEW, picture="lengths")
