"""The README's generated table is what its command makes."""

from __future__ import annotations

import re

import pytest
from scripts import breadth, fingerprints

from orderproof.laws import laws


@pytest.fixture(scope="module")
def table() -> str:
    return fingerprints.parts(fingerprints.README.read_text(encoding="utf-8"))[1]


@pytest.mark.slow
def test_the_fingerprint_table_is_current():
    assert fingerprints.main(["--check"]) == 0, "run python scripts/fingerprints.py"


def test_a_stale_table_is_reported_and_a_written_one_is_current(tmp_path, monkeypatch, capsys):
    page = tmp_path / "README.md"
    page.write_text(f"before\n{fingerprints.START}\nold\n{fingerprints.END}\nafter\n", encoding="utf-8")
    monkeypatch.setattr(fingerprints, "README", page)
    monkeypatch.setattr(fingerprints, "table", lambda: "| new |")
    assert fingerprints.main(["--check"]) == 1
    assert "run python scripts/fingerprints.py" in capsys.readouterr().err
    assert fingerprints.main([]) == 0
    assert page.read_text(encoding="utf-8") == (f"before\n{fingerprints.START}\n| new |\n{fingerprints.END}\nafter\n")
    assert fingerprints.main(["--check"]) == 0


def test_a_page_without_the_markers_is_refused():
    with pytest.raises(SystemExit, match="add them where the table belongs"):
        fingerprints.parts("no table here")


def test_every_encoding_and_every_law_has_its_place(table: str):
    header, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    assert header[2:] == [f"{law.code} {law.name}" for law in laws() if law.code in fingerprints.LAWS]
    for block in ("bidirectional, 2 layers", "causal, 2 layers"):
        assert {re.split(",", row[1])[0] for row in rows if row[0] == block} == set(fingerprints.SHOWN)


def test_the_theorem_of_one_layer_stands_in_the_table(table: str):
    assert "| causal, 1 layer | none | refuted | proved | refuted | proved |" in table
    assert "| causal, 2 layers | none | refuted | refuted | refuted | proved |" in table


def test_no_row_of_the_table_is_undecided(table: str):
    assert not re.search("undecided|vacuous", table)


def test_the_readme_has_the_houses_order():
    text = fingerprints.README.read_text(encoding="utf-8")
    order = [
        "# orderproof",
        "```python",
        "## A proof and a counterexample",
        "## Install",
        "make audit",
        "make test",
        "## Limits",
    ]
    places = [text.index(each) for each in order]
    assert places == sorted(places)


def test_every_registered_encoding_has_its_row_in_the_reference():
    assert breadth.stale() == [], "run python scripts/breadth.py"
