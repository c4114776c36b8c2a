"""OP706 accumulated_loss: a label counts the same, whatever its row and its micro-batch hold.

    loss = sum over rows r and labels i of  w * term_{r,i}     with one weight w

A mean over the labels of all rows has this form. A mean over rows of means over labels has w_r = 1 / (rows * labels of
r), so that labels of short rows count more; the same happens to micro-batches that are averaged. The weights are read
from the gradient at the logits. If all rows have the same number of labels, some labels of the first are left out.
Source: transformers, "Fixing Gradient Accumulation", 2024; broken by losses that are divided by the number of
micro-batches, and by a mean over rows.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from orderproof.errors import UnsupportedCallError
from orderproof.laws.training.token_weights import follows_means, spread, token_weights
from orderproof.laws.training.training_batch import IGNORED, TrainingBatch
from orderproof.laws.training.training_law import Blame, TermComparison, TrainingLaw
from orderproof.laws.training.training_step import TrainingStep

EQUAL = 1e-3  # relative: weights that differ by less are equal


class AccumulatedLoss(TrainingLaw):
    """The law of this module."""

    def inapplicable_reason(self, step: TrainingStep) -> str | None:
        if step.weighs_labels:
            return "the loss weighs labels by preferences or rewards"
        return "the batch has one row" if len(step.batch.tokens) < 2 else None

    def comparisons(self, step: TrainingStep) -> Iterator[TermComparison]:
        batch = _uneven(step.batch)
        counted = step.counted(batch)
        weights = token_weights(step.terms(batch), batch.labels, counted, step.offset)
        if batch is not step.batch and float(_left_out(step, batch)) > 0:
            raise UnsupportedCallError(
                "all rows have as many labels, and the loss leaves no label out: use another batch"
            )
        rows = counted.nonzero()[:, 0]
        apart = spread(weights)
        size = _micro_batch(weights, rows, len(batch.tokens)) if apart > EQUAL else None
        if apart > EQUAL and size is None:
            raise UnsupportedCallError("its labels have weights of their own")
        counts = torch.bincount(rows).double()
        parts = "rows" if size == 1 else f"micro-batches of {size} rows"
        yield TermComparison(
            "the weights of the labels of all rows", 0.0 if size is None else apart, spread(1 / counts[counts > 0]),
            found=f"the loss is a mean over {parts}, in which labels count the more, the fewer there are",
            blame=Blame.REDUCTION,
        )  # fmt: skip


def _uneven(batch: TrainingBatch) -> TrainingBatch:
    """The batch, with fewer labels in its first row if all rows have as many."""
    counted = batch.included()
    counts = counted.sum(1)
    if bool((counts != counts[0]).any()) or int(counts[0]) < 2:
        return batch
    places = counted[0].nonzero().flatten()[: int(counts[0]) // 2]
    labels = batch.labels.clone()
    labels[0, places] = IGNORED
    return batch.replaced("labels", labels)


def _left_out(step: TrainingStep, batch: TrainingBatch) -> Tensor:
    """The largest gradient at the outputs of the labels that were left out."""
    places = (batch.labels[0] != step.batch.labels[0]).nonzero().flatten() + step.offset
    return step.terms(batch).gradient[0, places].abs().max()


def _micro_batch(weights: Tensor, rows: Tensor, count: int) -> int | None:
    """The size [rows] of the micro-batches of which a loss is the mean, if the weights say so."""
    sizes = (size for size in range(1, count) if count % size == 0)
    return next((size for size in sizes if follows_means(weights, rows // size, EQUAL)), None)


LAW = AccumulatedLoss(
    code="OP706",
    name="accumulated_loss",
    statement="A label counts the same in the loss, whatever its row and its micro-batch hold.",
    trait="has a loss in which all labels count the same",
    expectation={"training step": "holds"},
    remedy="Divide the sum of all terms by the number of labels of the whole batch (num_items_in_batch), once.",
)
