"""OP704 packed_loss: each document of a packed row has the terms that it has alone.

    z_t(... other documents ... x ...) = z_t(x)   for every token t of the document x

where z_t are the logits. Labels then give the same terms. Position ids that restart, document ids or a mask say where
documents begin; they help only if they reach the attention. With equal weights for all labels of the row, loss and
gradient are those of the documents alone, weighted by their labels; the weights are compared too.
Source: Krell et al. 2021, "Efficient Sequence Packing without Cross-contamination", arXiv:2107.02027, section 3.2;
broken by position ids that a collator drops, and by a mean of the losses of documents.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from orderproof.errors import UnsupportedCallError
from orderproof.laws.training.token_weights import follows_means, spread, token_weights
from orderproof.laws.training.training_law import Blame, TermComparison, TokenOfBatch, TrainingLaw
from orderproof.laws.training.training_step import UNREAD, TrainingStep
from orderproof.recording.execution import relative_difference

DOCUMENTS_TRIED = 3
EQUAL = 1e-3  # relative: weights that differ by less are equal
POSITIONS_UNREAD = "Give the model the position ids of the batch: no output changes with them."
AVERAGED = "Divide the sum of all terms by the number of labels, and not the loss of each document by its own."


class PackedLoss(TrainingLaw):
    """The law of this module."""

    def inapplicable_reason(self, step: TrainingStep) -> str | None:
        packed = bool((step.batch.documents > 0).any())
        return None if packed else "the batch has no packed documents: no position ids that restart, no document ids"

    def comparisons(self, step: TrainingStep) -> Iterator[TermComparison]:
        row = int((step.batch.documents > 0).any(1).nonzero()[0])
        documents = step.batch.documents[row]
        count, control = int(documents.max()) + 1, 0.0
        for number in range(count - 1, -1, -1)[: min(DOCUMENTS_TRIED, step.tries)]:
            places = (documents == number).nonzero().flatten()
            start, end = int(places[0]), int(places[-1]) + 1
            control = control or _control(step, row, start, end)
            yield _alone(step, row, start, end, control)
        try:
            yield _weights(step)
        except UnsupportedCallError:  # other terms than cross-entropies have no weights
            return


def _control(step: TrainingStep, row: int, start: int, end: int) -> float:
    """How far the logits of a document change with its own tokens."""
    where = torch.zeros_like(step.batch.real)
    where[row, start:end] = True
    changed = step.logits(step.batch.with_other_tokens(where))
    return relative_difference(step.base.logits[row, start:end], changed[row, start:end])


def _alone(step: TrainingStep, row: int, start: int, end: int, control: float) -> TermComparison:
    part, alone = step.alone(row, start, end)
    packed = step.base.logits[row, start : start + len(alone)]
    difference = relative_difference(alone, packed)
    remedy = POSITIONS_UNREAD if difference > UNREAD and step.ignores("positions") else ""
    return TermComparison(
        f"tokens {start} to {end - 1} of row {row}, packed and alone", difference, control,
        found=f"the logits of tokens {start} to {end - 1} in row {row} depend on the other documents", remedy=remedy,
        calls=(TokenOfBatch(part, 0, len(alone) - 1), TokenOfBatch(step.batch, row, start + len(alone) - 1)),
        blame=Blame.MODEL_CALL if remedy else Blame.OPERATOR,
    )  # fmt: skip


def _weights(step: TrainingStep) -> TermComparison:
    counted = step.counted(step.batch)
    weights = token_weights(step.base, step.batch.labels, counted, step.offset)
    groups = _groups(step, counted)
    apart = spread(weights)
    if apart > EQUAL and not follows_means(weights, groups, EQUAL):
        raise UnsupportedCallError("its terms have weights of their own")
    return TermComparison(
        "the weights of the labels of all documents", 0.0 if apart <= EQUAL else apart, 1.0,
        found="a label counts the less, the more labels its document has", remedy=AVERAGED,
        blame=Blame.REDUCTION,
    )  # fmt: skip


def _groups(step: TrainingStep, counted: Tensor) -> Tensor:
    """The number of the document of each counted label, over all rows."""
    rows, indices = counted.nonzero(as_tuple=True)
    before = step.batch.documents[rows, indices + step.batch.shift - 1]
    number: Tensor = rows * step.batch.tokens.shape[1] + before
    return number


LAW = PackedLoss(
    code="OP704",
    name="packed_loss",
    statement="Each document of a packed batch has the terms that it has alone, and all labels have one weight.",
    trait="has the loss of its documents alone for a packed batch",
    expectation={"training step": "holds"},
    remedy="Keep packed documents apart in the attention: give the model position ids that restart, or a mask of "
    "blocks; in transformers set use_cache=False too, since a call with a cache ignores the restarts.",
)
