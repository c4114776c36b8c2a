"""The README's generated table is what its command makes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from orderproof.laws import find_proved_law
from tests.docs.code_blocks import ROOT
from tests.docs.run_tool import run_tool

START_MARKER = "<!-- fingerprints: written by tools/readme_table.py -->"
END_MARKER = "<!-- end of fingerprints -->"
ENCODINGS_SHOWN = {"none", "alibi", "learned", "rotary", "sinusoidal", "t5"}


@pytest.fixture(scope="module")
def readme() -> str:
    return (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def table(readme: str) -> str:
    return readme.partition(START_MARKER)[2].partition(END_MARKER)[0].strip()


@pytest.mark.slow
def test_fingerprint_table_is_current():
    done = run_tool("readme_table.py", "--check")
    assert done.returncode == 0, done.stderr


def test_stale_table_is_reported_and_replaced(tmp_path: Path):
    page, new = tmp_path / "README.md", tmp_path / "table.md"
    new.write_text("| new |\n", encoding="utf-8")
    page.write_text(f"before\n{START_MARKER}\nold\n{END_MARKER}\nafter\n", encoding="utf-8")
    options = ("--readme", page, "--table", new)
    stale = run_tool("readme_table.py", "--check", *options)
    assert stale.returncode == 1
    assert "run python tools/readme_table.py" in stale.stderr
    assert run_tool("readme_table.py", *options).returncode == 0
    assert page.read_text(encoding="utf-8") == f"before\n{START_MARKER}\n| new |\n{END_MARKER}\nafter\n"
    assert run_tool("readme_table.py", "--check", *options).returncode == 0


def test_page_without_the_markers_is_refused(tmp_path: Path):
    (tmp_path / "README.md").write_text("no table here", encoding="utf-8")
    done = run_tool("readme_table.py", "--check", "--readme", tmp_path / "README.md")
    assert done.returncode == 1
    assert "add them where the table belongs" in done.stderr


def test_table_has_every_encoding_and_law(table: str):
    header, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    codes = [re.split(" ", cell)[0] for cell in header[2:]]
    assert codes == ["OP101", "OP102", "OP103", "OP201"]
    assert header[2:] == [f"{code} {find_proved_law(code).name}" for code in codes]
    for block in ("bidirectional, 2 layers", "causal, 2 layers"):
        assert {re.split(",", row[1])[0] for row in rows if row[0] == block} == ENCODINGS_SHOWN


def test_table_shows_the_theorem_of_one_causal_layer(table: str):
    assert "| causal, 1 layer | none | refuted | proved | refuted | proved |" in table
    assert "| causal, 2 layers | none | refuted | refuted | refuted | proved |" in table


def test_no_row_of_the_table_is_undecided(table: str):
    assert not re.search("undecided|vacuous", table)


def test_sections_of_the_readme_are_in_order(readme: str):
    order = [
        "# orderproof",
        "```python",
        "## A proof and a counterexample",
        "## Install",
        "make audit",
        "make test",
        "## Limits",
    ]
    places = [readme.index(each) for each in order]
    assert places == sorted(places)


def test_every_registered_encoding_has_its_row_in_the_reference():
    done = run_tool("encoding_table.py", "--check")
    assert done.returncode == 0, done.stderr
