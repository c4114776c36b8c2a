"""A killed or interrupted atlas run continues without losing or repeating a row."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from tests.atlas.processes import ended, rows_in
from tests.cli.conftest import STAGE
from tests.interruptible import start_interruptible

SCRIPT = """
import os, sys, time
from orderproof.atlas import row, runner, worker
from orderproof.cli import atlas, main

def make(name, attention, law_seconds):
    with open("begun", "a") as stream:
        stream.write(f"{name} {os.getpid()}\\n")
    time.sleep(0.25)
    return row.empty_row(name, attention)

worker.warm_up = lambda: None
atlas.check_spec = lambda spec: None  # the names are made up
runner.select_architectures = lambda names: tuple(names)
row.make_row = make
names = [f"m{k:02}" for k in range(12)]
sys.argv = ["orderproof", "atlas", *names, "--store", "store", "--workers", "3", "--markdown", "page"]
main()
"""


def started(folder: Path) -> subprocess.Popen[str]:
    return start_interruptible(
        [sys.executable, "-c", SCRIPT], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip


def wait_for_rows(path: Path, count: int) -> None:
    for _ in range(1200):
        if path.exists() and path.read_bytes().count(b"\n") >= count:
            return
        time.sleep(0.05)
    raise AssertionError(f"{path} has no {count} rows")


def begun(folder: Path) -> list[tuple[str, int]]:
    return [(a, int(b)) for a, b in (line.split() for line in (folder / "begun").read_text().splitlines())]


def test_killed_run_resumes_without_losing_or_repeating_rows(tmp_path: Path) -> None:
    store = tmp_path / "store"
    process = started(tmp_path)
    wait_for_rows(store, 4)
    process.kill()
    process.communicate()
    assert all(ended(pid) for _, pid in begun(tmp_path))
    finished = rows_in(store)
    done_before = Counter(name for name, _ in begun(tmp_path))
    with store.open("ab") as stream:  # an incomplete last row
        stream.write(b'{"atlas":1,"name":"m')
    process = started(tmp_path)
    _, err = process.communicate(timeout=300)
    assert (process.returncode, STAGE.sub("", err)) == (0, "")
    assert sorted(rows_in(store)) == [f"m{k:02}" for k in range(12)]
    assert rows_in(store)[: len(finished)] == finished
    done = Counter(name for name, _ in begun(tmp_path))
    assert all(done[name] == done_before[name] for name in finished), "a finished row was repeated"
    assert sum(done.values()) <= 12 + 3  # only the rows that were in progress when it was killed
    assert "All 12 names of transformers" in (tmp_path / "page").read_text()


def test_interrupted_run_stops_its_workers_and_writes_the_finished_rows(tmp_path: Path) -> None:
    process = started(tmp_path)
    wait_for_rows(tmp_path / "store", 2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert all(ended(pid) for _, pid in begun(tmp_path))
    finished = len(rows_in(tmp_path / "store"))
    assert 2 <= finished < 12
    assert f"{finished} of 12 architectures finished" in out
    assert f"{finished} of 12 names of transformers" in (tmp_path / "page").read_text()
