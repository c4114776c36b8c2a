"""A run is a function of its configuration, wherever it is stopped and resumed."""

from __future__ import annotations

import math
import multiprocessing
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from orderproof.errors import UsageError
from orderproof.lab import trainer
from orderproof.lab.engines.engine import run_job, serialise_job
from orderproof.lab.result import RunResult
from orderproof.lab.run_config import RunConfig
from orderproof.lab.trainer import learning_rate, train, training_batch
from tests.lab.small_study import TIMEOUT, Stopped, reproducible_part, stop_at, tiny_run, tiny_study


def test_the_learning_rate_rises_and_then_falls_by_half_a_cosine() -> None:
    run = tiny_run(steps=30, warmup=10, learning_rate=0.5)
    assert [learning_rate(run, step) for step in (1, 5, 10)] == [0.05, 0.25, 0.5]
    assert learning_rate(run, 20) == pytest.approx(0.25)
    assert learning_rate(run, 15) == pytest.approx(0.5 * 0.5 * (1 + math.cos(math.pi / 4)))
    assert learning_rate(run, 30) == pytest.approx(0.0, abs=1e-17)


def test_a_constant_learning_rate_stays_after_the_warmup() -> None:
    run = tiny_run(steps=30, warmup=10, learning_rate=0.5, schedule="constant")
    assert [learning_rate(run, step) for step in (1, 10, 11, 30)] == [0.05, 0.5, 0.5, 0.5]
    assert learning_rate(tiny_run(warmup=0, learning_rate=0.5, schedule="constant"), 1) == 0.5


def test_a_batch_depends_only_on_the_seed_and_the_step() -> None:
    run = tiny_run(question="copy", train_lengths=(1, 6), test_lengths=(6,))
    forward = [training_batch(run, number) for number in range(1, 9)]
    torch.manual_seed(9)
    backward = [
        training_batch(tiny_run(**{**run.to_dict(), "width": 8, "steps": 3, "encoding": "alibi"}), n)
        for n in range(8, 0, -1)
    ]
    for there, back in zip(forward, reversed(backward), strict=True):
        assert torch.equal(there.tokens, back.tokens)
        assert torch.equal(there.targets, back.targets)
    assert len({batch.tokens.shape for batch in forward}) > 1, "only one length"
    assert len({str(batch.tokens.tolist()) for batch in forward}) == 8
    other = training_batch(tiny_run(**{**run.to_dict(), "seed": 1}), 1)
    assert other.tokens.tolist() != forward[0].tokens.tolist()


def test_weights_that_diverged_at_the_last_step_are_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = trainer.training_step

    def diverge(run: RunConfig, model: nn.Module, *arguments: Any) -> torch.Tensor:
        loss = inner(run, model, *arguments)
        with torch.no_grad():
            next(model.parameters()).fill_(math.nan)
        return loss

    monkeypatch.setattr(trainer, "training_step", diverge)
    monkeypatch.setattr(trainer, "validation_score", lambda run, model: 0.0)
    with pytest.raises(
        UsageError, match="training diverged: the weights after step 1 are not finite; give a lower learning_rate"
    ):
        train(tiny_run(steps=1))


def test_the_state_of_the_process_does_not_change_the_result(undisturbed: dict[str, RunResult]) -> None:
    run = tiny_study().runs()[2]
    torch.manual_seed(12345)
    torch.rand(7)
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert reproducible_part(train(run)) == reproducible_part(undisturbed[run.id])
        assert torch.get_num_threads() == 2
        assert not torch.are_deterministic_algorithms_enabled()
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("keep_every", [4, *(pytest.param(each, marks=pytest.mark.slow) for each in (1, 100))])
def test_a_run_resumes_from_every_step_with_the_same_result(tmp_path: Path, keep_every: int) -> None:
    run = tiny_run(encoding="t5", steps=9, keep_every=keep_every, measure_every=2)
    uninterrupted = reproducible_part(train(run))
    for last in range(1, 10):
        folder = tmp_path / str(last)
        with pytest.raises(Stopped):
            train(run, folder, on_step=stop_at(last))
        steps: list[int] = []
        assert reproducible_part(train(run, folder, on_step=steps.append)) == uninterrupted
        kept = 9 if last == 9 else last - last % keep_every
        assert steps == list(range(kept + 1, 10)), "it did not resume from the last checkpoint"


def test_a_run_stopped_repeatedly_has_the_same_result(tmp_path: Path) -> None:
    run = tiny_run(encoding="learned", steps=8, keep_every=2, measure_every=3)
    for last in (1, 2, 3, 5, 6, 7):
        with pytest.raises(Stopped):
            train(run, tmp_path, on_step=stop_at(last))
    assert reproducible_part(train(run, tmp_path)) == reproducible_part(train(run))


@pytest.mark.slow
def test_a_run_killed_repeatedly_has_the_same_result(tmp_path: Path, undisturbed: dict[str, RunResult]) -> None:
    run = tiny_study().runs()[3]
    file = tmp_path / f"{run.id}.safetensors"
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.lab.preload"])
    kills, end = 0, time.monotonic() + TIMEOUT
    while True:
        before = file.stat().st_mtime_ns if file.exists() else 0
        process = context.Process(target=run_job, args=(serialise_job((run,)), str(tmp_path)))
        process.start()
        while process.is_alive() and not (file.exists() and file.stat().st_mtime_ns != before):
            assert time.monotonic() < end, "no new checkpoint"
            process.join(0.001)
        process.join(0.003 * (kills % 5))  # at a different time in each iteration
        process.kill()
        process.join()
        if process.exitcode == 0:
            break
        assert process.exitcode == -9
        kills += 1
    assert kills >= 3
    assert reproducible_part(train(run, tmp_path)) == reproducible_part(undisturbed[run.id])


def test_a_fully_trained_run_is_only_tested_again(tmp_path: Path) -> None:
    run = tiny_run(steps=4)
    first, steps = train(run, tmp_path), list[int]()
    assert reproducible_part(train(run, tmp_path, on_step=steps.append)) == reproducible_part(first)
    assert steps == []
