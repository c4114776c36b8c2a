"""Trainers that make labels in their loss and weigh log-probabilities, as those of TRL for preferences and rollouts."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import Trainer

from orderproof.errors import FailedStepError
from orderproof.training.policy_step import WEIGHTS, PolicyStep
from orderproof.training.trainer_callback import TrainerAudit
from tests.training.collators import Batch, Sample, pad
from tests.training.test_callbacks import Noisy, _state, trainer_of, with_fused_head
from tests.training.transformers_steps import llama

pytestmark = pytest.mark.filterwarnings("ignore")


class Head:
    """The log-probability of each label, as the fused head of TRL returns it."""

    @staticmethod
    def apply(hidden: Tensor, weight: Tensor, bias: None, labels: Tensor, *_: Any) -> tuple[Tensor, None]:
        del bias
        return (hidden @ weight.T).log_softmax(-1).gather(-1, labels[:, None])[:, 0], None


def prompts(given: list[Sample]) -> Batch:
    """A batch without labels: the completion begins at the third token."""
    batch = pad(given)
    completion = batch["attention_mask"].clone()
    completion[:, :2] = 0
    return {"input_ids": batch["input_ids"], "attention_mask": batch["attention_mask"], "completion": completion}


class Preference(Noisy):
    """A loss of the log-probabilities of rows, which the trainer compares; it draws numbers and counts its calls."""

    counts_pads = False
    equal_rewards = False

    def compute_loss(self, model: Any, inputs: Any, *_: Any, **__: Any) -> Any:
        self.counts["calls"].append(float(torch.rand(())))
        completion = torch.ones_like(inputs["completion"]) if self.counts_pads else inputs["completion"]
        labels = inputs["input_ids"].masked_fill(completion == 0, -100)
        given = {name: inputs[name] for name in ("input_ids", "attention_mask")}
        scores = model(**given, labels=labels, fused=True).log_probs.sum(1)
        rewards = torch.zeros(len(scores)) if self.equal_rewards else torch.tensor([1.0, -0.5])[: len(scores)]
        return -(rewards * scores.sigmoid()).sum()


class Classifier(Trainer):
    """A loss without log-probabilities of tokens, as of a reward model."""

    def compute_loss(self, model: Any, inputs: Any, *_: Any, **__: Any) -> Any:
        return model.lm_head(model.model(inputs["input_ids"]).last_hidden_state).mean()


@pytest.fixture(autouse=True)
def utils(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module of TRL that has the fused head."""
    found: Any = ModuleType("trl.trainer.utils")
    found._ChunkedLogProbFunction = Head
    monkeypatch.setitem(sys.modules, "trl.trainer.utils", found)
    return found


def trained(folder: Path, utils: Any, kind: type[Trainer], *, action: Any = None) -> Trainer:
    torch.manual_seed(0)
    trainer = trainer_of(folder, with_fused_head(llama(), utils), prompts, kind)
    if action is not None:
        trainer.add_callback(TrainerAudit(trainer, action=action))
    trainer.train()
    return trainer


def test_a_loss_that_makes_its_labels_is_audited_and_the_run_is_the_same(
    tmp_path: Path, utils: Any, caplog: pytest.LogCaptureFixture
) -> None:
    plain = trained(tmp_path, utils, Preference)
    with caplog.at_level(logging.INFO, logger="orderproof.training"):
        audited = trained(tmp_path, utils, Preference, action="fail")
    assert "Preference: 4 checks passed, none failed" in caplog.text
    pairs = zip(_state(plain, []), _state(audited, []), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
    assert plain.counts == audited.counts  # type: ignore[attr-defined]
    assert "compute_loss" not in vars(audited)


def test_pads_that_such_a_loss_counts_are_found(tmp_path: Path, utils: Any) -> None:
    kind = type("Preference", (Preference,), {"counts_pads": True})
    with pytest.raises(FailedStepError, match="OP703"):
        trained(tmp_path, utils, kind, action="fail")


def test_rewards_that_are_equal_leave_the_labels_to_be_audited(
    tmp_path: Path, utils: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="orderproof.training"):
        trained(tmp_path, utils, type("Preference", (Preference,), {"equal_rewards": True}), action="fail")
    assert "checks passed, none failed" in caplog.text


def test_a_loss_without_log_probabilities_is_one_line(
    tmp_path: Path, utils: Any, caplog: pytest.LogCaptureFixture
) -> None:
    trained(tmp_path, utils, Classifier, action="fail")
    (line,) = [x.getMessage() for x in caplog.records if x.name == "orderproof.training"]
    assert line == (
        "orderproof: the first step is not audited: Classifier has no labels in its batch, and its loss has 0 calls of "
        "the model with labels that return log-probabilities; expected one"
    )


def test_the_weighted_sum_of_a_row_has_the_direction_of_the_gradient_of_the_loss(tmp_path: Path, utils: Any) -> None:
    model = with_fused_head(llama(), utils)
    trainer = trainer_of(tmp_path, model, prompts, Preference, per_device_train_batch_size=1)
    inputs: Any = next(iter(trainer.get_train_dataloader()))

    def objective() -> Tensor:
        return trainer.compute_loss(model, inputs)  # type: ignore[no-any-return]

    step, parameter = PolicyStep.of(model, objective), model.model.embed_tokens.weight
    (expected,) = torch.autograd.grad(objective(), parameter)
    (found,) = torch.autograd.grad(step.loss(model, step.batch), parameter)
    assert torch.allclose(found / found.abs().max(), expected / expected.abs().max(), atol=1e-5)
    assert float(step.batch[WEIGHTS].abs().max()) == 1
