"""The README is short and in order; its pictures and the table of fingerprints are what their commands make."""

from __future__ import annotations

import re
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from orderproof.laws import find_proved_law
from orderproof.seeded_random import seeded_random
from tests.docs.code_blocks import ROOT
from tests.docs.run_tool import run_tool

START_MARKER = "<!-- fingerprints: written by tools/fingerprint_table.py -->"
END_MARKER = "<!-- end of fingerprints -->"
ENCODINGS_SHOWN = {"none", "alibi", "learned", "rotary", "sinusoidal", "t5"}


@pytest.fixture(scope="module")
def readme() -> str:
    return (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def table() -> str:
    page = (ROOT / "docs/how_to/which_encoding.md").read_text(encoding="utf-8")
    return page.partition(START_MARKER)[2].partition(END_MARKER)[0].strip()


@pytest.mark.slow
def test_fingerprint_table_is_current():
    done = run_tool("fingerprint_table.py", "--check")
    assert done.returncode == 0, done.stderr


def test_stale_table_is_reported_and_replaced(tmp_path: Path):
    page, new = tmp_path / "README.md", tmp_path / "table.md"
    new.write_text("| new |\n", encoding="utf-8")
    page.write_text(f"before\n{START_MARKER}\nold\n{END_MARKER}\nafter\n", encoding="utf-8")
    options = ("--page", page, "--table", new)
    stale = run_tool("fingerprint_table.py", "--check", *options)
    assert stale.returncode == 1
    assert "run python tools/fingerprint_table.py" in stale.stderr
    assert run_tool("fingerprint_table.py", *options).returncode == 0
    assert page.read_text(encoding="utf-8") == f"before\n{START_MARKER}\n| new |\n{END_MARKER}\nafter\n"
    assert run_tool("fingerprint_table.py", "--check", *options).returncode == 0


def test_page_without_the_markers_is_refused(tmp_path: Path):
    (tmp_path / "README.md").write_text("no table here", encoding="utf-8")
    done = run_tool("fingerprint_table.py", "--check", "--page", tmp_path / "README.md")
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
        "FAIL OP201 causal",
        "  edit ",
        "## Your own model",
        "make audit",
        "docs/images/report.png",
        "## A port of your model",
        "--against mlx",
        "## Why order needs positions",
        "docs/images/explain_attention.png",
        "## Choose an encoding",
        "## What it found",
        "## What a verdict means",
    ]
    places = [readme.index(each) for each in order]
    assert places == sorted(places)
    assert len(readme.splitlines()) < 190


def test_the_picture_of_the_swap_is_current():
    done = run_tool("readme_pictures.py", "--check")
    assert done.returncode == 0, done.stderr
    assert "two different vectors" in (ROOT / "docs/images/order_swap.svg").read_text(encoding="utf-8")


def test_the_picture_of_the_report_is_that_of_a_first_screen():
    with Image.open(ROOT / "docs/images/report.png") as picture:
        assert picture.size == (1280, 800)
        assert len(picture.convert("RGB").resize((200, 200)).getcolors(40_000) or ()) > 50


def test_the_gallery_has_every_encoding_and_its_picture():
    done = run_tool("encoding_gallery.py", "--check")
    assert done.returncode == 0, done.stderr


def test_a_picture_does_not_depend_on_the_state_of_the_random_generator():
    tool = runpy.run_path(str(ROOT / "tools/encoding_gallery.py"))
    with seeded_random(7):
        torch.rand(3)
        before = torch.get_rng_state()
        assert tool["svg"]("t5") == (ROOT / "docs/evidence/encodings/t5.svg").read_text(encoding="utf-8")
        assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("mode", [(), ("--check",)], ids=["write", "check"])
def test_the_gallery_is_not_written_without_the_row_of_an_encoding(mode: tuple[str, ...], tmp_path: Path):
    table, gallery = ROOT / "docs/reference/encodings.md", ROOT / "docs/reference/gallery.md"
    lines = table.read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "encodings.md").write_text("".join(line for line in lines if not line.startswith("| `t5`")))
    before = gallery.stat().st_mtime_ns
    done = run_tool("encoding_gallery.py", "--table", tmp_path / "encodings.md", *mode)
    assert done.returncode == 2
    assert done.stderr == ("encodings.md has no row for t5; first run python tools/encoding_table.py --only t5\n")
    assert gallery.stat().st_mtime_ns == before


@pytest.mark.parametrize("study", ["copy", "extrapolate", "length_generalisation", "reverse", "who_did_what"])
def test_a_study_concludes_in_two_sentences_with_numbers_of_its_tables(study: str):
    text = (ROOT / f"docs/evidence/studies/{study}.md").read_text(encoding="utf-8")
    conclusion = text.partition("## Conclusion\n")[2].partition("\n## ")[0].strip()
    assert len(re.findall(r"\.(?= [A-Z]|$)", conclusion)) == 2
    results = text.partition("## Results\n")[2].partition("## Results from the literature")[0]
    numbers = re.findall(r"\d\.\d+", conclusion)
    assert len(numbers) >= 4
    assert [n for n in numbers if n not in results] == []


def test_the_recommendation_has_only_numbers_of_the_studies():
    page = (ROOT / "docs/how_to/which_encoding.md").read_text(encoding="utf-8")
    studies = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "docs/evidence/studies").glob("*.md"))
    numbers = re.findall(r"\d\.\d{3}", page)
    assert len(numbers) > 10
    assert [n for n in numbers if n not in studies] == []


def test_every_registered_encoding_has_its_row_in_the_reference():
    done = run_tool("encoding_table.py", "--check")
    assert done.returncode == 0, done.stderr


@pytest.fixture
def table_tool(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.syspath_prepend(ROOT / "tools")
    return runpy.run_path(str(ROOT / "tools/encoding_table.py"))


def test_only_the_named_rows_are_measured_and_the_others_are_kept(
    table_tool: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    page, text = tmp_path / "encodings.md", (ROOT / "docs/reference/encodings.md").read_text(encoding="utf-8")
    main: Callable[[list[str]], int] = table_tool["main"]
    main.__globals__["row"] = lambda name: (f"`{name}`", "measured")  # an audit takes half a minute
    rows = text.splitlines(keepends=True)
    page.write_text("".join(line for line in rows if not line.startswith("| `rotary`")), encoding="utf-8")
    assert main(["--only", "rotary", "--only", "alibi", "--page", str(page)]) == 0
    expected = [
        f"| `{name}` | measured |\n" if (name := line.split("`")[1]) in {"alibi", "rotary"} else line
        for line in rows
        if line.startswith("| `")
    ]
    assert [line for line in page.read_text(encoding="utf-8").splitlines(True) if line.startswith("| `")] == expected
    assert re.fullmatch(r"1 of 2: rotary, \d+ s\n2 of 2: alibi, \d+ s\n", capsys.readouterr().err)


def test_an_unknown_encoding_is_refused(table_tool: dict[str, Any], capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit, match="2"):
        table_tool["main"](["--only", "rotery"])
    assert "invalid choice: 'rotery'" in capsys.readouterr().err


def test_the_table_names_the_command_for_a_missing_row(tmp_path: Path):
    text = (ROOT / "docs/reference/encodings.md").read_text(encoding="utf-8")
    page = tmp_path / "encodings.md"
    page.write_text(re.sub(r"^\| `(alibi|t5)`.*\n", "", text, flags=re.MULTILINE), encoding="utf-8")
    done = run_tool("encoding_table.py", "--check", "--page", page)
    assert done.returncode == 1
    assert "run python tools/encoding_table.py --only alibi --only t5\n" in done.stderr


@pytest.mark.parametrize(
    ("error", "shown"),
    [(0.0, "0"), (8.9e-16, "1e-15"), (1.8e-15, "1e-15"), (2.1e-15, "1e-14"), (3e-8, "1e-07"), (1.4e-7, "1e-07")],
)
def test_an_error_is_at_most_twice_the_power_of_ten_in_the_table(error: float, shown: str, table_tool: dict[str, Any]):
    assert table_tool["power_of_ten"](error) == shown
    assert error <= 2 * float(shown)
