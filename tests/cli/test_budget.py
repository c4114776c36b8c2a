"""`--budget` and `--resume`: what does not fit is named, and the same audit goes on where it was cut short."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from orderproof.cli import console, options
from orderproof.cli.kept import with_accepted_left
from orderproof.errors import UsageError
from orderproof.records.audit import Finding, Report

MODEL = """
import torch
from torch import nn


class Mean(nn.Module):
    def forward(self, x):
        return x + x.mean(1, keepdim=True)


def build():
    return Mean(), torch.randn(2, 5, 8)
"""
LAWS = ("--law", "permutation", "--law", "batch", "--law", "stateless")
Run = Callable[..., subprocess.CompletedProcess[str]]


def audit_in(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "orderproof", "audit", *arguments], cwd=folder, capture_output=True, text=True,
        check=False, env={**os.environ, "COLUMNS": "200"},
    )  # fmt: skip


def write_model(folder: Path) -> None:
    (folder / "model.py").write_text(MODEL, encoding="utf-8")
    os.utime(folder / "model.py", ns=(1, 1))  # not just now: it could change in the audit


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder, and the report of an audit there that was cut short."""
    folder = tmp_path_factory.mktemp("budget")
    write_model(folder)
    done = audit_in(folder, "model.py:build", *LAWS, "--budget", "0.001s", "--json", "cut.json")
    assert done.returncode == 3, done.stderr
    assert "not reached within the budget of 0.001 s" in done.stdout
    assert "to go on with 3 laws that are left: --resume, and the JSON report" in done.stdout
    return folder, (folder / "cut.json").read_text(encoding="utf-8")


@pytest.fixture
def tmp_path(audited: tuple[Path, str]) -> Path:
    """The folder, which its report names, as the audit left it."""
    folder, report = audited
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    write_model(folder)
    (folder / "cut.json").write_text(report, encoding="utf-8")
    return folder


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return partial(audit_in, tmp_path)


@pytest.fixture
def cut(tmp_path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((tmp_path / "cut.json").read_text(encoding="utf-8"))
    return found


def test_an_audit_that_was_cut_short_goes_on(run: Run, cut: dict[str, Any], tmp_path: Path) -> None:
    assert cut["left"] == ["permutation", "batch", "stateless"]
    assert str(tmp_path / "model.py") in cut["basis"]["files"]["content"]
    assert run("model.py:build", *LAWS, "--resume", "cut.json", "--json", "cut.json", "-q").returncode == 0
    whole = json.loads((tmp_path / "cut.json").read_text(encoding="utf-8"))
    assert [f["verdict"] for f in whole["findings"]] == ["proved", "proved", "held"]
    assert (whole["left"], whole["basis"]) == ([], None)


@pytest.mark.parametrize(
    ("change", "options", "problem"),
    [
        (lambda folder: None, ("--seed", "1"), "--seed was 0 and is 1"),
        (lambda folder: None, ("--as", "decoder"), '--as was not given and is "decoder"'),
        (lambda folder: (folder / "model.py").write_text(MODEL + "\n"), (), "model.py has changed"),
    ],
)
def test_a_report_of_something_else_is_refused(
    run: Run, cut: dict[str, Any], tmp_path: Path, change: Callable[[Path], object], options: tuple[str, ...],
    problem: str,
) -> None:  # fmt: skip
    del cut
    change(tmp_path)
    done = run("model.py:build", *LAWS, "--resume", "cut.json", *options)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("orderproof: cut.json: expected a report of the same audit; ")
    assert line.endswith(f"{problem}; audit again without --resume")


def test_a_report_without_a_basis_is_refused(run: Run, cut: dict[str, Any], tmp_path: Path) -> None:
    for update, problem in (({"basis": None}, "says what it was made from"), ({"left": []}, "laws that are left")):
        (tmp_path / "other.json").write_text(json.dumps({**cut, **update}), encoding="utf-8")
        done = run("model.py:build", *LAWS, "--resume", "other.json")
        assert done.returncode == 2
        assert problem in done.stderr
        assert len(done.stderr.splitlines()) == 1


@pytest.mark.slow
def test_a_configuration_states_a_budget(run: Run, tmp_path: Path) -> None:
    (tmp_path / "orderproof.toml").write_text(
        'budget = "0.001s"\n[subjects.mean]\nsubject = "model.py:build"\nlaw = ["batch"]\n', encoding="utf-8"
    )
    assert "not reached within the budget of 0.001 s" in run("mean").stdout
    assert not list(tmp_path.glob(".orderproof_cache/*.json"))  # it is not whole
    done = run("--resume", "cut.json")
    assert done.stderr == (
        "orderproof: expected the name of a subject with --resume; a report to go on with is of one model\n"
    )


def test_a_budget_is_a_time() -> None:
    times = {"90s": 90, "90": 90, "1.5min": 90, "10 min": 600, "2h": 7200}
    assert {text: options.parse_duration(text) for text in times} == times
    for text in ("", "0", "ten", "10d", "-5s", "inf"):
        with pytest.raises(UsageError, match="expected a time as 90s, 10min or 2h; got"):
            options.parse_duration(text)


def test_the_rest_is_estimated_after_some_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(console.time, "monotonic", lambda: now)
    estimate = console.RestEstimate()
    texts = []
    for now, done in ((0.0, 0), (1.0, 10), (10.0, 50), (100.0, 100), (300.0, 300), (399.0, 399)):  # noqa: B007
        texts.append(estimate.text(done, 400))
    assert texts == ["", "", "about 70 s left", "about 5 min left", "about 2 min left", ""]


def test_what_a_baseline_accepts_is_decided_again(cut: dict[str, Any]) -> None:
    """An entry may expire: only the finding itself is taken over, not that it was accepted."""
    found = Report.model_validate(cut)
    accepted = found.model_copy(update={"findings": (_met(found.findings[0]), *found.findings[1:]), "left": ("batch",)})
    assert with_accepted_left(accepted, found).left == ("batch", "permutation")
    without = accepted.model_copy(update={"basis": None})
    assert with_accepted_left(without, found).left == ("batch",)


def _met(finding: Finding) -> Finding:
    return finding.model_copy(update={"expectation_met": True, "expected": "any"})
