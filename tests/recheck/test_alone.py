"""`python -m orderproof_recheck`, with the standard library alone, on certificates that an earlier version stored."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import orderproof_recheck

SOURCES = Path(orderproof_recheck.__file__).parents[1]
STORED = Path(__file__).parent / "stored"  # written by orderproof 0.1.0 before the rechecker was a package of its own
THEOREMS = ("causal", "permutation", "batch", "entry_map")


def run(path: Path, *options: str) -> tuple[int, str, str]:
    """The exit code and both outputs, where no installed package can be imported."""
    done = subprocess.run(
        [sys.executable, "-S", "-m", "orderproof_recheck", *options, str(path)],
        env={**os.environ, "PYTHONPATH": str(SOURCES)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def stored(name: str) -> dict[str, Any]:
    made: dict[str, Any] = json.loads((STORED / f"{name}.json").read_text(encoding="utf-8"))
    return made


@pytest.mark.parametrize("name", THEOREMS)
def test_a_stored_theorem_is_accepted(name: str) -> None:
    code, out, err = run(STORED / f"{name}.json")
    assert (code, err) == (0, "")
    assert out.startswith(f"accepted: theorem about {stored(name)['output']} in {stored(name)['subject']}, ")
    assert stored(name)["claim"]["sentence"] in out


def test_an_altered_certificate_is_refused_in_one_printable_line(tmp_path: Path) -> None:
    altered, path = stored("causal"), tmp_path / "certificates.json"
    altered["subject"] = "\x1b[2Kother"
    path.write_text(json.dumps([stored("causal"), altered]), encoding="utf-8")
    code, out, err = run(path)
    assert (code, err) == (1, "")
    assert "refused: certificate 2: " in out
    assert "\x1b" not in out


def test_results_as_json_and_step_by_step() -> None:
    code, out, _ = run(STORED / "permutation.json", "--json")
    (result,) = json.loads(out)
    assert (code, result["accepted"], result["law"]) == (0, True, "permutation")
    assert result["theorem"] == stored("permutation")["claim"]["sentence"]
    code, out, _ = run(STORED / "permutation.json", "--derivation")
    assert code == 0
    assert "given: token i of run 1 is token p(i) of run 2, for any permutation p of the tokens" in out


@pytest.mark.parametrize("name", THEOREMS)
def test_every_stored_proof_is_printed_step_by_step(name: str) -> None:
    code, out, err = run(STORED / f"{name}.json", "--derivation")
    assert (code, err) == (0, "")
    assert len(out.splitlines()) > 50


def test_a_certificate_of_a_proof_at_one_length_is_refused_in_one_line() -> None:
    code, out, err = run(STORED / "causal_at_one_length.json")
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert "certificate 1 (causal of decoder) is of a proof at one length, which recheck no longer checks" in err
    assert "orderproof prove SUBJECT --law causal --certificate PATH writes that of the theorem" in err


def test_a_file_that_is_no_certificate_is_refused(tmp_path: Path) -> None:
    code, out, err = run(tmp_path / "missing.json")
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert "cannot be read" in err


def test_the_help_has_an_example_and_the_exit_codes() -> None:
    done = subprocess.run(
        [sys.executable, "-S", "-m", "orderproof_recheck", "--help"], env={**os.environ, "PYTHONPATH": str(SOURCES)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "orderproof-recheck causal.json" in done.stdout
    assert "exit codes: 0 every certificate is accepted; 1 a certificate is refused" in done.stdout
