"""`tools/theorems.py` rejects what is not proved, and says how to install Coq."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.code_blocks import ROOT

TOOL = ROOT / "tools/theorems.py"
needs_coq = pytest.mark.skipif(shutil.which("coqc") is None, reason="Coq is not installed: see make theorems")
REJECTED = {
    "an axiom": ("Axiom one : 1 = 2.\nTheorem two : 2 = 1.\nProof. now rewrite <- one. Qed.\n", "one is an axiom"),
    "a proof that is left out": ("Theorem one : 1 = 2.\nProof. Admitted.\n", "a.one: Axioms: a.one : 1 = 2"),
    "a proof that fails": ("Theorem one : 1 = 2.\nProof. reflexivity. Qed.\n", "Unable to unify"),
    "a missing file": ("From Orderproof Require Import nothing.\n", "has not been found"),
    "a warning": ("Theorem one : True.\nProof. exact I. Qed.\nHint Resolve one : core.\n", "Warning"),
}  # fmt: skip


def run(tmp_path: Path, *, path: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = os.environ if path is None else {**os.environ, "PATH": path}
    command = [sys.executable, str(TOOL), "--source", str(tmp_path / "proofs"), "--build", str(tmp_path / "build")]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def write(tmp_path: Path, **files: str) -> None:
    (tmp_path / "proofs").mkdir()
    for name, text in files.items():
        (tmp_path / f"proofs/{name}.v").write_text(text, encoding="utf-8")


@needs_coq
@pytest.mark.parametrize("case", REJECTED)
def test_what_is_not_proved_is_rejected(tmp_path: Path, case: str):
    text, message = REJECTED[case]
    write(tmp_path, a=text)
    done = run(tmp_path)
    assert done.returncode == 1
    assert message in done.stdout + done.stderr


@needs_coq
def test_every_theorem_is_printed_with_its_axioms(tmp_path: Path):
    write(
        tmp_path,
        b="From Orderproof Require Import a.\nTheorem two : 2 = 2.\nProof. exact (same 2). Qed.\n",
        a="Lemma same (n : nat) : n = n.\nProof. reflexivity. Qed.\n",
    )
    done = run(tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:2] == ["a.same: no axioms", "b.two: no axioms"]
    assert done.stdout.splitlines()[2].startswith("2 theorems in 2 files, ")


def test_without_coq_it_says_how_to_install_it(tmp_path: Path):
    done = run(tmp_path, path=str(tmp_path))
    assert done.returncode == 2
    assert "apt-get install coq libcoq-mathcomp-algebra" in done.stderr
    assert "Nothing else in orderproof needs Coq." in done.stderr
