"""The law of collators: each planted fault is found at its line by the plain command, and correct ones pass."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from torch import Tensor

from orderproof import training
from orderproof.errors import SubjectError, UsageError
from tests.cli.conftest import Run, run
from tests.training import collators, loop_steps

__all__ = ["run"]
MADE = [
    name for name, made in vars(collators).items() if getattr(made, "__annotations__", {}) == {"return": "Collated"}
]


@pytest.mark.parametrize("name", MADE)
def test_the_plain_command_finds_each_fault_and_passes_each_correct_collator(run: Run, name: str) -> None:
    done = run("training", "--collator", f"{collators.__file__}:{name}", "--json", "-", "-q")
    (finding,) = json.loads(done.out)["findings"]
    expected = "" if name.startswith("good") else getattr(collators, name).__doc__.lower().strip().rstrip(".")
    assert (done.code, done.err) == (int(bool(expected)), "")
    assert (finding["code"], finding["verdict"]) == ("OP710", "refuted" if expected else "held")
    assert expected in finding["reason"].lower()
    if expected:
        assert finding["remedy"]
        of_lists = name in ("last_token_dropped", "sample_dropped", "positions_dropped")  # the tensor is the first seen
        assert '"input_ids": torch.tensor(' in finding["fix_line"] if of_lists else "# fault" in finding["fix_line"]


def test_a_cut_sample_is_said() -> None:
    report = training.audit_collator(*collators.good_cut())
    (finding,) = report.findings
    assert finding.measurement is not None
    assert "of which 1 are cut" in finding.measurement.comparisons[0].description


def test_a_collator_makes_the_batch_of_a_step() -> None:
    report = training.audit(loop_steps.Small(), loss=_loss, collator=collators.pad, samples=collators.samples(9, 4, 6))
    assert {f.code: f.verdict for f in report.findings}["OP710"] == "held"
    assert not report.violations


def _loss(model: Any, batch: dict[str, Tensor]) -> Tensor:
    return loop_steps.shifted(model(batch["input_ids"], batch["attention_mask"]), batch["labels"])


def test_a_random_collator_is_undecided_and_said_so() -> None:
    def collate(given: Any) -> dict[str, Tensor]:
        batch = collators.pad(given)
        return {**batch, "input_ids": torch.where(torch.rand(batch["input_ids"].shape) < 0.5, 1, batch["input_ids"])}

    (finding,) = training.audit_collator(collate, collators.samples(9, 4)).findings
    assert finding.verdict == "undecided"
    assert "its collator is random: asked twice" in finding.reason


@pytest.mark.parametrize(
    ("collator", "samples", "error", "message"),
    [
        (3, [{"input_ids": [1]}], UsageError, "expected a collator that is called with samples; got int"),
        (collators.pad, [], UsageError, "expected samples for the collator"),
        (collators.pad, [{"text": "a"}], SubjectError, "the collator raised KeyError"),
        (lambda given: given, [{"input_ids": [1]}], SubjectError, "expected a batch as a dict of tensors"),
    ],
)
def test_bad_input_is_one_line(collator: Any, samples: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as refused:
        training.audit_collator(collator, samples)
    assert "\n" not in str(refused.value)


def test_wrong_files_are_refused(run: Run) -> None:
    done = run("training")
    assert (done.code, done.out) == (2, "")
    assert "expected a training step, file.py:step, or --collator file.py:name" in done.err
    done = run("training", "--collator", f"{collators.__file__}:pack")
    assert done.code == 2
    done = run("training", "--collator", f"{loop_steps.__file__}:Small")
    assert "expected a function that returns a collator and a list of samples; got Small" in done.err
