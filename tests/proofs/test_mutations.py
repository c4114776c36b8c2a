"""A changed statement has no proof: each mutation is well-formed, and Coq rejects the proof of that statement."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.code_blocks import ROOT
from tests.proofs.mutations import MUTATIONS

needs_coq = pytest.mark.skipif(shutil.which("coqc") is None, reason="Coq is not installed: see make theorems")
PROOFS = ROOT / "proofs"
OPTIONS = ("-w", "-notation-overridden,-ambiguous-paths")
CASES = [pytest.param(*case, id=f"{case[1]}-{k}") for k, case in enumerate(MUTATIONS)]


def is_current(build: Path) -> bool:
    """True if a folder has every file as it is now, compiled."""
    files = [file.relative_to(PROOFS) for file in PROOFS.rglob("*.v")]
    return all(
        (build / file).is_file()
        and (build / file).read_bytes() == (PROOFS / file).read_bytes()
        and (build / file).with_suffix(".vo").is_file()
        for file in files
    )


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all files compiled: that of `make theorems`, if it is current."""
    build = ROOT / "build/proofs"
    if is_current(build):
        return build
    build = tmp_path_factory.mktemp("proofs")
    tool = ROOT / "tools/theorems.py"
    done = subprocess.run(
        [sys.executable, str(tool), "--quiet", "--build", str(build)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return build


def lines_of_proof(text: str, theorem: str) -> tuple[int, int]:
    """The lines of the proof of a theorem, without its statement."""
    start = re.search(rf"^(?:Theorem|Lemma) {theorem}\b", text, flags=re.MULTILINE)
    assert start is not None
    begin = text.index("Proof.", start.start())
    return text.count("\n", 0, begin) + 1, text.count("\n", 0, text.index("Qed.", begin)) + 1


@pytest.mark.slow  # the first of them compiles all files
@needs_coq
@pytest.mark.parametrize(("file", "theorem", "old", "new"), CASES)
def test_a_changed_statement_has_no_proof(compiled: Path, tmp_path: Path, file: str, theorem: str, old: str, new: str):
    text = (PROOFS / f"{file}.v").read_text(encoding="utf-8")
    start = re.search(rf"^(?:Theorem|Lemma) {theorem}\b", text, flags=re.MULTILINE)
    assert start is not None
    end = text.index("Proof.", start.start())
    statement = text[start.start() : end]
    assert statement.count(old) >= 1
    mutant = text[: start.start()] + statement.replace(old, new, 1) + text[end:]
    (tmp_path / "mutant.v").write_text(mutant, encoding="utf-8")
    done = subprocess.run(
        ["coqc", *OPTIONS, "-Q", str(compiled), "Orderproof", "mutant.v"],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode != 0, "the changed statement has a proof"
    found = re.search(r'File ".*mutant\.v", line (\d+)', done.stderr)
    assert found is not None, done.stderr
    first, last = lines_of_proof(mutant, theorem)
    assert first <= int(found[1]) <= last, done.stderr  # not in the statement: it is well-formed


def test_every_file_of_statements_has_a_mutation():
    files = {str(file.relative_to(PROOFS).with_suffix("")) for file in PROOFS.rglob("*.v")}
    assert files - {case[0] for case in MUTATIONS} == {"preamble"}
