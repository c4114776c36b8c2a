"""`python -m orderproof.recheck`, with the standard library alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import orderproof
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


def test_a_certificate_of_a_proof_at_one_length_is_refused_in_one_line(tmp_path: Path) -> None:
    """Which versions up to 0.9 wrote, and which no longer exist."""
    one_length = {"certificate": 4, "law": "causal", "subject": "model.py:decoder", "steps": []}
    code, out = run(written(tmp_path, one_length), alone=True)
    assert (code, len(out.splitlines())) == (2, 1)
    assert "certificate 1 is of a proof at one length, which recheck no longer checks" in out
    assert "orderproof prove model.py:decoder --law causal --certificate PATH" in out


def test_a_file_that_is_no_certificate_is_refused(tmp_path: Path) -> None:
    code, out = run(tmp_path / "missing.json", alone=True)
    assert (code, len(out.splitlines())) == (2, 1)
    assert "cannot be read" in out
