"""`orderproof training` runs in a process that is watched, with a limit of time for each law."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from orderproof.records.audit import Report
from tests.cli.conftest import Run, run

__all__ = ["run"]
STEPS = """
import os, signal, time
import torch
from torch import nn
from torch.nn import functional as F


class Bigram(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(50, 50)

    def forward(self, tokens):
        return self.table(tokens)


def step(act, first=1, other_tokens=False):
    calls = []

    def loss(model, batch):
        calls.append(1)
        if len(calls) >= first and (not other_tokens or not torch.equal(batch["x"], tokens)):
            act()
        return F.cross_entropy(model(batch["x"])[:, :-1].flatten(0, 1), batch["y"][:, 1:].flatten())

    tokens = torch.randint(50, (2, 9))
    return Bigram(), {"x": tokens, "y": tokens}, loss


def ends():
    return step(lambda: os.kill(os.getpid(), signal.SIGSEGV), 5)


def ends_later():
    return step(lambda: os.kill(os.getpid(), signal.SIGSEGV), other_tokens=True)


def waits():
    return step(lambda: time.sleep(9), 5)


def waits_at_once():
    return step(lambda: time.sleep(9))
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "steps.py"
    path.write_text(STEPS, encoding="utf-8")
    return path


@pytest.mark.parametrize(("name", "decided"), [("ends", []), ("ends_later", ["OP702"])])
def test_a_step_that_ends_the_process_keeps_what_was_decided(file: Path, name: str, decided: list[str]) -> None:
    laws = ("OP702", "OP701", "OP703")
    done = subprocess.run(
        [sys.executable, "-m", "orderproof", "training", f"steps.py:{name}", "-q", "--json", "report.json"]
        + [word for law in laws for word in ("--law", law)],
        cwd=file.parent, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")},
    )  # fmt: skip
    assert done.returncode == 3
    assert "the process was ended by SIGSEGV during" in done.stderr
    assert done.stderr.count("\n") == 1
    report = Report.from_json((file.parent / "report.json").read_text(encoding="utf-8"))
    assert tuple(f.code for f in report.findings) == laws
    assert [f.code for f in report.findings if f.verdict != "undecided"] == decided


def test_a_law_that_takes_too_long_is_undecided_and_so_is_no_other(file: Path, run: Run) -> None:
    done = run("training", f"{file}:waits", "--law", "OP701", "--timeout", "0.2", "--json", "-", "-q")
    (finding,) = json.loads(done.out)["findings"]
    assert (done.code, finding["verdict"], finding["reason"]) == (3, "undecided", "not done after 0.2 s")


def test_a_loss_that_is_not_computed_in_time_is_one_line(file: Path, run: Run) -> None:
    done = run("training", f"{file}:waits_at_once", "--timeout", "0.2")
    assert (done.code, done.out) == (2, "")
    assert "expected a loss that is computed within 0.2 s" in done.err
