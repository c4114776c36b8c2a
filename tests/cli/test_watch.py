"""`--watch`: the audit runs again after a change, and Ctrl-C ends with its last exit code."""

from __future__ import annotations

from pathlib import Path

import pytest

from orderproof.cli import watch
from tests.cli.conftest import Run


def test_it_runs_again_after_a_change_and_ends_with_the_last_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, report = tmp_path / "model.py", tmp_path / "report.json"
    model.write_text("first", encoding="utf-8")
    codes, waits = [1, 0], list[int]()

    def run() -> int:
        report.write_text(f"{len(codes)}" * len(codes), encoding="utf-8")  # its own file is no change
        return codes.pop(0)

    def wait() -> None:
        waits.append(len(codes))
        if not codes:
            raise KeyboardInterrupt
        if len(waits) > 1:
            model.write_text("another", encoding="utf-8")

    assert watch.repeat(run, tmp_path, {report.resolve()}, wait=wait) == 0
    assert waits == [1, 1, 0]
    printed = capsys.readouterr().err
    assert "watching 1 file below" in printed
    assert "model.py has changed" in printed


def test_new_and_deleted_files_are_changes_and_others_are_not(tmp_path: Path) -> None:
    (tmp_path / "kept.py").write_text("x", encoding="utf-8")
    before = watch.state(tmp_path, set())
    for name in ("notes.txt", ".hidden/x.py", "__pycache__/x.py", ".orderproof_cache/x.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x", encoding="utf-8")
    assert watch.changes(before, watch.state(tmp_path, set())) == []
    (tmp_path / "new.py").write_text("x", encoding="utf-8")
    (tmp_path / "kept.py").unlink()
    assert [path.name for path in watch.changes(before, watch.state(tmp_path, set()))] == ["kept.py", "new.py"]


def test_the_folder_is_that_of_the_subject(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "inner").mkdir()
    file = tmp_path / "inner" / "model.py"
    file.write_text("x", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert watch.folder_of("inner/model.py:build") == file.parent
    assert watch.folder_of("./inner") == file.parent
    assert watch.folder_of("arch:llama") == tmp_path
    assert watch.folder_of(None) == tmp_path


def test_the_command_is_run_without_the_option(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[list[str]] = []

    def repeat(once: object, folder: Path, written: set[Path]) -> int:
        del once
        seen.append([str(folder), *map(str, written)])
        return 3

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(watch, "repeat", repeat)
    code, out, err = run("audit", "arch:llama", "--tiny", "--watch", "--json", "report.json")
    assert (code, out, err) == (3, "", "")
    assert seen == [[str(tmp_path), str(tmp_path / "report.json")]]
