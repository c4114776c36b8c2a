"""`python -m orderproof.recheck`, with the standard library alone and with torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import orderproof
from tests.recheck.certificates import example
from tests.recheck.theorems.permutations.examples import example as theorem_example

SOURCES = Path(orderproof.__file__).parents[1]


def run(path: Path, *, alone: bool) -> tuple[int, str]:
    """The exit code and output; `alone`: no installed package can be imported."""
    command = [sys.executable, *(["-S"] if alone else []), "-m", "orderproof.recheck", str(path)]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(SOURCES)}, capture_output=True, text=True, check=False
    )
    assert not done.stderr
    return done.returncode, done.stdout


def written(folder: Path, *certificates: dict[str, Any]) -> Path:
    path = folder / "certificates.json"
    path.write_text(json.dumps(list(certificates)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def theorem() -> dict[str, Any]:
    made = theorem_example("table of one number")
    assert made["kind"] == "theorem"
    return dict(made)


def test_a_theorem_is_checked_with_the_standard_library_alone(theorem: dict[str, Any], tmp_path: Path) -> None:
    code, out = run(written(tmp_path, theorem), alone=True)
    assert code == 0
    assert out.startswith(f"accepted: theorem about {theorem['output']} in {theorem['subject']}, ")
    altered = json.loads(json.dumps(theorem))
    altered["subject"] = "\x1b[2Kother"
    code, out = run(written(tmp_path, theorem, altered), alone=True)
    assert code == 1
    assert "refused: certificate 2: " in out
    assert "\x1b" not in out


def test_a_proof_at_one_length_is_left_unchecked_without_torch(theorem: dict[str, Any], tmp_path: Path) -> None:
    _, one_length = example("causal")
    path = written(tmp_path, one_length, theorem)
    code, out = run(path, alone=True)
    assert code == 3
    assert "not checked: certificate 1 is of a proof at one length, which needs " in out
    assert "accepted: theorem" in out
    code, out = run(path, alone=False)
    assert code == 0
    assert "accepted: causal of " in out


def test_a_file_that_is_no_certificate_is_refused(tmp_path: Path) -> None:
    code, out = run(tmp_path / "missing.json", alone=True)
    assert (code, len(out.splitlines())) == (2, 1)
    assert "cannot be read" in out
