"""A checkpoint is whole and this run's own, or it is refused in one line that says what to do."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest
from safetensors import safe_open
from safetensors.torch import save_file

from orderproof.errors import CheckpointError, StoreError
from orderproof.lab import training
from orderproof.lab.configuration import RunConfig
from orderproof.lab.training import train
from tests.lab.running import Stopped, no_file_larger_than, one, stop_at, told


@pytest.fixture
def run() -> RunConfig:
    return one(steps=6, keep_every=2, measure_every=3)


@pytest.fixture
def file(run: RunConfig, tmp_path: Path) -> Path:
    """The checkpoint of a run stopped after its fourth step."""
    with pytest.raises(Stopped):
        train(run, tmp_path, told=stop_at(4))
    return tmp_path / f"{run.id}.safetensors"


@pytest.mark.parametrize("share", [0.0, 0.001, 0.1, 0.5, 0.999])
def test_a_file_cut_short_is_refused_and_the_run_goes_on_without_it(run: RunConfig, file: Path, share: float) -> None:
    whole = file.read_bytes()
    file.write_bytes(whole[: int(share * len(whole))])
    refused(run, file, r"cannot be read as a checkpoint of run [0-9a-f]{16} \(.*\); remove it")
    file.unlink()
    assert told(train(run, file.parent)) == told(train(run))


@pytest.mark.parametrize("share", [0.1, 0.5, 0.999])
def test_one_changed_byte_is_noticed(run: RunConfig, file: Path, share: float) -> None:
    data = bytearray(file.read_bytes())
    data[int(share * len(data))] ^= 1
    file.write_bytes(data)
    refused(run, file, "cannot be read as a checkpoint")


def test_a_changed_curve_is_noticed(run: RunConfig, file: Path) -> None:
    rewrite(file, lambda kept, tensors: kept["curve"].pop())
    refused(run, file, "what it holds is not what was written")


def test_a_missing_moment_is_noticed(run: RunConfig, file: Path) -> None:
    rewrite(file, lambda kept, tensors: tensors.pop(next(name for name in tensors if name.startswith("moment."))))
    refused(run, file, "what it holds is not what was written")


def test_another_runs_checkpoint_is_refused(run: RunConfig, file: Path) -> None:
    other = one(steps=6, keep_every=2, measure_every=3, seed=1)
    file.rename(file.with_name(f"{other.id}.safetensors"))
    refused(other, file.with_name(f"{other.id}.safetensors"), f"belongs to run {run.id} of code .*, not to {other.id}")


def test_a_checkpoint_of_other_code_is_refused(run: RunConfig, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "code_version", lambda edition: "changed")
    refused(run, file, rf"belongs to run {run.id} of code .*, not to {run.id} of changed; remove it")


def test_a_file_of_something_else_is_refused(run: RunConfig, file: Path) -> None:
    file.write_text("not safetensors")
    refused(run, file, "cannot be read as a checkpoint")
    file.unlink()
    file.mkdir()
    refused(run, file, "cannot be read as a checkpoint")


def test_a_full_disk_leaves_the_older_checkpoint_and_the_run_goes_on(run: RunConfig, file: Path) -> None:
    kept = file.read_bytes()
    with (
        no_file_larger_than(len(kept) // 2),
        pytest.raises(StoreError, match="cannot keep a checkpoint in .*: File too"),
    ):
        train(run, file.parent)
    assert file.read_bytes() == kept
    assert [each.name for each in file.parent.iterdir()] == [file.name], "half a file was left"
    heard: list[int] = []
    assert told(train(run, file.parent, told=heard.append)) == told(train(run))
    assert heard == [5, 6]


def test_a_disk_that_fills_up_says_what_to_do(run: RunConfig, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(number: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(
        StoreError, match="No space left on device; make room or give another --store, and the same comm"
    ):
        train(run, file.parent)


def test_a_run_that_another_process_finished_meanwhile_goes_on(
    run: RunConfig, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def swept(number: int) -> None:
        for part in file.parent.glob(".*.part"):
            part.unlink()

    monkeypatch.setattr(os, "fsync", swept)
    assert told(train(run, file.parent)) == told(train(run))


def test_a_folder_that_cannot_be_made_is_named(run: RunConfig, tmp_path: Path) -> None:
    (tmp_path / "checkpoints").write_text("in the way")
    with pytest.raises(StoreError, match=r"cannot keep a checkpoint in '.*checkpoints': "):
        train(run, tmp_path / "checkpoints")


def refused(run: RunConfig, file: Path, why: str) -> None:
    with pytest.raises(CheckpointError, match=why) as told_why:
        train(run, file.parent)
    assert "\n" not in str(told_why.value)


def rewrite(file: Path, change) -> None:  # type: ignore[no-untyped-def]
    with safe_open(file, framework="pt") as held:
        kept = json.loads(held.metadata()["orderproof"])
        tensors = {name: held.get_tensor(name) for name in held.keys()}  # noqa: SIM118
    change(kept, tensors)
    save_file(tensors, file, {"orderproof": json.dumps(kept)})
