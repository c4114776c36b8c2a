"""A run is a function of its configuration: whenever it is stopped, whatever ran before it."""

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
from orderproof.lab import training
from orderproof.lab.configuration import RunConfig
from orderproof.lab.engines.engine import compute, text_of
from orderproof.lab.result import RunResult
from orderproof.lab.training import batch_of, learning_rate, train
from tests.lab.running import PATIENCE, Stopped, one, stop_at, tiny, told


def test_the_learning_rate_rises_and_then_falls_by_half_a_cosine() -> None:
    run = one(steps=30, warmup=10, learning_rate=0.5)
    assert [learning_rate(run, step) for step in (1, 5, 10)] == [0.05, 0.25, 0.5]
    assert learning_rate(run, 20) == pytest.approx(0.25)
    assert learning_rate(run, 15) == pytest.approx(0.5 * 0.5 * (1 + math.cos(math.pi / 4)))
    assert learning_rate(run, 30) == pytest.approx(0.0, abs=1e-17)


def test_a_constant_learning_rate_stays_after_the_rise() -> None:
    run = one(steps=30, warmup=10, learning_rate=0.5, schedule="constant")
    assert [learning_rate(run, step) for step in (1, 10, 11, 30)] == [0.05, 0.5, 0.5, 0.5]
    assert learning_rate(one(warmup=0, learning_rate=0.5, schedule="constant"), 1) == 0.5


def test_a_batch_depends_on_the_seed_and_the_step_alone() -> None:
    run = one(question="copy", train_lengths=(1, 6), test_lengths=(6,))
    forward = [batch_of(run, number) for number in range(1, 9)]
    torch.manual_seed(9)
    backward = [
        batch_of(one(**{**run.plain(), "width": 8, "steps": 3, "encoding": "alibi"}), n) for n in range(8, 0, -1)
    ]
    for there, back in zip(forward, reversed(backward), strict=True):
        assert torch.equal(there.tokens, back.tokens)
        assert torch.equal(there.targets, back.targets)
    assert len({batch.tokens.shape for batch in forward}) > 1, "one length only"
    assert len({str(batch.tokens.tolist()) for batch in forward}) == 8
    other = batch_of(one(**{**run.plain(), "seed": 1}), 1)
    assert other.tokens.tolist() != forward[0].tokens.tolist()


def test_weights_that_came_apart_at_the_last_step_are_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = training.step

    def apart(run: RunConfig, model: nn.Module, *given: Any) -> torch.Tensor:
        loss = inner(run, model, *given)
        with torch.no_grad():
            next(model.parameters()).fill_(math.nan)
        return loss

    monkeypatch.setattr(training, "step", apart)
    monkeypatch.setattr(training, "_on_curve", lambda run, model: 0.0)
    with pytest.raises(UsageError, match="the weights after step 1 are not finite: .* give a lower learning_rate"):
        train(one(steps=1))


def test_whatever_the_process_did_before_changes_nothing(undisturbed: dict[str, RunResult]) -> None:
    run = tiny().runs()[2]
    torch.manual_seed(12345)
    torch.rand(7)
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert told(train(run)) == told(undisturbed[run.id])
        assert torch.get_num_threads() == 2
        assert not torch.are_deterministic_algorithms_enabled()
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("keep_every", [1, 4, 100])
def test_a_run_goes_on_from_every_step_to_the_same_end(tmp_path: Path, keep_every: int) -> None:
    run = one(encoding="t5", steps=9, keep_every=keep_every, measure_every=2)
    whole = told(train(run))
    for last in range(1, 10):
        folder = tmp_path / str(last)
        with pytest.raises(Stopped):
            train(run, folder, told=stop_at(last))
        heard: list[int] = []
        assert told(train(run, folder, told=heard.append)) == whole
        kept = 9 if last == 9 else last - last % keep_every
        assert heard == list(range(kept + 1, 10)), "it did not go on from the last checkpoint"


def test_a_run_stopped_again_and_again_comes_to_the_same_end(tmp_path: Path) -> None:
    run = one(encoding="learned", steps=8, keep_every=2, measure_every=3)
    for last in (1, 2, 3, 5, 6, 7):
        with pytest.raises(Stopped):
            train(run, tmp_path, told=stop_at(last))
    assert told(train(run, tmp_path)) == told(train(run))


def test_a_run_killed_over_and_over_comes_to_the_same_end(tmp_path: Path, undisturbed: dict[str, RunResult]) -> None:
    run = tiny().runs()[3]
    file = tmp_path / f"{run.id}.safetensors"
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.lab.warm"])
    kills, end = 0, time.monotonic() + PATIENCE
    while True:
        before = file.stat().st_mtime_ns if file.exists() else 0
        life = context.Process(target=compute, args=(text_of(run), str(tmp_path)))
        life.start()
        while life.is_alive() and not (file.exists() and file.stat().st_mtime_ns != before):
            assert time.monotonic() < end, "no new checkpoint"
            life.join(0.001)
        life.join(0.003 * (kills % 5))  # at another moment of the way each time
        life.kill()
        life.join()
        if life.exitcode == 0:
            break
        assert life.exitcode == -9
        kills += 1
    assert kills >= 3
    assert told(train(run, tmp_path)) == told(undisturbed[run.id])


def test_a_run_that_was_trained_to_its_end_is_only_tested_again(tmp_path: Path) -> None:
    run = one(steps=4)
    first, heard = train(run, tmp_path), list[int]()
    assert told(train(run, tmp_path, told=heard.append)) == told(first)
    assert heard == []
