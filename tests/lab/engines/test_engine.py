"""What travels between an engine and its workers: text, and never an exception."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orderproof.errors import StoreError, UsageError
from orderproof.lab import training
from orderproof.lab.engines.choosing import choose
from orderproof.lab.engines.engine import Failure, compute, read, text_of
from orderproof.lab.engines.local import Local
from orderproof.lab.result import RunResult
from tests.lab.running import one, tiny, told


def test_a_result_is_the_same_after_its_way_as_text(tmp_path: Path, undisturbed: dict[str, RunResult]) -> None:
    run = tiny().runs()[3]
    came = read(compute(text_of(run), str(tmp_path)), name=run.id)
    assert isinstance(came, RunResult)
    assert told(came) == told(undisturbed[run.id])


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (UsageError("plain words"), "plain words"),
        (ValueError("two\nlines"), "ValueError: two lines"),
        (MemoryError(), "MemoryError: "),
    ],
)
def test_an_error_in_a_run_is_its_failure_in_one_line(
    error: Exception, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "train", _raising(error))
    run = one()
    assert read(compute(text_of(run), str(tmp_path)), name=run.id) == Failure(id=run.id, reason=reason)


def test_a_disk_that_takes_nothing_ends_the_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "train", _raising(StoreError("the disk is full")))
    run = one()
    with pytest.raises(StoreError, match="the disk is full"):
        read(compute(text_of(run), str(tmp_path)), name=run.id)


def test_a_training_that_comes_apart_says_so(tmp_path: Path) -> None:
    run = one(learning_rate=1e30, clip=None, steps=20, measure_every=5)
    came = read(compute(text_of(run), str(tmp_path)), name=run.id)
    assert isinstance(came, Failure)
    assert "the training came apart; give a lower learning_rate" in came.reason


def test_what_travels_is_the_whole_configuration() -> None:
    run = tiny().runs()[1]
    assert json.loads(text_of(run)) == run.plain()


def test_an_engine_is_chosen_by_name() -> None:
    chosen = choose("local", workers=3)
    assert isinstance(chosen, Local)
    assert chosen.workers == 3
    for name in ("cloud", "local:here", ""):
        with pytest.raises(
            UsageError, match="expected --engine local, ray, ray:ADDRESS, slurm or slurm:PARTITION; got"
        ):
            choose(name, workers=None)


@pytest.mark.parametrize(("kind", "module", "package"), [("ray", "on_ray", "ray"), ("slurm", "slurm", "submitit")])
def test_a_missing_package_is_named(kind: str, module: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.delitem(sys.modules, f"orderproof.lab.engines.{module}", raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        UsageError, match=rf"--engine {kind} needs the package {package}: pip install 'orderproof\[{kind}\]'"
    ):
        choose(kind, workers=None)


def _raising(error: Exception):  # type: ignore[no-untyped-def]
    def train(run: object, folder: object) -> None:
        raise error

    return train
