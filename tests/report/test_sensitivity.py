"""How far outputs move, on a terminal and drawn."""

from __future__ import annotations

import io
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from rich.console import Console

from orderproof.errors import UsageError
from orderproof.record import SubjectRecord
from orderproof.report import drawing
from orderproof.report.sensitivity_plot import write_plot
from orderproof.report.sensitivity_text import between, headline, render_sensitivity, share
from orderproof.sensitivity_record import OTHER, SAME, Example, Layer, Moved, Sensitivity, Spread, WithoutPositions
from tests.report.examples import HOSTILE

ZERO = Spread(median=0.0, low=0.0, high=0.0)


def moved(kind: str, value: float, *, told: bool = True) -> Moved:
    at = Spread(median=value, low=value * 0.8, high=value * 1.3)
    if not told or kind == OTHER:
        return Moved(kind=kind, sentences=9, cosine=at, relative=at)
    return Moved(kind=kind, sentences=9, cosine=at, relative=at, share=at, relative_share=at, nearer=0.5)


def record(*, name: str = "model", told: bool = True) -> Sensitivity:
    final = (moved(OTHER, 0.9), moved(SAME, 0.0, told=told), *(moved(k, v, told=told) for k, v in CHANGES.items()))
    first = tuple(moved(m.kind, 0.0, told=False) for m in final)
    return Sensitivity(
        orderproof="0", subject=SubjectRecord(name=name, kind="encoder", parameters=12, layers=1), source=name,
        sentences=9, left_out={"fewer than 3 words": 2}, pooling="mean", pooling_from="by default", seed=0,
        moved=final, layers=(Layer(layer=0, moved=first), Layer(layer=1, moved=final)),
        without=WithoutPositions(reason="no two sentences have as many tokens"),
        examples=(Example(kind="role swap", before=f"a {name} b.", after=f"b {name} a."),),
    )  # fmt: skip


CHANGES = {"role swap": 0.02, "1-gram shuffle": 0.2, "reversal": 0.3}


def printed(found: Sensitivity, **options: object) -> str:
    stream = io.StringIO()
    render_sensitivity(found, Console(file=stream, width=80, **options))  # type: ignore[arg-type]
    return stream.getvalue()


@pytest.mark.parametrize(
    ("value", "said"), [(0.0, "0"), (3e-13, "3e-13"), (0.00049, "5e-04"), (0.0078, "0.8%"), (1.25, "125.0%")]
)
def test_a_share(value, said):
    assert share(value) == said


def test_a_share_with_its_interval():
    assert between(Spread(median=0.1, low=0.05, high=0.2)) == "10.0% [5.0%, 20.0%]"
    assert between(Spread(median=1e-13, low=1e-14, high=1e-12)) == "1e-13"


def test_the_answer_is_one_sentence_and_every_row_is_there():
    text = " ".join(printed(record()).split())
    assert (
        "Exchanging the two roles moves a sentence 2.0% [1.6%, 2.6%] of the way to another sentence; "
        "reversing the words 30.0% [24.0%, 39.0%]." in text
    )
    assert "9 sentences from model; left out 2, fewer than 3 words. The vector: the mean over its tokens" in text
    assert "1-gram shuffle 9 0.2 0.2 20.0% [16.0%, 26.0%] 50%" in text
    assert "layer role 1-gram reversal 0 - - - 1 2.0% 20.0% 30.0%" in text
    assert "Not measured: no two sentences have as many tokens." in text
    assert "as it stands a model b. role swap b model a." in text


def test_nothing_is_shared_where_other_sentences_are_the_same():
    assert headline(record(told=False)).startswith("Other sentences have the same vector")


def test_lines_end_without_blanks_and_fit_and_no_colour_is_plain_text():
    text = printed(record(), no_color=True, force_terminal=True)
    assert "\x1b" not in text
    assert all(line == line.rstrip() and len(line) <= 80 for line in text.splitlines())


def test_hostile_names_and_sentences_do_not_act():
    text = printed(record(name=HOSTILE), force_terminal=False)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "[bold]" in "".join(text.split("\n"))


@pytest.mark.parametrize("name", ["a.svg", "a.PNG"])
@pytest.mark.parametrize("found", [record(), record(told=False), record(name="costs $x_1$ " + HOSTILE)])
def test_a_plot_is_written_by_the_names_ending(tmp_path: Path, name: str, found: Sensitivity) -> None:
    write_plot(found, tmp_path / name)
    data = (tmp_path / name).read_bytes()
    if name.endswith("svg"):
        text = " ".join(ET.fromstring(data).itertext())
        assert "how far a sentence moves when its words change places" in text
        assert {k for k in CHANGES if k in text} == set(CHANGES)
    else:
        assert data.startswith(b"\x89PNG")


def test_the_same_record_gives_the_same_svg(tmp_path):
    for name in ("a.svg", "b.svg"):
        write_plot(record(), tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert not re.search(rb"<dc:date>", (tmp_path / "a.svg").read_bytes())


def test_without_matplotlib_the_error_names_the_extra(monkeypatch, tmp_path):
    monkeypatch.setattr(drawing.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r'pip install "orderproof\[plots\]"'):
        write_plot(record(), tmp_path / "a.svg")


def test_another_ending_and_a_place_that_cannot_be_written_are_refused(tmp_path):
    with pytest.raises(UsageError, match=r"--plot PATH to end in \.svg or \.png; got '-'"):
        write_plot(record(), "-")
    with pytest.raises(UsageError, match="cannot write"):
        write_plot(record(), tmp_path / "none" / "a.svg")
