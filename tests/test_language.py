"""The vocabulary of the code and the documentation: standard terms, in plain technical English (CONTRIBUTING.md)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
DIALECT = re.compile(
    r"\b(alike|anew|beside|comes? apart|held against|mend(?:s|ed)?|nobody|own walk|so many|told|worked out)\b",
    re.IGNORECASE,
)


def docstrings(file: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield getattr(node, "lineno", 1), ast.get_docstring(node) or ""


def test_no_docstring_begins_with_a_question_word() -> None:
    found = [
        f"{file.relative_to(ROOT)}:{line}"
        for file in SOURCES
        for line, text in docstrings(file)
        if text.split(" ", 1)[0] in {"What", "Whether"}
    ]
    assert found == []


@pytest.mark.parametrize("files", [SOURCES, PAGES], ids=["source", "pages"])
def test_no_word_of_the_old_dialect_is_left(files: list[Path]) -> None:
    found = [
        f"{file.relative_to(ROOT)}:{number}: {match[0]}"
        for file in files
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        for match in DIALECT.finditer(line)
    ]
    assert found == []
