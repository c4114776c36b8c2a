"""Callbacks audit the first step of a run on its own batch and loss, and change nothing of the run."""

from __future__ import annotations

import logging
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

from orderproof.errors import FailedStepError
from orderproof.optional_packages import missing_packages
from orderproof.records.audit import Report
from orderproof.training import first_step
from orderproof.training.lightning_callback import LightningAudit
from orderproof.training.trainer_callback import TrainerAudit
from tests.training import loop_steps
from tests.training.collators import Batch, Sample, pad, samples
from tests.training.transformers_steps import llama

pytestmark = pytest.mark.filterwarnings("ignore")


class Noisy(Trainer):
    """A Trainer that draws random numbers in its loss and counts its calls, as those of TRL do."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.counts: dict[str, list[float]] = {"calls": []}

    def compute_loss(self, *arguments: Any, **options: Any) -> Any:
        self.counts["calls"].append(float(torch.rand(())) + random.random() + float(np.random.rand()))  # noqa: NPY002
        return super().compute_loss(*arguments, **options)


def dropping() -> LlamaForCausalLM:
    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=19, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
        attention_dropout=0.3, pad_token_id=0, initializer_range=0.4,
    )  # fmt: skip
    return LlamaForCausalLM(config)


def trainer_of(
    folder: Path, model: nn.Module, collate: Callable[[Any], Any] = pad, kind: type[Trainer] = Trainer, **more: Any
) -> Trainer:
    options = {
        "output_dir": str(folder), "max_steps": 2, "per_device_train_batch_size": 2, "gradient_accumulation_steps": 2,
        "report_to": [], "use_cpu": True, "seed": 3, "disable_tqdm": True, "remove_unused_columns": False,
        "save_strategy": "no", **more,
    }  # fmt: skip
    given: Any = samples(5, 9, 4, 6, 8, 3, 7, 9)
    return kind(model=model, args=TrainingArguments(**options), train_dataset=given, data_collator=collate)


def _state(trainer: Trainer, seen: list[Any]) -> list[Any]:
    optimizer: Any = trainer.optimizer
    moments = [x for held in optimizer.state.values() for x in held.values() if isinstance(x, Tensor)]
    model: Any = trainer.model
    return [
        *model.state_dict().values(), *moments, torch.get_rng_state(), *seen,
        torch.tensor(np.random.get_state()[1].astype(np.int64)), torch.tensor(random.getstate()[1]),  # noqa: NPY002
    ]  # fmt: skip


def _trained(folder: Path, *, audited: bool) -> tuple[list[Any], Any]:
    random.seed(5)
    np.random.seed(5)  # noqa: NPY002
    seen: list[Tensor] = []

    def collate(given: list[Sample]) -> Batch:
        batch = pad(given)
        seen.append(batch["input_ids"].clone())
        return batch

    trainer: Any = trainer_of(folder, dropping(), collate, Noisy)
    if audited:
        trainer.add_callback(TrainerAudit(trainer))
    trainer.train()
    return _state(trainer, seen), trainer.counts


def test_weights_optimizer_random_state_and_data_are_those_of_a_run_without_the_callback(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="orderproof.training"):
        (audited, counts), (plain, expected) = (_trained(tmp_path, audited=x) for x in (True, False))
    assert "not audited" not in caplog.text
    assert len(caplog.records) == 1
    assert counts == expected
    assert len(audited) == len(plain) > 20
    assert all(torch.equal(a, b) for a, b in zip(audited, plain, strict=True))


def shifted(given: list[Sample]) -> Batch:
    """Labels that the model will shift again."""
    batch = pad(given)
    return {**batch, "labels": torch.nn.functional.pad(batch["labels"][:, 1:], (0, 1), value=-100)}


def test_a_fault_is_in_the_log_and_in_a_file_and_the_run_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    trainer = trainer_of(tmp_path, llama(), shifted)
    trainer.add_callback(TrainerAudit(trainer, report=tmp_path / "report.json"))
    trainer.train()
    assert trainer.state.global_step == 2
    assert "OP702 label_alignment" in caplog.text
    assert "Shift labels once" in caplog.text
    assert "as long as" in caplog.text
    report = Report.from_json((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert [f.code for f in report.violations] == ["OP702"]


def test_a_run_ends_at_a_fault_if_asked_to(tmp_path: Path) -> None:
    trainer = trainer_of(tmp_path, llama(), shifted)
    trainer.add_callback(TrainerAudit(trainer, action="fail"))
    with pytest.raises(FailedStepError, match="OP702 label_alignment") as refused:
        trainer.train()
    assert "\n" not in str(refused.value)
    assert trainer.state.global_step == 0


class ByRows(Trainer):
    """A loss of its own that is a mean over the micro-batch, and said to be scaled already."""

    loss_is_scaled_for_ga = True

    def compute_loss(self, model: Any, inputs: Any, *_: Any, **__: Any) -> Any:
        return model(**inputs).loss / 2


def test_micro_batches_are_those_of_the_accumulation(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    trainer = trainer_of(tmp_path, llama(), kind=ByRows)
    trainer.add_callback(TrainerAudit(trainer, laws=["OP706"]))
    trainer.train()
    assert "a mean over micro-batches of 2 rows" in caplog.text


def test_the_time_of_an_audit_is_limited(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_step, "LEAST_SECONDS", 0.0)
    monkeypatch.setattr(first_step, "STEPS", 0.5)
    trainer = trainer_of(tmp_path, llama())
    trainer.add_callback(TrainerAudit(trainer, report=tmp_path / "report.json"))
    trainer.train()
    report = Report.from_json((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert {f.reason for f in report.findings if f.verdict == "undecided"} == {"the time of 0.5 steps is used up"}


def test_what_cannot_be_audited_is_one_line_and_the_run_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    trainer = trainer_of(tmp_path, llama())
    callback = TrainerAudit(trainer)
    trainer.add_callback(callback)
    wrapped = type("DistributedDataParallel", (), {})()
    audit = callback.audit
    assert audit.run(llama(), {}, lambda model, batch: None, name="x", wrapped=wrapped, share=1.0) is None
    assert audit.run(llama(), {"labels": 3}, lambda model, batch: None, name="x", wrapped=None, share=1.0) is None
    lines = [record.getMessage() for record in caplog.records]
    assert "expected a model in one process; got DistributedDataParallel" in lines[0]
    assert "expected tokens in the batch" in lines[1]
    assert all("\n" not in line for line in lines)


class FusedHead(torch.autograd.Function):
    """Log-probabilities without logits, as in TRL; `other` divides by another temperature."""

    other = 1.0

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, bias: Any, labels: Tensor, *given: Any) -> Any:
        logits = hidden @ weight.T / (given[0] * FusedHead.other)
        return logits.log_softmax(-1).gather(-1, labels[:, None])[:, 0], None


class Fused(Trainer):
    """A trainer whose model returns log-probabilities from a head of trl.trainer.utils."""

    def compute_loss(self, model: Any, inputs: Any, *_: Any, num_items_in_batch: Any = None, **__: Any) -> Any:
        given = model(**inputs, fused=True)
        return -given.log_probs.sum() / num_items_in_batch


def with_fused_head(model: Any, utils: Any) -> Any:
    plain, output = model.forward, type("Output", (dict,), {"log_probs": property(lambda own: own["log_probs"])})

    def forward(*, labels: Tensor, fused: bool = False, num_items_in_batch: Any = None, **given: Any) -> Any:
        if not fused:
            return plain(labels=labels, **given)
        hidden, labels = model.model(**given, use_cache=False).last_hidden_state[:, :-1], labels[:, 1:]
        head = utils._ChunkedLogProbFunction
        found, _ = head.apply(
            hidden.flatten(0, 1), model.lm_head.weight, None, labels.clamp(min=0).flatten(), 1.0, 7, None, 1.0, ()
        )
        return output(log_probs=found.view(labels.shape).masked_fill(labels == -100, 0))

    model.forward = forward
    return model


@pytest.mark.parametrize("temperature", [1.0, 2.0])
def test_the_logits_of_a_fused_head_are_seen_where_they_are_those_of_its_log_probabilities(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, temperature: float
) -> None:
    utils: Any = ModuleType("trl.trainer.utils")
    utils._ChunkedLogProbFunction = FusedHead
    monkeypatch.setitem(sys.modules, "trl.trainer.utils", utils)
    monkeypatch.setattr(FusedHead, "other", temperature)
    trainer = trainer_of(tmp_path, with_fused_head(llama(), utils), kind=Fused)
    with caplog.at_level(logging.INFO, logger="orderproof.training"):
        TrainerAudit(trainer)._audit(list(trainer.get_train_dataloader())[:2])
    assert utils._ChunkedLogProbFunction is FusedHead
    expected = "passed, none failed" if temperature == 1 else "has other log-probabilities than its logits"
    assert expected in caplog.text


class Module(nn.Module):
    """A module as Lightning knows it, whose parts return the logits."""

    def __init__(self, *, shifts: bool) -> None:
        super().__init__()
        self.model, self.shifts, self.logged = loop_steps.Small(), shifts, list[str]()

    def log(self, name: str, *_: Any) -> None:
        self.logged.append(name)

    def training_step(self, batch: Batch, index: int) -> Tensor:
        del index
        labels = batch["labels"] if self.shifts else torch.roll(batch["labels"], 1, 1)
        loss = loop_steps.shifted(self.model(batch["input_ids"], batch["attention_mask"]), labels)
        self.log("loss", loss)
        return loss


class Loop:
    """Calls callbacks as Lightning does."""

    is_global_zero, model = True, None


@pytest.fixture
def audited(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[Any], str]]:
    def run(module: Any, **options: Any) -> str:
        callback = LightningAudit(**options)
        for index in range(2):
            callback.on_train_batch_start(Loop(), module, loop_steps.padded(), index)
        return caplog.text

    with caplog.at_level(logging.INFO, logger="orderproof.training"):
        yield run


def test_the_loss_of_a_lightning_module_is_audited_once(audited: Callable[..., str]) -> None:
    module = Module(shifts=True)
    state = torch.get_rng_state()
    text = audited(module)
    assert "passed, none failed" in text
    assert text.count("The audit took") == 1
    assert torch.equal(torch.get_rng_state(), state)
    assert (module.training, module.logged, module.model.head.weight.grad) == (True, [], None)


def test_a_lightning_module_with_a_fault_ends_the_run_if_asked_to(audited: Callable[..., str]) -> None:
    with pytest.raises(FailedStepError, match="OP702"):
        audited(Module(shifts=False), action="fail")


@pytest.mark.skipif(
    bool(missing_packages("lightning") and missing_packages("pytorch_lightning")), reason="needs Lightning"
)
def test_the_callback_is_one_of_lightning() -> None:
    assert any("lightning" in base.__module__ for base in LightningAudit.__mro__)
