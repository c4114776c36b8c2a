"""Ranks that share a batch, and rollouts: each planted fault is found at its line, and each twin passes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, distributed

from orderproof import training
from orderproof.errors import UsageError
from tests.cli.conftest import Run, run
from tests.training import loop_steps, rollout_steps, sharded_steps

__all__ = ["run"]
QUICK = ("good_in_one_piece", "border_labels_lost", "keys_without_gradient", "good_temperature", "positions_dropped")


def _steps(file: Any) -> list[Any]:
    names = [name for name, made in vars(file).items() if getattr(made, "__annotations__", {}) == {"return": "Step"}]
    return [pytest.param(name, marks=[pytest.mark.slow] * (name not in QUICK)) for name in names]


def _finding(run: Run, file: Any, name: str, *options: str) -> tuple[list[Any], list[Any]]:
    """The findings that fail by the plain command, and those that pass or are undecided."""
    done = run("training", f"{Path(file.__file__)}:{name}", "--json", "-", "-q", *options)
    findings = json.loads(done.out)["findings"]
    failed = [f for f in findings if f["outcome"] == "fail"]
    assert (done.code, done.err) == (int(bool(failed)), "")
    return failed, [f for f in findings if f["outcome"] in ("pass", "undecided")]


@pytest.mark.parametrize("name", _steps(sharded_steps))
def test_ranks_that_share_a_batch(run: Run, name: str) -> None:
    options = ("--law", "OP708") if name in QUICK else ()
    failed, others = _finding(run, sharded_steps, name, *options)
    assert [f["code"] for f in failed] == ([] if name.startswith("good") else ["OP708"])
    assert {f["outcome"] for f in others} <= {"pass"}
    assert all(f["fix_line"].endswith("# fault") and f["remedy"] for f in failed)
    assert ("OP708" in [f["code"] for f in others]) == name.startswith("good")


@pytest.mark.parametrize("name", _steps(rollout_steps))
def test_rollouts_of_generate(run: Run, name: str) -> None:
    failed, others = _finding(run, rollout_steps, name, "--law", "OP709", "--rollout", "generate")
    if name.startswith("good"):
        assert [f["outcome"] for f in others] == ["pass"]
        return
    (found,) = failed
    assert (getattr(rollout_steps, name).__doc__ or "").removeprefix("OP709: ") in found["reason"]
    assert found["fix_line"].endswith("# fault")
    assert found["remedy"]


@pytest.mark.slow
def test_remedies_follow_the_cause() -> None:
    found = {
        name: training.audit(*getattr(sharded_steps, name)(), laws=["OP708"]).findings[0]
        for name in ("positions_restart", "mean_of_rows")
    }
    assert "the position that it has in the row" in found["positions_restart"].remedy
    assert "number of labels of all ranks" in found["mean_of_rows"].remedy


def _loss(model: Any, given: dict[str, Tensor]) -> Tensor:
    return loop_steps.masked_loss(model, given)


def test_a_loss_that_only_asks_for_its_rank_is_not_audited_on_ranks() -> None:
    def asks(model: Any, given: dict[str, Tensor]) -> Tensor:
        assert not distributed.is_initialized() or distributed.get_rank() < 2
        return _loss(model, given)

    reasons = [
        training.audit(loop_steps.Small(), loop_steps.padded(), loss, laws=["OP708"]).findings[0].reason
        for loss in (_loss, asks)
    ]
    assert [reason.partition(": ")[2] for reason in reasons] == [
        "the loss asks for no process group of torch.distributed",
        "the loss gives the whole batch to each rank",
    ]


def test_what_a_rank_raises_is_one_line() -> None:
    def refuses(model: Any, given: dict[str, Tensor]) -> Tensor:
        if distributed.is_initialized() and distributed.get_world_size() > 1:
            raise ValueError("3 heads for 2 ranks")
        return _loss(model, given)

    (found,) = training.audit(loop_steps.Small(), loop_steps.padded(), refuses, laws=["OP708"]).findings
    assert found.verdict == "undecided"
    assert found.reason.startswith("a rank of 2 failed: the loss raised ValueError: 3 heads for 2 ranks")


def test_rollouts_may_be_recorded_by_a_function() -> None:
    model, batch, loss = rollout_steps.good_left()

    def given(prompt: list[int], completion: list[int], *, less: float = 0.0) -> list[float]:
        tokens = torch.tensor([prompt + completion])
        with torch.no_grad():
            own = model(tokens).logits[0, len(prompt) - 1 : -1].log_softmax(-1)
        values = own.gather(1, torch.tensor(completion)[:, None])[:, 0].tolist()
        return [*values[:-1], values[-1] - less]

    (held,) = training.audit(model, batch, loss, rollout=given, laws=["OP709"]).findings
    assert held.verdict == "held"
    (found,) = training.audit(model, batch, loss, rollout=lambda *each: given(*each, less=0.1), laws=["OP709"]).findings
    assert found.reason.endswith("by the rollouts, for no setting that was tried")
    (short,) = training.audit(model, batch, loss, rollout=lambda *_: [0.0], laws=["OP709"]).findings
    assert "expected 5 log-probabilities of the rollouts" in short.reason


def test_an_engine_that_is_unknown_or_no_model_for_it_is_one_line() -> None:
    with pytest.raises(UsageError, match="expected generate or an engine as rollout: ctranslate2"):
        training.audit(loop_steps.Small(), loop_steps.padded(), _loss, rollout="vlm")
    (found,) = training.audit(
        loop_steps.Small(), loop_steps.padded(), _loss, rollout="generate", laws=["OP709"]
    ).findings
    assert found.reason == "its model has no generate: expected a model of transformers, or another engine"


def test_an_engine_of_ports_generates_rollouts() -> None:
    pytest.importorskip("ctranslate2")
    (found,) = training.audit(*rollout_steps.good_packed(), rollout="ctranslate2", laws=["OP709"]).findings
    assert found.verdict == "held"
    assert "completions by ctranslate2" in found.measurement.comparisons[-1].description
