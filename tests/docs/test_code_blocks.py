"""Every code block of the documentation runs and prints what the page shows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.code_blocks import LONG, PAGES, ROOT, Page, blocks, commands, first_missing_line

# Pages that add a part to the package run in a separate process: the part stays in the registry of its kind.
REGISTERING = {page.name for page in PAGES if page.name.startswith(("add_a_", "add_an_"))}
WITH_CODE = [p for p in PAGES if any(b.language in ("python", "console") and "long" not in b.words for b in blocks(p))]


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_CODE, ids=lambda p: str(p.relative_to(ROOT)))
@pytest.mark.filterwarnings("default")
def test_code_of_a_page_gives_the_output_shown(page: Path, tmp_path: Path) -> None:
    if page.name not in REGISTERING:
        Page(page, tmp_path).run()
        return
    done = subprocess.run(
        [sys.executable, "-m", "tests.docs.code_blocks", str(page), str(tmp_path)],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_every_skipped_block_has_a_reason() -> None:
    first = [next(commands(b))[0] for page in PAGES for b in blocks(page) if b.is_a("console", "long")]
    assert all(any(command.startswith(known) for known in LONG) for command in first)
    assert all(any(command.startswith(known) for command in first) for known in LONG), "a reason without a block"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_fence_has_a_language_and_every_link_a_target(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert all(block.language for block in blocks(page))
    assert text.count("\n```") % 2 == 0
    for target in linked(text):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def linked(text: str) -> list[str]:
    import re

    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)\s]*)?(?:\s+\"[^\"]*\")?\)", text)  # and not b[h](m, n), a formula
    return [t for t in targets if not t.startswith(("http:", "https:", "mailto:"))]


def test_shown_lines_must_occur_in_order() -> None:
    output = "one  two\nmeasured 1.8e-07 (falls by 2^-29)\nthree\n"
    assert first_missing_line(["one two", "...", "three"], output) is None
    assert first_missing_line(["measured 3.1e-08 (falls by 2^-30)"], output) is None
    assert first_missing_line(["three", "one two"], output) == "one two"
    assert first_missing_line(["four"], output) == "four"


def test_titled_block_is_written_into_a_new_folder(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text('```yaml title=".github/workflows/order.yml"\nname: order\n```\n')
    for block in blocks(page):
        Page(page, tmp_path)._write(block)
    assert (tmp_path / ".github/workflows/order.yml").read_text() == "name: order\n"
