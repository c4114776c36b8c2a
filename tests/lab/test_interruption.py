"""The command, killed and interrupted: finished runs are kept, others resume, and no process is left."""

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
from orderproof.lab import study_runner
from orderproof.lab.engines import factory
from orderproof.lab.store import ResultStore
from orderproof.lab.study import with_overrides
from orderproof.lab.trainer import train
from tests.cli.conftest import STAGE
from tests.interruptible import start_interruptible
from tests.lab.small_study import (
    TIMEOUT,
    TINY,
    InProcessEngine,
    compare_command,
    has_ended,
    no_file_larger_than,
    processes_with,
    reproducible_part,
    tiny_study,
    wait_until,
)

CHANGES = ["encoding=rotary", "seeds=3", "steps=300"]


class Command:
    """`orderproof compare` in a separate process, whose children are identified by their environment."""

    def __init__(self, folder: Path, *more: str) -> None:
        study = folder / "tiny.yaml"
        study.write_text(TINY)
        self.mark = f"mark-{uuid.uuid4()}"
        self.process = start_interruptible(
            compare_command(study, folder / "store", *CHANGES, *more), env={**os.environ, "ORDERPROOF_TEST": self.mark},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip

    def finish(self) -> tuple[int, str]:
        """The exit code and the standard error, once the process and its children have ended."""
        _, stderr = self.process.communicate(timeout=TIMEOUT)
        wait_until(lambda: not processes_with(self.mark))
        return self.process.returncode, stderr

    def wait_until(self, condition) -> None:  # type: ignore[no-untyped-def]
        wait_until(lambda: condition() or self.process.poll() is not None)
        assert self.process.poll() is None, self.process.communicate()


def rows(folder: Path) -> dict[str, tuple[str, ...]]:
    """Every row of the store."""
    file = folder / "store" / "results.sqlite"
    if not file.exists():
        return {}
    with closing(sqlite3.connect(file)) as held:
        try:
            return {row[0]: row for row in held.execute("SELECT * FROM runs")}
        except sqlite3.OperationalError:  # it is being created
            return {}


@pytest.mark.slow
def test_a_killed_and_an_interrupted_study_have_the_same_results(tmp_path: Path) -> None:
    checkpoints = tmp_path / "store" / "checkpoints"
    runs = with_overrides(tiny_study(), CHANGES).runs()

    first = Command(tmp_path)
    first.wait_until(lambda: list(checkpoints.glob("*.safetensors")))
    workers = [pid for pid in processes_with(first.mark) if pid != first.process.pid]
    first.process.kill()
    assert first.finish()[0] == -signal.SIGKILL
    assert len(workers) >= 2
    wait_until(lambda: all(has_ended(worker) for worker in workers))  # an ending process has no environment

    second = Command(tmp_path)
    second.wait_until(lambda: rows(tmp_path))
    os.killpg(second.process.pid, signal.SIGINT)  # to the whole group, like a terminal
    code, stderr = second.finish()
    kept = rows(tmp_path)
    assert code == 130
    assert stderr == (
        f"orderproof: interrupted; {len(kept)} of {len(runs)} runs are finished and stored; "
        "repeat the command to resume\n"
    )
    assert 1 <= len(kept) < len(runs)

    code, stderr = Command(tmp_path, "--json", str(tmp_path / "study.json")).finish()
    assert (code, stderr) == (0, "")
    assert kept.items() <= rows(tmp_path).items(), "a finished run was repeated"
    found = {name: reproducible_part(result) for name, (_, result) in ResultStore(tmp_path / "store").results().items()}
    assert found == {run.id: reproducible_part(train(run)) for run in runs}
    assert list(checkpoints.iterdir()) == []
    cells = json.loads((tmp_path / "study.json").read_text())["cells"]
    assert [(cell["encoding"], cell["seeds"]) for cell in cells] == [("rotary", 3)]


@pytest.mark.parametrize("arguments", [["tiny.yaml", "steps=x"], ["tiny.yaml", "--engine", "cloud"], ["nothing"]])
def test_invalid_usage_is_one_line_and_creates_no_store(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, stderr = call_main(["compare", *arguments], tmp_path, monkeypatch, capsys)
    assert code == 2
    assert stderr.startswith("orderproof: ")
    assert stderr.count("\n") == 1
    assert not (tmp_path / "orderproof-results").exists()


def test_a_file_that_is_no_store_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "orderproof-results").mkdir()
    (tmp_path / "orderproof-results" / "results.sqlite").write_text("not a database, and long enough to be read" * 50)
    code, stderr = call_main(["compare", "tiny.yaml", "--quiet"], tmp_path, monkeypatch, capsys)
    assert code == 2
    assert "file is not a database; move the file away" in stderr
    assert stderr.count("\n") == 1


def test_a_full_disk_is_one_line_and_the_study_resumes_when_there_is_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:

    monkeypatch.setattr(study_runner, "prove_cells", lambda runs, store, progress: {run.cell_id: () for run in runs})
    monkeypatch.setattr(factory, "make_engine", lambda name, workers: InProcessEngine())
    arguments = ["compare", "tiny.yaml", "seeds=1", "encoding=none", "steps=20", "width=32", "--quiet"]
    arguments += ["--json", "study.json"]
    with no_file_larger_than(40_000):  # enough for the store, whose shared memory file has 32 KiB
        code, stderr = call_main(arguments, tmp_path, monkeypatch, capsys)
    assert code == 2
    assert stderr.startswith("orderproof: cannot write a checkpoint in ")
    assert "File too large; free some space" in stderr
    assert stderr.count("\n") == 1
    code, stderr = call_main(arguments, tmp_path, monkeypatch, capsys)
    assert (code, stderr) == (0, "")
    assert json.loads((tmp_path / "study.json").read_text())["cells"][0]["seeds"] == 1


def test_a_corrupt_checkpoint_fails_only_its_run_until_it_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:

    monkeypatch.setattr(study_runner, "prove_cells", lambda runs, store, progress: {run.cell_id: () for run in runs})
    monkeypatch.setattr(factory, "make_engine", lambda name, workers: InProcessEngine())
    run = with_overrides(tiny_study(), ["encoding=none", "steps=20"]).runs()[0]
    corrupt = tmp_path / "orderproof-results" / "checkpoints" / f"{run.id}.safetensors"
    corrupt.parent.mkdir(parents=True)
    corrupt.write_bytes(b"half")
    arguments = ["compare", "tiny.yaml", "encoding=none", "steps=20", "--quiet"]
    code, stderr = call_main(arguments, tmp_path, monkeypatch, capsys)
    assert code == 2
    assert stderr.startswith(f"orderproof: run {run.id} failed: {corrupt} cannot be read as a checkpoint")
    assert stderr.count("\n") == 1
    store = ResultStore(tmp_path / "orderproof-results")
    assert len(store.results()) == 1
    corrupt.unlink()
    assert call_main(arguments, tmp_path, monkeypatch, capsys) == (0, "")
    assert len(store.results()) == 2


def call_main(
    arguments: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[int, str]:
    """Run the command line in this process: its exit code and its standard error without the lines of progress."""
    (folder / "tiny.yaml").write_text(TINY)
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["orderproof", *arguments])
    with pytest.raises(SystemExit) as exit_info:
        main()
    return int(exit_info.value.code or 0), STAGE.sub("", capsys.readouterr().err)
