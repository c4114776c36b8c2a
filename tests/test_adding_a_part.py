"""A law, a lemma, an encoding, a question, an engine and a claim are each one file, with its test.

The files are those of the pages `docs/how_to/add_*.md`. They are written to a temporary folder, which a plugin of
pytest adds to the packages and folders of tests of the same names. The generic tests then find and run them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.docs.code_blocks import ROOT, blocks


class Part(NamedTuple):
    """A part of the package that a page adds."""

    page: str
    name: str  # in the ids of the tests
    tests: tuple[str, ...]  # the generic tests of its kind
    least: int  # the least number of them that run for it
    mistake: tuple[str, str]  # a wrong version of its file: the text before and after


PARTS = {
    "proved law": Part(
        "add_a_law.md",
        "cyclic_shift",
        ("laws/proved", "recheck/test_statements.py", "catalogue/test_catalogue.py"),
        16,
        ("generators=lambda tokens: (cycle(tokens),)", "generators=lambda tokens: (cycle(tokens)[::-1],)"),
    ),
    "measured law": Part(
        "add_a_law.md",
        "equal_tokens",
        ("laws/measured/test_measured_laws.py", "catalogue/test_catalogue.py"),
        6,
        ("return output[:, :1].expand_as(output), output", "return output, output"),
    ),
    "lemma": Part(
        "add_a_lemma.md",
        "hist",
        ("diagnosis/lemmas", "diagnosis/mutants/test_mutants.py"),
        7,
        ("fact.dependence.max()", "fact.dependence.flat[0]"),
    ),
    "rule for every length": Part(
        "add_a_lemma.md",
        "histogram_of",
        ("theorems/test_programs.py", "theorems/test_equivariance.py", "theorems/mutants"),
        9,
        ("call.dtype, whole.same)", "call.dtype)"),
    ),
    "encoding": Part(
        "add_an_encoding.md",
        "log_distance",
        ("encodings/test_contract*.py", "catalogue/test_catalogue.py"),
        30,
        ("distance.abs().double()", "distance.clamp(min=0).double()"),
    ),
    "question": Part(
        "add_a_question.md",
        "find_one",
        ("lab/test_questions.py", "catalogue/test_catalogue.py"),
        16,
        ("Fraction(1, length)", "Fraction(1, 2)"),
    ),
    "engine": Part(
        "add_an_engine.md",
        "in_process",
        ("lab/engines/test_engine.py",),
        1,
        ("in jobs(runs):", "in jobs(runs[1:]):"),
    ),
    "claim": Part("add_a_claim.md", "distance_only", ("claims",), 3, ("LawCheck(REVERSAL)", "LawCheck(PERMUTATION)")),
}
STATEMENT = '("OP'  # the start of a law's entry in the rechecker
# Lists the packages' new folders before the tests are collected, and enters what the pages say about the rechecker.
PLUGIN = """
import importlib
from pathlib import Path

import orderproof_recheck.statements as statements

folder = Path(__file__).parent
for package in sorted({path.parent for path in folder.glob("*/**/*.py")}):
    parts = package.relative_to(folder).parts
    module = importlib.import_module(".".join(parts[1:] if parts[0] == "src" else parts))
    module.__path__ = [*module.__path__, str(package)]
statements.STATEMENTS.update(eval("{" + (folder / "statements.txt").read_text() + "}", vars(statements)))
"""


def written(folder: Path) -> list[Path]:
    """The files of the pages, written below the folder; those that are tests themselves."""
    tests = []
    for page in sorted({part.page for part in PARTS.values()}):
        for block in blocks(ROOT / "docs/how_to" / page):
            if block.title:
                path = folder / block.title
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(block.body, encoding="utf-8")
                tests += [path] if path.name.startswith("test_") else []
            elif block.language == "text" and block.body.startswith(STATEMENT):
                (folder / "statements.txt").write_text(block.body)
    (folder / "added_parts.py").write_text(PLUGIN, encoding="utf-8")
    return tests


def outcomes(folder: Path, tests: list[Path]) -> tuple[dict[str, Counter[str]], str]:
    """The outcomes of the tests of each part, and the output: one run of pytest on all that belongs to any part."""
    report = folder / "report.jsonl"
    (folder / "report_outcomes.py").write_text(
        "import json\n"
        "def pytest_runtest_logreport(report):\n"
        "    if report.when == 'call' or report.failed or report.skipped:\n"
        f"        with open({str(report)!r}, 'a') as file:\n"
        "            file.write(json.dumps([report.nodeid, report.outcome]) + '\\n')\n",
        encoding="utf-8",
    )
    found_by = {path for part in PARTS.values() for path in part.tests}
    paths = sorted({str(path.relative_to(ROOT)) for pattern in found_by for path in (ROOT / "tests").glob(pattern)})
    done = subprocess.run(
        [
            sys.executable, "-m", "pytest", "-p", "added_parts", "-p", "report_outcomes", "-n", "0",
            "-p", "no:cacheprovider", "-q",
            "-k", " or ".join(part.name for part in PARTS.values()), *paths, *map(str, tests),
        ],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])},
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    output = (done.stdout + done.stderr)[-8000:]
    assert report.exists(), output
    found = {kind: Counter[str]() for kind in PARTS}
    for line in report.read_text(encoding="utf-8").splitlines():
        test, outcome = json.loads(line)
        for kind, part in PARTS.items():
            found[kind][outcome] += part.name in test
    return found, output


def test_generic_tests_find_and_pass_each_new_part(tmp_path: Path) -> None:
    found, output = outcomes(tmp_path, written(tmp_path))  # all in one test: workers would repeat the run
    assert not any(counted["failed"] for counted in found.values()), output
    assert {kind: n["passed"] for kind, n in found.items() if n["passed"] < PARTS[kind].least} == {}, output


@pytest.mark.slow
def test_generic_tests_find_a_mistake_in_each_part(tmp_path: Path) -> None:
    tests = written(tmp_path)
    for part in PARTS.values():
        before, after = part.mistake
        (file,) = [f for f in (tmp_path / "src").rglob("*.py") if before in f.read_text(encoding="utf-8")]
        file.write_text(file.read_text(encoding="utf-8").replace(before, after), encoding="utf-8")
    counted, output = outcomes(tmp_path, tests)
    assert all(counted[kind]["failed"] for kind in PARTS), output
