"""OP702 label_alignment: each label is counted once, at the output before its token.

    d/dz_t loss   changes with the label of token i   if and only if   t = i - 1

where z_t are the logits of output t. Labels that are equal to the tokens must be shifted by the loss. Labels that the
collator has shifted must not be shifted again: the loss then trains the model to skip a token, and falls nearly as far.
One label at a time is replaced. The shift of the labels is read from the batch.
Source: elementary; broken by a shift in the collator and in the loss, and by none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from orderproof.laws.training.scored_labels import ScoredLabel
from orderproof.laws.training.training_law import Blame, TermComparison, TokenOfBatch, TrainingLaw
from orderproof.laws.training.training_step import TrainingStep

TWICE = "Shift labels once: pass the labels as they are, equal to the tokens, or use a loss that does not shift them."
NOT = "Shift labels once: compare the logits of all tokens but the last with the labels of all tokens but the first."

UNREAD = "Compute the loss from the labels of the batch: they leave out pads and prompts, and the tokens do not."


class LabelAlignment(TrainingLaw):
    """The law of this module."""

    def comparisons(self, step: TrainingStep) -> Iterator[TermComparison]:
        unread = not any(scored.outputs for scored in step.scored_labels)
        for scored in step.scored_labels:
            found = _comparison(step, scored)
            yield (
                found
                if not unread
                else replace(
                    found, found="the loss does not depend on the labels", remedy=UNREAD, blame=Blame.REDUCTION
                )
            )


def _comparison(step: TrainingStep, scored: ScoredLabel) -> TermComparison:
    row, token, outputs = scored.row, scored.index + step.batch.shift, scored.outputs
    difference, remedy = 0.0 if outputs == (token - 1,) else 1.0, ""
    if len(outputs) == 1:
        found = f"is scored at output {outputs[0]}, expected output {token - 1}"
        difference += abs(outputs[0] - token + 1)  # what the others follow from
    else:
        found = f"is scored at outputs {', '.join(map(str, outputs))}" if outputs else "is not counted"
    if len(outputs) == 1 and difference:
        remedy = TWICE if outputs[0] < token - 1 else NOT
    other = step.batch.with_other_label(row, scored.index)
    return TermComparison(
        f"the label of token {token} of row {row}", difference, scored.change,
        found=f"the label of token {token} in row {row} {found}", remedy=remedy,
        blame=Blame.TERMS if remedy == NOT else Blame.READ_LABELS,
        made=step.batch.labels if remedy == TWICE and step.batch.shift else None,
        calls=(TokenOfBatch(step.batch, row, scored.index), TokenOfBatch(other, row, scored.index)),
    )  # fmt: skip


LAW = LabelAlignment(
    code="OP702",
    name="label_alignment",
    statement="Each label is counted once, at the output before its token.",
    trait="has a loss that counts each label once, at the output before its token",
    expectation={"training step": "holds"},
    remedy="Count each label in one term, that of the output before its token.",
)
