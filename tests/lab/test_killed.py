"""The whole command, killed and interrupted: what is finished stays, what is not goes on, and no process is left."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import uuid
from contextlib import closing
from pathlib import Path

import pytest

from orderproof.cli.application import main
from orderproof.lab import comparing
from orderproof.lab.engines import choosing
from orderproof.lab.store import Store
from orderproof.lab.study import changed
from orderproof.lab.training import train
from tests.lab.running import PATIENCE, TINY, Here, command, ended, marked, no_file_larger_than, tiny, told, until

CHANGES = ["encoding=rotary", "seeds=3", "steps=300"]


class Command:
    """`orderproof compare` in a process of its own, whose children can be found by their environment."""

    def __init__(self, folder: Path, *more: str) -> None:
        study = folder / "tiny.yaml"
        study.write_text(TINY)
        self.mark = f"mark-{uuid.uuid4()}"
        self.process = subprocess.Popen(
            command(study, folder / "store", *CHANGES, *more), env={**os.environ, "ORDERPROOF_TEST": self.mark},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip

    def ended(self) -> tuple[int, str]:
        """Its exit code and what it wrote, once neither it nor a child of it is left."""
        _, wrote = self.process.communicate(timeout=PATIENCE)
        until(lambda: not marked(self.mark))
        return self.process.returncode, wrote

    def until(self, happened) -> None:  # type: ignore[no-untyped-def]
        until(lambda: happened() or self.process.poll() is not None)
        assert self.process.poll() is None, self.process.communicate()


def rows(folder: Path) -> dict[str, tuple[str, ...]]:
    """Every row of the store, to the letter."""
    file = folder / "store" / "results.sqlite"
    if not file.exists():
        return {}
    with closing(sqlite3.connect(file)) as held:
        try:
            return {row[0]: row for row in held.execute("SELECT * FROM runs")}
        except sqlite3.OperationalError:  # it is just being made
            return {}


def test_a_killed_and_an_interrupted_study_come_to_the_same_results(tmp_path: Path) -> None:
    checkpoints = tmp_path / "store" / "checkpoints"
    runs = changed(tiny(), CHANGES).runs()

    first = Command(tmp_path)
    first.until(lambda: list(checkpoints.glob("*.safetensors")))
    workers = [pid for pid in marked(first.mark) if pid != first.process.pid]
    first.process.kill()
    assert first.ended()[0] == -signal.SIGKILL
    assert len(workers) >= 2
    until(lambda: all(ended(worker) for worker in workers))  # one that is just ending has no environment any more

    second = Command(tmp_path)
    second.until(lambda: rows(tmp_path))
    os.killpg(second.process.pid, signal.SIGINT)  # as a terminal does: to all of them
    code, wrote = second.ended()
    kept = rows(tmp_path)
    assert code == 130
    assert wrote == (
        f"orderproof: interrupted; {len(kept)} of {len(runs)} runs are finished and kept; the same command goes on\n"
    )
    assert 1 <= len(kept) < len(runs)

    code, wrote = Command(tmp_path, "--json", str(tmp_path / "study.json")).ended()
    assert (code, wrote) == (0, "")
    assert kept.items() <= rows(tmp_path).items(), "a finished run was made again"
    found = {name: told(result) for name, (_, result) in Store(tmp_path / "store").results().items()}
    assert found == {run.id: told(train(run)) for run in runs}
    assert list(checkpoints.iterdir()) == []
    cells = json.loads((tmp_path / "study.json").read_text())["cells"]
    assert [(cell["encoding"], cell["seeds"]) for cell in cells] == [("rotary", 3)]


@pytest.mark.parametrize("arguments", [["tiny.yaml", "steps=x"], ["tiny.yaml", "--engine", "cloud"], ["nothing"]])
def test_wrong_usage_is_one_line_and_makes_no_store(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, wrote = called(["compare", *arguments], tmp_path, monkeypatch, capsys)
    assert code == 2
    assert wrote.startswith("orderproof: ")
    assert wrote.count("\n") == 1
    assert not (tmp_path / "orderproof-results").exists()


def test_a_store_that_is_none_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "orderproof-results").mkdir()
    (tmp_path / "orderproof-results" / "results.sqlite").write_text("nothing of ours, and long enough to be read" * 50)
    code, wrote = called(["compare", "tiny.yaml", "--quiet"], tmp_path, monkeypatch, capsys)
    assert code == 2
    assert "file is not a database; move the file away" in wrote
    assert wrote.count("\n") == 1


def test_a_full_disk_is_one_line_and_the_study_goes_on_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:

    monkeypatch.setattr(comparing, "laws_of", lambda runs, store, tell: {run.cell: () for run in runs})
    monkeypatch.setattr(choosing, "choose", lambda name, workers: Here())
    arguments = ["compare", "tiny.yaml", "seeds=1", "encoding=none", "steps=20", "width=32", "--quiet"]
    arguments += ["--json", "study.json"]
    with no_file_larger_than(40_000):  # enough for the store, which keeps what it shares in a file of 32 KiB
        code, wrote = called(arguments, tmp_path, monkeypatch, capsys)
    assert code == 2
    assert wrote.startswith("orderproof: cannot keep a checkpoint in ")
    assert "File too large; make room" in wrote
    assert wrote.count("\n") == 1
    code, wrote = called(arguments, tmp_path, monkeypatch, capsys)
    assert (code, wrote) == (0, "")
    assert json.loads((tmp_path / "study.json").read_text())["cells"][0]["seeds"] == 1


def test_a_spoilt_checkpoint_costs_its_run_alone_until_it_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:

    monkeypatch.setattr(comparing, "laws_of", lambda runs, store, tell: {run.cell: () for run in runs})
    monkeypatch.setattr(choosing, "choose", lambda name, workers: Here())
    run = changed(tiny(), ["encoding=none", "steps=20"]).runs()[0]
    spoilt = tmp_path / "orderproof-results" / "checkpoints" / f"{run.id}.safetensors"
    spoilt.parent.mkdir(parents=True)
    spoilt.write_bytes(b"half")
    arguments = ["compare", "tiny.yaml", "encoding=none", "steps=20", "--quiet"]
    code, wrote = called(arguments, tmp_path, monkeypatch, capsys)
    assert code == 2
    assert wrote.startswith(f"orderproof: run {run.id} failed: {spoilt} cannot be read as a checkpoint")
    assert wrote.count("\n") == 1
    store = Store(tmp_path / "orderproof-results")
    assert len(store.results()) == 1
    spoilt.unlink()
    assert called(arguments, tmp_path, monkeypatch, capsys) == (0, "")
    assert len(store.results()) == 2


def called(
    arguments: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[int, str]:
    """The command line in this process: its exit code, and what it wrote to standard error."""
    (folder / "tiny.yaml").write_text(TINY)
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["orderproof", *arguments])
    with pytest.raises(SystemExit) as left:
        main()
    return int(left.value.code or 0), capsys.readouterr().err
