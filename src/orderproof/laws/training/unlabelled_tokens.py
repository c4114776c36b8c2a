"""OP703 unlabelled_tokens: pads, labels of -100 and the first tokens of packed documents add no term.

    d/dz_t loss = 0   for the output t before a pad, after a pad, before a label of -100, before a document

A loss that counts pads is mostly one of pads in a batch of short texts; one that counts the first token of a document
trains the end of one text to predict the beginning of another. Pads are known by the attention mask, documents by
position ids that restart, by document ids, or by an attention mask with numbers of documents.
Source: elementary; broken by labels that are copied from padded tokens, by pads that have another label than the loss
leaves out, and by packing that keeps the first label of each document.
"""

from __future__ import annotations

from collections.abc import Iterator

from orderproof.laws.training.training_batch import IGNORED
from orderproof.laws.training.training_law import Blame, TermComparison, TokenOfBatch, TrainingLaw
from orderproof.laws.training.training_step import TrainingStep

IGNORED_LABELS = "labels of -100"
REMEDIES = {
    "pads": "Set the labels of pads to -100, and that of the first token after pads, where the attention mask is 0.",
    "first tokens of documents": "Set the label of the first token of each packed document to -100.",
    IGNORED_LABELS: "Leave labels of -100 out of the loss: ignore_index=-100.",
}


class UnlabelledTokens(TrainingLaw):
    """The law of this module."""

    def inapplicable_reason(self, step: TrainingStep) -> str | None:
        if any(bool(where.any()) for where in step.batch.excluded().values()):
            return None
        return "the batch has no pads, no labels of -100 and no packed documents"

    def comparisons(self, step: TrainingStep) -> Iterator[TermComparison]:
        sizes, offset = step.base.gradient.abs().amax(-1), step.offset
        largest = float(sizes.max())
        rows, indices = step.counted(step.batch).nonzero(as_tuple=True)
        control = float(sizes[rows, indices + offset].min()) / largest
        for kind, where in step.batch.excluded().items():
            places = [(row, index + offset) for row, index in where.nonzero().tolist()]
            places = [(row, output) for row, output in places if 0 <= output < sizes.shape[1]]
            if places:
                row, output = max(places, key=lambda place: float(sizes[place]))
                other = step.batch.with_other_label(row, output - offset)
                cause = IGNORED_LABELS if int(step.batch.labels[row, output - offset]) == IGNORED else kind
                terms = sum(float(sizes[place]) > largest * 1e-6 for place in places)
                yield TermComparison(
                    f"the terms of {kind}", float(sizes[row, output]) / largest, control,
                    found=f"{terms} of {len(places)} {kind} are counted, as at output {output} of row {row}",
                    remedy=REMEDIES[cause], blame=Blame.TERMS if cause == IGNORED_LABELS else Blame.READ_LABELS,
                    made=None if cause == IGNORED_LABELS else step.batch.labels,
                    calls=(TokenOfBatch(step.batch, row, output), TokenOfBatch(other, row, output)),
                )  # fmt: skip


LAW = UnlabelledTokens(
    code="OP703",
    name="unlabelled_tokens",
    statement="Pads, labels of -100 and the first tokens of packed documents add no term to the loss.",
    trait="has a loss without terms of pads, excluded labels and first tokens of documents",
    expectation={"training step": "holds"},
    remedy="Set the labels of tokens that must not be predicted to -100.",
)
