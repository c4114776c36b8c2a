"""The inputs of an audit of a training step: a model, a batch and a loss, or a collator and samples for the batch."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from orderproof.errors import SubjectError, UnsupportedCallError, UsageError, failure_reason
from orderproof.laws.training import Collation, TrainingBatch, TrainingStep
from orderproof.laws.training.training_step import Loss
from orderproof.tolerances import FLOAT32_TOLERANCE
from orderproof.training.engine_rollout import chosen_rollout
from orderproof.training.made_lines import MadeLines, note_shared_labels


@dataclass(frozen=True)
class StepInputs:
    """Either a model with its batch, or a collator with its samples, or all of them; and an engine of rollouts."""

    model: Any = None
    batch: Any = None
    loss: Loss | None = None
    collator: Callable[[Any], Any] | None = None
    samples: Any = ()
    rollout: str | Callable[[Any, Any], Any] | None = None

    def step(self, seed: int) -> TrainingStep:
        """The step with a copy of the model, called twice. Raises `UsageError`, `SubjectError`."""
        collation, batch = self._collation(), self.batch
        try:
            if batch is None and collation is not None:
                batch = collation.made()
        except UnsupportedCallError as error:
            raise SubjectError(str(error)) from error
        if self.model is None and collation is not None:
            return TrainingStep(nn.Module(), TrainingBatch.of(batch, labelled=False), seed=seed, collation=collation)
        if not isinstance(self.model, nn.Module):
            raise UsageError(f"expected a torch.nn.Module as the model; got {type(self.model).__name__}")
        if self.loss is not None and not callable(self.loss):
            raise UsageError(f"expected loss as a function of model and batch; got {type(self.loss).__name__}")
        try:
            copied = copy.deepcopy(self.model).eval()
        except Exception as error:
            raise SubjectError(f"expected a model that can be copied; {failure_reason(error)}") from error
        rollout = chosen_rollout(self.rollout)
        step = TrainingStep(copied, TrainingBatch.of(batch), self.loss, seed=seed, collation=collation, rollout=rollout)
        _check_losses(step)
        return step

    def _collation(self) -> Collation | None:
        if self.collator is None:
            return None
        if not callable(self.collator):
            raise UsageError(f"expected a collator that is called with samples; got {type(self.collator).__name__}")
        if not isinstance(self.samples, Sequence) or not self.samples:
            raise UsageError(f"expected samples for the collator, a list; got {type(self.samples).__name__} of none")
        return Collation(_watched(self.collator), self.samples)


def _watched(collator: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The collator, whose tensors know the lines that made them."""

    def collate(samples: Any) -> Any:
        given = copy.deepcopy(samples)
        with MadeLines():
            made = collator(samples)
        note_shared_labels(made, lambda: collator(given))
        return made

    return collate


def _check_losses(step: TrainingStep) -> None:
    """Raises `SubjectError` for a loss that cannot be computed, is not finite, or differs when it is asked twice."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            first, second = step.base.loss, step.loss_again()
        except UnsupportedCallError as error:
            raise SubjectError(str(error)) from error
    if first != first or abs(first) == float("inf"):
        raise SubjectError(f"expected a finite loss; got {first}")
    if abs(first - second) > FLOAT32_TOLERANCE * abs(first):
        raise SubjectError(f"expected the same loss for the same batch; got {first:.6g} and then {second:.6g}")
