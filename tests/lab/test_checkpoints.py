"""A checkpoint is complete and belongs to its run, or it is refused in one line that says what to do."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest
from safetensors import safe_open
from safetensors.torch import save_file

from orderproof.errors import CheckpointError, StoreError
from orderproof.lab import trainer
from orderproof.lab.run_config import RunConfig
from orderproof.lab.trainer import train
from tests.lab.small_study import Stopped, no_file_larger_than, reproducible_part, stop_at, tiny_run


@pytest.fixture
def run() -> RunConfig:
    return tiny_run(steps=6, keep_every=2, measure_every=3)


@pytest.fixture
def file(run: RunConfig, tmp_path: Path) -> Path:
    """The checkpoint of a run that was stopped after its fourth step."""
    with pytest.raises(Stopped):
        train(run, tmp_path, on_step=stop_at(4))
    return tmp_path / f"{run.id}.safetensors"


@pytest.mark.parametrize("share", [0.0, 0.001, 0.1, 0.5, 0.999])
def test_a_truncated_file_is_refused_and_the_run_starts_again_without_it(
    run: RunConfig, file: Path, share: float
) -> None:
    whole = file.read_bytes()
    file.write_bytes(whole[: int(share * len(whole))])
    assert_refused(run, file, r"cannot be read as a checkpoint of run [0-9a-f]{16} \(.*\); remove it")
    file.unlink()
    assert reproducible_part(train(run, file.parent)) == reproducible_part(train(run))


@pytest.mark.parametrize("share", [0.1, 0.5, 0.999])
def test_one_changed_byte_is_noticed(run: RunConfig, file: Path, share: float) -> None:
    data = bytearray(file.read_bytes())
    data[int(share * len(data))] ^= 1
    file.write_bytes(data)
    assert_refused(run, file, "cannot be read as a checkpoint")


def test_a_changed_curve_is_noticed(run: RunConfig, file: Path) -> None:
    rewrite(file, lambda kept, tensors: kept["curve"].pop())
    assert_refused(run, file, "its content does not match its digest")


def test_a_missing_moment_is_noticed(run: RunConfig, file: Path) -> None:
    rewrite(file, lambda kept, tensors: tensors.pop(next(name for name in tensors if name.startswith("moment."))))
    assert_refused(run, file, "its content does not match its digest")


def test_another_runs_checkpoint_is_refused(run: RunConfig, file: Path) -> None:
    other = tiny_run(steps=6, keep_every=2, measure_every=3, seed=1)
    file.rename(file.with_name(f"{other.id}.safetensors"))
    assert_refused(
        other, file.with_name(f"{other.id}.safetensors"), f"belongs to run {run.id} of code .*, not to {other.id}"
    )


def test_a_checkpoint_of_other_code_is_refused(run: RunConfig, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trainer, "code_version", lambda edition: "changed")
    assert_refused(run, file, rf"belongs to run {run.id} of code .*, not to {run.id} of changed; remove it")


def test_a_file_of_something_else_is_refused(run: RunConfig, file: Path) -> None:
    file.write_text("not safetensors")
    assert_refused(run, file, "cannot be read as a checkpoint")
    file.unlink()
    file.mkdir()
    assert_refused(run, file, "cannot be read as a checkpoint")


def test_a_full_disk_keeps_the_older_checkpoint_and_the_run_resumes(run: RunConfig, file: Path) -> None:
    kept = file.read_bytes()
    with (
        no_file_larger_than(len(kept) // 2),
        pytest.raises(StoreError, match="cannot write a checkpoint in .*: File too"),
    ):
        train(run, file.parent)
    assert file.read_bytes() == kept
    assert [each.name for each in file.parent.iterdir()] == [file.name], "a partial file was left"
    heard: list[int] = []
    assert reproducible_part(train(run, file.parent, on_step=heard.append)) == reproducible_part(train(run))
    assert heard == [5, 6]


def test_a_disk_that_fills_up_says_what_to_do(run: RunConfig, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def disk_full(number: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", disk_full)
    with pytest.raises(
        StoreError, match="No space left on device; free some space or pass another --store, then repeat the command"
    ):
        train(run, file.parent)


def test_a_run_that_another_process_finished_meanwhile_continues(
    run: RunConfig, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def delete_part(number: int) -> None:
        for part in file.parent.glob(".*.part"):
            part.unlink()

    monkeypatch.setattr(os, "fsync", delete_part)
    assert reproducible_part(train(run, file.parent)) == reproducible_part(train(run))


def test_a_folder_that_cannot_be_created_is_named(run: RunConfig, tmp_path: Path) -> None:
    (tmp_path / "checkpoints").write_text("in the way")
    with pytest.raises(StoreError, match=r"cannot write a checkpoint in '.*checkpoints': "):
        train(run, tmp_path / "checkpoints")


def assert_refused(run: RunConfig, file: Path, why: str) -> None:
    with pytest.raises(CheckpointError, match=why) as error:
        train(run, file.parent)
    assert "\n" not in str(error.value)


def rewrite(file: Path, change) -> None:  # type: ignore[no-untyped-def]
    with safe_open(file, framework="pt") as opened:
        kept = json.loads(opened.metadata()["orderproof"])
        tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    change(kept, tensors)
    save_file(tensors, file, {"orderproof": json.dumps(kept)})
