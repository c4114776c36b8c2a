"""Progress where standard error is no terminal: one plain line for each stage."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from orderproof import audit
from orderproof.cli import console
from orderproof.cli.atlas import atlas_progress

CAUSAL = f"{Path(__file__).parents[1] / 'auditing' / 'examples.py'}:Causal"


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().err.splitlines()


def test_a_pipe_gets_plain_lines_even_with_forced_colour() -> None:
    arguments = ["audit", CAUSAL, "--law", "causal", "--law", "stateless", "--json", "-"]
    environment = {**os.environ, "FORCE_COLOR": "1", "TERM": "xterm-256color", "COLUMNS": "200"}
    done = subprocess.run(
        [sys.executable, "-m", "orderproof", *arguments], env=environment, capture_output=True, check=False
    )
    assert done.returncode == 0
    assert json.loads(done.stdout)["findings"][0]["law"] == "causal"
    stages = [line for line in done.stderr.decode().split("\n") if line.endswith(" ...")]
    assert stages == [
        f"orderproof: {text} ..."
        for text in (
            f"loading {CAUSAL}",
            "recording the graph",
            "OP201 causal",
            "OP406 stateless",
        )
    ]
    assert "\r" not in done.stderr.decode()


def test_laws_that_do_not_apply_are_not_named() -> None:
    shown: list[tuple[str, bool]] = []
    report = audit(CAUSAL, progress=lambda text, done, total: shown.append((text, done < total)))
    applied = {f"{f.code} {f.law}" for f in report.findings if f.verdict != "not_applicable"}
    assert {text.partition(",")[0] for text, _ in shown if text.startswith("OP")} == applied
    assert any(f.verdict == "not_applicable" for f in report.findings)
    assert all(before_the_end for _, before_the_end in shown)


@pytest.mark.parametrize("columns", [80, 120])
def test_a_narrow_terminal_shows_law_counter_and_estimate(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", terminal)
    for name, value in {"COLUMNS": str(columns), "TERM": "xterm"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(console.time, "monotonic", lambda: now)
    with console.progress(quiet=False) as update:
        update("loading a/" + 200 * "b", 0, 40)
        now += 100.0
        update("OP408 right_padded_decoding, 12 of 15 comparisons", 20, 40)
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", terminal.getvalue())
    last = shown.replace("\r", "\n").strip().splitlines()[-1]
    assert "OP408 right_padded_decoding, 12 of 15 comparisons" in last
    assert last.rstrip().endswith("about 2 min left")
    assert max(len(line) for line in shown.replace("\r", "\n").splitlines()) <= columns


def test_counters_of_one_stage_are_written_seldom(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(console.time, "monotonic", lambda: now)
    with console.progress(quiet=False) as update:
        for k in range(30):
            update(f"sentence {k} of 30", k, 31)
            now += 1.0
        update("without positions", 30, 31)
        update("without positions", 30, 31)
    numbers = [f"orderproof: sentence {k} of 30 ..." for k in (0, 10, 20)]
    assert lines(capsys) == [*numbers, "orderproof: without positions ..."]


def test_a_long_stage_is_mentioned_again(capsys: pytest.CaptureFixture[str]) -> None:
    stages = console.StageLines()
    with stages.reminding(interval=0.05):
        stages.write("loading")
        time.sleep(0.3)
    first, *others = lines(capsys)
    assert first == "orderproof: loading ..."
    assert len(others) > 1
    assert set(others) == {"orderproof: loading, for 0 s now ..."}


def test_names_cannot_control_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with console.progress(quiet=False) as update:
        update("loading \x1b[2K\n", 0, 1)
    assert lines(capsys) == [r"orderproof: loading \x1b[2K\n ..."]


def test_a_terminal_without_colour_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert console.has_live_display()
    monkeypatch.setenv("NO_COLOR", "1")
    assert not console.has_live_display()


def test_quiet_writes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with console.progress(quiet=True) as update, atlas_progress(quiet=True) as show:
        update("loading", 0, 1)
        show(["bert"], 0, 2)
    assert lines(capsys) == []


def test_an_atlas_names_the_architectures_in_progress(capsys: pytest.CaptureFixture[str]) -> None:
    with atlas_progress(quiet=False) as show:
        show((), 0, 1)
        for running, done in ((["bert", "t5"], 0), (["bert", "t5"], 0), (["t5", "vit"], 1), ([], 3)):
            show(running, done, 3)
    assert lines(capsys) == [
        "orderproof: loading ...",
        "orderproof: auditing bert, t5, 0 of 3 done ...",
        "orderproof: auditing t5, vit, 1 of 3 done ...",
    ]
