"""Each number in the text of the README and of the first page is the one of the page that it comes from."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable

import pytest

from orderproof.claims.registry import claims
from tests.docs.code_blocks import ROOT

EVIDENCE = ROOT / "docs/evidence"


def page(name: str) -> str:
    return (EVIDENCE / name).read_text(encoding="utf-8")


def rows(text: str) -> list[list[str]]:
    """The cells of each row of the tables of a page."""
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in text.splitlines() if line[:2] == "| "]


def found(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    assert match, pattern
    return match[1]


def defects() -> str:
    scripts = [row[0] for row in rows(page("findings/README.md")) if row[0].startswith("[")]
    assert len(scripts) == len(list((EVIDENCE / "findings").glob("*.py")))
    return str(len(scripts))


def failing_padding() -> str:
    """The architectures in which a call with a padding mask is refuted."""
    (row,) = [row for row in rows(page("atlas/atlas.md")) if row[0] == "OP202 padding"]
    return found(r"\[(\d+)\]", row[3])


def mlx(column: int) -> str:
    summary = page("ports/ports.md").partition("## Summary")[2].partition("\n## ")[0]
    (row,) = [row for row in rows(summary) if row[:2] == ["mlx", "default"]]
    return row[column]


def python_version() -> str:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return found(r">=(\d+\.\d+)", project["requires-python"])


SOURCES: dict[str, Callable[[], str]] = {
    "transformers {} has": lambda: found(r"in transformers ([\d.]+\d)", page("findings/README.md")),
    "[{} defects": defects,
    "real tokens in {} architectures": failing_padding,
    "audits of {} architectures": lambda: found(r"of these (\d+) have findings", page("atlas/atlas.md")),
    "the {} architectures that MLX": lambda: mlx(2),
    "knows, {} pass every law": lambda: mlx(3),
    "All of the {} [faults]": lambda: found(r"refuted: (\d+)", page("faults/injected_faults.md")),
    "Python {} or later": python_version,
    "(some {} MB)": lambda: found(r"\(some (\d+) MB", (ROOT / "Makefile").read_text(encoding="utf-8")),
    "[{} common": lambda: {8: "eight", 9: "nine", 10: "ten"}[len(claims())],
    "lesson of {} minutes": lambda: found(
        r"(\d+) minutes", (ROOT / "docs/tutorial/teach_order.md").read_text(encoding="utf-8")
    ),
}


def prose(name: str) -> str:
    """A page on one line, without its code and without the addresses of its links."""
    text = re.sub(r"^```.*?^```", "", (ROOT / name).read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return " ".join(re.sub(r"`[^`]*`|\]\([^)]*\)", "]", text).split())


@pytest.mark.parametrize("phrase", SOURCES)
def test_the_readme_has_the_number_of_the_page_it_comes_from(phrase: str) -> None:
    assert phrase.format(SOURCES[phrase]()) in prose("README.md")


@pytest.mark.parametrize("name", ["README.md", "docs/index.md"])
def test_no_number_is_without_a_source(name: str) -> None:
    text = prose(name)
    for phrase, source in SOURCES.items():
        text = text.replace(phrase.format(source()), " ")
    text = text.replace("exit codes] (3: undecided)", "").replace("as transformers 5 saves", "")
    assert re.findall(r"\b\d[\d.,]*", text) == []


def test_every_fault_of_the_page_is_refuted_and_located() -> None:
    counts = {found(rf"{word}: (\d+)", page("faults/injected_faults.md")) for word in ("faults", "refuted", "located")}
    assert len(counts) == 1


@pytest.mark.parametrize(
    "name", ["README.md", "docs/index.md", "docs/reference/glossary.md", "docs/how_to/read_a_report.md"]
)
def test_proved_means_one_thing(name: str) -> None:
    definition = "lemmas on the recorded graph of one call derive the law over the real numbers, for every input"
    assert definition in prose(name)
