"""The terminal report and the figure of word-order sensitivity."""

from __future__ import annotations

import importlib.util
import io
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from rich.console import Console

from orderproof.errors import UsageError
from orderproof.records.audit import SubjectRecord
from orderproof.records.sensitivity import (
    OTHER_SENTENCE,
    SAME_SENTENCE,
    LayerEffects,
    MedianInterval,
    PerturbationEffect,
    PerturbationExample,
    WithoutPositions,
    WordOrderSensitivity,
)
from orderproof.report.sensitivity_plot import write_sensitivity_plot
from orderproof.report.sensitivity_terminal import (
    format_interval,
    format_share,
    render_sensitivity,
    sensitivity_headline,
)
from tests.report.examples import HOSTILE

ZERO = MedianInterval(median=0.0, low=0.0, high=0.0)


def effect(kind: str, value: float, *, comparable: bool = True) -> PerturbationEffect:
    at = MedianInterval(median=value, low=value * 0.8, high=value * 1.3)
    if not comparable or kind == OTHER_SENTENCE:
        return PerturbationEffect(perturbation=kind, sentences=9, cosine=at, relative=at)
    return PerturbationEffect(
        perturbation=kind,
        sentences=9,
        cosine=at,
        relative=at,
        share_of_unrelated=at,
        relative_share_of_unrelated=at,
        still_nearest_fraction=0.5,
    )


def record(*, name: str = "model", comparable: bool = True) -> WordOrderSensitivity:
    final = (
        effect(OTHER_SENTENCE, 0.9),
        effect(SAME_SENTENCE, 0.0, comparable=comparable),
        *(effect(k, v, comparable=comparable) for k, v in CHANGES.items()),
    )
    first = tuple(effect(m.perturbation, 0.0, comparable=False) for m in final)
    return WordOrderSensitivity(
        orderproof="0", subject=SubjectRecord(name=name, kind="encoder", parameters=12, layers=1), source=name,
        sentences=9, excluded={"fewer than 3 words": 2}, pooling="mean", pooling_source="by default", seed=0,
        effects=final, layers=(LayerEffects(layer=0, effects=first), LayerEffects(layer=1, effects=final)),
        without_positions=WithoutPositions(reason="no two sentences have the same number of tokens"),
        examples=(PerturbationExample(kind="role swap", before=f"a {name} b.", after=f"b {name} a."),),
    )  # fmt: skip


CHANGES = {"role swap": 0.02, "1-gram shuffle": 0.2, "reversal": 0.3}


def printed(found: WordOrderSensitivity, **options: object) -> str:
    stream = io.StringIO()
    render_sensitivity(found, Console(file=stream, width=80, **options))  # type: ignore[arg-type]
    return stream.getvalue()


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0"), (3e-13, "3e-13"), (0.00049, "5e-04"), (0.0078, "0.8%"), (1.25, "125.0%")]
)
def test_share_format(value, text):
    assert format_share(value) == text


def test_interval_format():
    assert format_interval(MedianInterval(median=0.1, low=0.05, high=0.2)) == "10.0% [5.0%, 20.0%]"
    assert format_interval(MedianInterval(median=1e-13, low=1e-14, high=1e-12)) == "1e-13"


def test_report_has_a_headline_and_every_row():
    text = " ".join(printed(record()).split())
    assert (
        "Swapping the two roles moves a sentence 2.0% [1.6%, 2.6%] of the way to another sentence; "
        "reversing the words 30.0% [24.0%, 39.0%]." in text
    )
    assert "9 sentences from model; 2 excluded: fewer than 3 words. Sentence vector: mean over the tokens" in text
    assert "1-gram shuffle 9 0.2 0.2 20.0% [16.0%, 26.0%] 50%" in text
    assert "layer role 1-gram reversal 0 - - - 1 2.0% 20.0% 30.0%" in text
    assert "Not measured: no two sentences have the same number of tokens." in text
    assert "original a model b. role swap b model a." in text


def test_headline_without_a_reference_distance():
    assert sensitivity_headline(record(comparable=False)).startswith("All sentences have the same vector")


def test_lines_fit_without_trailing_blanks_and_no_colour_is_plain_text():
    text = printed(record(), no_color=True, force_terminal=True)
    assert "\x1b" not in text
    assert all(line == line.rstrip() and len(line) <= 80 for line in text.splitlines())


def test_hostile_names_and_sentences_are_escaped():
    text = printed(record(name=HOSTILE), force_terminal=False)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "[bold]" in "".join(text.split("\n"))


@pytest.mark.parametrize(
    ("found", "name"),
    [
        (record(), "a.PNG"), (record(), "a.svg"), (record(comparable=False), "a.svg"),
        (record(name="costs $x_1$ " + HOSTILE), "a.svg"),
    ],
)  # fmt: skip
def test_figure_format_follows_the_suffix(tmp_path: Path, name: str, found: WordOrderSensitivity) -> None:
    write_sensitivity_plot(found, tmp_path / name)
    data = (tmp_path / name).read_bytes()
    if name.endswith("svg"):
        text = " ".join(ET.fromstring(data).itertext())
        assert "sensitivity to word order" in text
        assert {k for k in CHANGES if k in text} == set(CHANGES)
    else:
        assert data.startswith(b"\x89PNG")


def test_the_same_record_gives_the_same_svg(tmp_path):
    for name in ("a.svg", "b.svg"):
        write_sensitivity_plot(record(), tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert not re.search(rb"<dc:date>", (tmp_path / "a.svg").read_bytes())


def test_without_matplotlib_the_error_names_the_extra(monkeypatch, tmp_path):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"pip install .*\[plots\]"):
        write_sensitivity_plot(record(), tmp_path / "a.svg")


def test_other_suffixes_and_unwritable_paths_are_refused(tmp_path):
    with pytest.raises(UsageError, match=r"--plot PATH to end in \.svg or \.png; got '-'"):
        write_sensitivity_plot(record(), "-")
    with pytest.raises(UsageError, match="cannot write"):
        write_sensitivity_plot(record(), tmp_path / "none" / "a.svg")
