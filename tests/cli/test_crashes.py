"""A model that ends the process of a command in a later call: one line, the report so far, and the documented code."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from orderproof.records.audit import Report
from tests.interruptible import start_interruptible

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a command forks on Linux only")
CRASHING = """
import os, subprocess, time, torch
from torch import nn
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack


class Crashing(nn.Module):
    def __init__(self, when, act):
        super().__init__()
        self.linear, self.when, self.act = nn.Linear(8, 8), when, act

    def forward(self, x):
        with open("calls", "a") as file:
            file.write("x")
        if self.when(x):
            self.act()
        return self.linear(x) + x.cumsum(1)


def call(number):
    return lambda _: os.path.getsize("calls") >= number


def leave_process():
    print(subprocess.Popen(["sleep", "300"]).pid, file=open("started", "w"))
    os.abort()


ACTS = {"abort": os.abort, "fork": os.fork, "exit": lambda: os._exit(0), "leave": leave_process}
ACTS["wait"] = lambda: time.sleep(300)
CASES = {
    "third": call(3),
    "fake": lambda _: any(type(mode).__name__ == "Recorder" for mode in _get_current_dispatch_mode_stack()),
    "length": lambda x: x.shape[1] != 7,
    "late": lambda _: os.path.getsize("calls") > int(os.environ["CALLS"]),
}


def __getattr__(name):
    case, _, act = name.partition("_")
    if case not in CASES:
        raise AttributeError(name)
    return lambda: (Crashing(CASES[case], ACTS[act]), torch.zeros(2, 7, 8))
"""


@pytest.fixture
def command(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """The command in a folder with the module."""
    (tmp_path / "bad.py").write_text(CRASHING, encoding="utf-8")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "orderproof", *arguments, "--quiet", "--json", "report.json"],
            cwd=tmp_path, env=_environment(), capture_output=True, text=True, check=False,
        )  # fmt: skip

    return run


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")}


@pytest.mark.parametrize(
    ("subject", "how"),
    [
        ("third_exit", "ended with exit code 0"),
        ("length_abort", "was ended by SIGABRT"),
    ],
)
def test_a_crash_before_the_model_is_described_is_a_subject_that_cannot_be_called(
    subject: str, how: str, command: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    done = command("audit", f"bad.py:{subject}", "--law", "causal")
    assert done.returncode == 2
    assert done.stderr == (
        f'orderproof: bad.py:{subject}: it cannot be audited: the process {how} during "loading bad.py:{subject}"\n'
    )
    assert not (tmp_path / "report.json").exists()


@pytest.mark.parametrize(
    ("verb", "act", "how"),
    [("audit", "abort", "was ended by SIGABRT"), ("prove", "exit", "ended with exit code 0")],
)
def test_a_crash_of_a_recording_leaves_all_laws_undecided(
    verb: str, act: str, how: str, command: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    done = command(verb, f"bad.py:fake_{act}", "--law", "causal", "--certificate", "certificate.json")
    stage = "recording the graph" if verb == "audit" else "proving causal"
    reason = f'the process {how} during "{stage}"'
    assert done.returncode == 3
    assert done.stderr == (
        f"orderproof: {reason}; the laws that are left are undecided; no certificates were written\n"
    )
    report = Report.from_json((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert [(f.law, f.verdict, f.outcome, f.reason) for f in report.findings] == [
        ("causal", "undecided", "undecided", reason)
    ]
    assert reason in report.notes


@pytest.mark.slow
def test_a_later_crash_keeps_what_was_decided_and_leaves_nothing_behind(
    command: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    laws = ("causal", "permutation", "stateless")
    monkeypatch.setenv("CALLS", "1000000")
    assert command("audit", "bad.py:late_leave", "--law", laws[0]).returncode == 0
    monkeypatch.setenv("CALLS", str((tmp_path / "calls").stat().st_size))
    (tmp_path / "calls").unlink()
    done = command("audit", "bad.py:late_leave", *(word for law in laws for word in ("--law", law)))
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1
    findings = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["findings"]
    decided = [f["law"] for f in findings if f["verdict"] != "undecided"]
    assert tuple(f["law"] for f in findings) == laws
    assert decided == ["causal"]
    assert {f["reason"] for f in findings[1:]} == {done.stderr.removeprefix("orderproof: ").partition(";")[0]}
    started = int((tmp_path / "started").read_text())
    _wait_for(lambda: _state(started) in ("", "Z"))


def test_a_copy_of_the_command_that_a_later_call_makes_ends(
    command: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    done = command("prove", "bad.py:fake_fork", "--law", "causal", "--sarif", "-")
    assert done.stderr == ""
    assert json.loads(done.stdout)["runs"]  # written once
    (finding,) = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["findings"]
    assert done.returncode == (0 if finding["verdict"] == "proved" else 3)
    assert not _processes_in(tmp_path)


def test_a_command_is_suspended_with_its_child_and_interrupted_afterwards(
    command: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    del command  # which has written the module
    process = start_interruptible(
        [sys.executable, "-m", "orderproof", "audit", "bad.py:late_wait", "--law", "causal", "--quiet"],
        cwd=tmp_path, env={**_environment(), "CALLS": "12"}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    _wait_for(lambda: (tmp_path / "calls").exists() and (tmp_path / "calls").stat().st_size > 12)
    (child,) = _children(process.pid)
    process.send_signal(signal.SIGTSTP)
    _wait_for(lambda: _state(process.pid) == _state(child) == "T")
    process.send_signal(signal.SIGCONT)
    _wait_for(lambda: "T" not in (_state(process.pid), _state(child)))
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "orderproof: interrupted\n")


def _wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


def _processes_in(folder: Path) -> list[str]:
    """The ids of processes with this working folder."""
    found = []
    for link in Path("/proc").glob("[0-9]*/cwd"):
        with contextlib.suppress(OSError):
            found += [link.parent.name] * (link.readlink() == folder)
    return found


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _state(pid: int) -> str:
    """The letter of the state of a process; empty if there is none."""
    file = Path(f"/proc/{pid}/stat")
    return file.read_text().rpartition(")")[2].split()[0] if file.exists() else ""
