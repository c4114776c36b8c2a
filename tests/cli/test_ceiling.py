"""`orderproof ceiling` and `orderproof list questions`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orderproof.lab.registry import questions
from tests.cli.conftest import Run


def rows(printed: str) -> list[list[str]]:
    """The rows of the table, which are what begins with a number."""
    return [line.split() for line in printed.splitlines() if line.strip()[:1].isdigit()]


def test_it_prints_the_decimal_the_fraction_and_the_derivation(run: Run):
    code, out, err = run("ceiling", "even_pairs", "--length", "4", "--length", "10", "--length", "200")
    assert (code, err) == (0, "")
    assert rows(out)[:2] == [["4", "5", "0.625", "5/8"], ["10", "11", "0.554688", "71/128"]]
    assert rows(out)[2][3:] == ["59", "digits", "/", "59", "digits"]
    assert "derivation: E max(p, 1 - p)" in out
    assert "predictor: knows the token at the position and the bag of the row" in out


def test_settings_change_the_ceiling(run: Run):
    _, out, _ = run("ceiling", "copy", "letters=100", "--length", "3")
    assert rows(out) == [["3", "7", "0.1717", "1717/10000"]]
    _, out, _ = run("ceiling", "copy", "same=true", "--length", "3")
    assert rows(out) == [["3", "7", "1", "1"]]


def test_json_on_standard_output_is_alone_there(run: Run, tmp_path: Path):
    code, out, err = run("ceiling", "even_pairs", "--length", "4", "--json", "-")
    assert code == 0
    found = json.loads(out)
    assert (found["schema"], found["question"], found["lengths"][0]["fraction"]) == (2, "even_pairs", "5/8")
    assert "schema_version" not in found
    assert "5/8" in err
    path = tmp_path / "found.json"
    code, out, err = run("ceiling", "even_pairs", "--length", "4", "--json", str(path), "-q")
    assert (code, out, err) == (0, "", "")
    assert json.loads(path.read_text()) == found


def test_nats_are_printed_with_their_floor(run: Run):
    _, out, _ = run("ceiling", "extrapolate", "--length", "64")
    assert rows(out) == [["64", "64", "0.613292", "0.330834", "-"]]
    assert "lower is better" in out


def test_an_unknown_ceiling_is_a_dash(run: Run):
    code, out, _ = run("ceiling", "python_source", "--length", "64")
    assert code == 0
    assert rows(out) == [["64", "64", "-", "-"]]
    assert "the ceiling is unknown" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["even_pair"], "did you mean 'even_pairs'"),
        (["copy", "letters"], "expected a setting as KEY=VALUE; got 'letters'"),
        (["copy", "letters=2", "letters=3"], "expected setting 'letters' once; got letters=2 and letters=3"),
        (["copy", "letters=1"], "letters=1: input should be greater than or equal to 2"),
        (["copy", "size=1"], "size=1, which is not a setting of it"),
        (["copy", "--length", "0"], "expected lengths of 1 or more; got 0"),
        (["copy", "--json", "/nowhere/at/all.json"], "cannot write"),
    ],
)
def test_invalid_usage_is_refused_in_one_line(run: Run, arguments: list[str], message: str):
    code, out, err = run("ceiling", *arguments)
    assert (code, out) == (2, "")
    (line,) = err.strip().splitlines()
    assert line.startswith("orderproof: ")
    assert message in line


def test_help_explains_the_ceiling(run: Run):
    code, out, _ = run("ceiling", "--help")
    assert code == 0
    assert "exact best score of a predictor that ignores token order" in " ".join(out.split())


def test_every_question_is_listed(run: Run):
    code, out, _ = run("list", "questions")
    assert code == 0
    names = {line.split()[0] for line in out.splitlines()[1:] if not line.startswith(" ")}
    assert names == set(questions())
    assert "not needed (control)" in out
