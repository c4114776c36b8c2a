"""A callback for the Trainer of transformers: its first step is audited before it is made.

    trainer.add_callback(TrainerAudit(trainer))

The micro-batches of the first step are those that the run trains on: they come from its own collator and packing. The
loss is what its `training_step` would back-propagate, so accumulation and the count of labels are its own. The
SFTTrainer of TRL is audited too; the logits of its fused head are made visible. Trainers of preferences and rollouts
make labels in their loss: the audit begins when that is first called, and is about the log-probabilities in it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from transformers import TrainerCallback

from orderproof.errors import failure_reason
from orderproof.laws.training import TrainingBatch
from orderproof.training.first_step import FirstStepAudit
from orderproof.training.fused_head import visible_logits
from orderproof.training.kept_run import check_is_whole, kept_run
from orderproof.training.micro_batches import MicroBatches, some_rows
from orderproof.training.policy_step import PolicyStep


class TrainerAudit(TrainerCallback):  # type: ignore[misc]
    """Audits the first step of a run, and changes nothing of it.

    `action` is "warn", which logs, or "fail", which raises `FailedStepError` after a violation. `report` is a file for
    the report as JSON, `laws` are names or codes.
    """

    def __init__(
        self,
        trainer: Any,
        *,
        action: Literal["warn", "fail"] = "warn",
        report: str | Path | None = None,
        laws: Sequence[str] | None = None,
    ) -> None:
        self.trainer, self.audit = trainer, FirstStepAudit(action, report, laws)

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Wait for the micro-batches of the first step."""
        del args, control
        if not state.is_world_process_zero:
            return

        def first(get_batch_samples: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
            samples, count = get_batch_samples(*arguments, **options)
            self._audit(samples)
            return samples, count

        _call_next_by(self.trainer, "get_batch_samples", first)

    def _audit(self, samples: Sequence[Any]) -> None:
        trainer = self.trainer
        if not all(map(_has_labels, samples)):
            self._await_loss()
            return
        parts = MicroBatches.of([some_rows(part) for part in samples])

        def loss(model: Any, batch: Any) -> Any:
            return _step_loss(trainer, model, parts.split(batch))

        with visible_logits(trainer.model):
            self.audit.run(
                trainer.model, parts.batch, loss, trainer, trainer.accelerator, name=type(trainer).__name__,
                wrapped=trainer.model_wrapped, share=parts.share_of(samples),
            )  # fmt: skip

    def _await_loss(self) -> None:
        """Audit the labels that the trainer makes when its loss is called for the first time."""

        def first(compute_loss: Callable[..., Any], model: Any, inputs: Any, *more: Any, **named: Any) -> Any:
            self._audit_policy(lambda: compute_loss(model, dict(inputs), *more, **named))
            return compute_loss(model, inputs, *more, **named)

        _call_next_by(self.trainer, "compute_loss", first)

    def _audit_policy(self, objective: Callable[[], Any]) -> None:
        trainer, began = self.trainer, time.perf_counter()
        try:
            check_is_whole(trainer.model, trainer.model_wrapped)
            with visible_logits(trainer.model), kept_run(trainer.model, trainer, trainer.accelerator):
                step = PolicyStep.of(trainer.model, objective)
        except Exception as error:  # noqa: BLE001 - the run must go on
            self.audit.refuse(f"{type(trainer).__name__} has no labels in its batch, and {failure_reason(error)}")
            return
        batch = some_rows(step.batch)
        share = MicroBatches.of([batch]).share_of([step.batch] * trainer.args.gradient_accumulation_steps)
        with visible_logits(trainer.model):
            self.audit.run(
                trainer.model, batch, step.loss, trainer, trainer.accelerator, name=type(trainer).__name__,
                wrapped=trainer.model_wrapped, share=share, spent=time.perf_counter() - began, weighs_labels=True,
            )  # fmt: skip


def _call_next_by(trainer: Any, name: str, function: Callable[..., Any]) -> None:
    """Let a function make the next call of a method, which it gets first, and no later one."""
    own = vars(trainer).get(name)

    def first(*arguments: Any, **options: Any) -> Any:
        if own is None:
            delattr(trainer, name)
        else:
            setattr(trainer, name, own)
        return function(getattr(trainer, name), *arguments, **options)

    setattr(trainer, name, first)


def _has_labels(part: Any) -> bool:
    """True for a batch with labels of tokens; those of whole rows, as in KTO, are none."""
    labels = TrainingBatch.roles_of(part).get("labels")
    return labels is not None and part[labels].dim() == 2


def _step_loss(trainer: Any, model: Any, parts: Sequence[Any]) -> Any:
    """The sum of what the trainer would back-propagate for these micro-batches."""
    accelerator, losses = trainer.accelerator, list[Any]()
    before = vars(accelerator).get("backward")
    accelerator.backward = lambda loss, *_, **__: losses.append(loss)
    try:
        samples, count = trainer.get_batch_samples(iter(parts), len(parts), trainer.args.device)
        for sample in samples:
            trainer.training_step(model, sample, count)
    finally:
        del accelerator.backward
        if before is not None:
            accelerator.backward = before
    return sum(losses)
