"""Training steps of a Trainer of transformers with a loss of its own: one planted fault each, and correct ones."""

from __future__ import annotations

import tempfile
from typing import Any

from torch import Tensor
from torch.nn import functional as F
from transformers import Trainer, TrainingArguments

from tests.training.loop_steps import left, packed, padded, pair
from tests.training.transformers_steps import blocks, llama

Step = tuple[Any, ...]
Batch = dict[str, Tensor]


class Plain(Trainer):
    """The loss of the model."""

    def compute_loss(self, model: Any, inputs: Any, *_: Any, **__: Any) -> Any:
        return model(**inputs).loss


class NotShifted(Trainer):
    def compute_loss(self, model: Any, inputs: Any, *_: Any, **__: Any) -> Any:
        labels = inputs.pop("labels")
        return F.cross_entropy(model(**inputs).logits.flatten(0, 1), labels.flatten())  # fault


class IgnoresNothing(Trainer):
    def compute_loss(self, model: Any, inputs: Any, *_: Any, **__: Any) -> Any:
        labels = inputs.pop("labels")[:, 1:].clamp(min=0)
        logits = model(**inputs).logits[:, :-1]
        return F.cross_entropy(logits.transpose(1, 2), labels)  # fault


class WithoutPositions(Trainer):
    def compute_loss(self, model: Any, inputs: Any, *_: Any, **__: Any) -> Any:
        return model(input_ids=inputs["input_ids"], labels=inputs["labels"]).loss  # fault


class ByRows(Trainer):
    def compute_loss(self, model: Any, inputs: Any, *_: Any, **__: Any) -> Any:
        logits, labels = model(**inputs).logits[:, :-1], inputs["labels"][:, 1:]
        terms = F.cross_entropy(logits.transpose(1, 2), labels, reduction="none").sum(1)
        return (terms / (labels != -100).sum(1)).mean()  # fault


def step(kind: type[Trainer], batch: Batch) -> Step:
    """The loss of a Trainer, as its training step calls it."""
    folder = tempfile.mkdtemp()
    arguments = TrainingArguments(output_dir=folder, report_to=[], use_cpu=True)
    trainer = kind(model=llama(), args=arguments)
    return trainer.model, batch, lambda model, batch: trainer.compute_loss(model, dict(batch))


# ---------------------------------------------------------------- correct


def good_padded() -> Step:
    return step(Plain, padded())


def good_packed() -> Step:
    return step(Plain, packed())


def good_left() -> Step:
    return step(Plain, left())


# ---------------------------------------------------------------- faults


def later_token() -> Step:
    """OP701: the mask of the batch is off by one."""
    return step(Plain, blocks(1))


def shifted_twice() -> Step:
    """OP702: the batch has shifted labels."""
    return step(Plain, dict(zip(("input_ids", "labels"), pair(), strict=True)))


def not_shifted() -> Step:
    """OP702: the Trainer does not shift."""
    return step(NotShifted, padded())


def ignored_labels_counted() -> Step:
    """OP703: labels of -100 become the label 0."""
    return step(IgnoresNothing, padded())


def boundaries_counted() -> Step:
    """OP703: the first token of each packed document has a label."""
    batch = packed()
    batch["labels"] = batch["input_ids"]  # fault
    return step(Plain, batch)


def positions_dropped() -> Step:
    """OP704: the Trainer does not pass position ids on."""
    return step(WithoutPositions, packed())


def mask_dropped() -> Step:
    """OP705: the Trainer does not pass the mask on."""
    return step(WithoutPositions, left())


def rows_averaged() -> Step:
    """OP706: a mean over rows of means over labels."""
    return step(ByRows, padded())
