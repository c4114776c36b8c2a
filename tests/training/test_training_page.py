"""The page of collators and losses has the rows that its tool writes."""

from __future__ import annotations

import runpy
from typing import Any

import pytest

from tests.docs.code_blocks import ROOT

PAGE = ROOT / "docs" / "evidence" / "training" / "training.md"


@pytest.mark.filterwarnings("ignore")
def test_the_first_rows_are_those_that_are_made_again() -> None:
    tool: dict[str, Any] = runpy.run_path(str(ROOT / "tools" / "training_page.py"))
    rows = [row for row in tool["rows_of_transformers"]() if row.architecture == "llama"]
    made = [line for line in tool["page"](rows).splitlines() if line.startswith("| llama")]
    stored = PAGE.read_text(encoding="utf-8").splitlines()
    assert len(made) == len(rows) > 8
    assert [line for line in made if line not in stored] == []
    assert sum(line.startswith("| ") for line in stored) - 2 >= 30
