"""OP705 padded_loss: what pads hold and how many there are changes no term.

    z_t(pads, x) = z_t(other pads, x) = z_t(x)   for every token t of x

where z_t are the logits, so that labels give the same terms. The pads of the batch get other tokens, and each of some
rows is cut to its own tokens. Pads stay on the side where the batch has them.
Source: elementary; broken by an attention mask that the model never gets, and by positions that count pads on the left.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from orderproof.laws.mixing_kinds import ATTENTION, POSITIONS
from orderproof.laws.training.training_law import Blame, TermComparison, TokenOfBatch, TrainingLaw
from orderproof.laws.training.training_step import UNREAD, TrainingStep
from orderproof.recording.execution import relative_difference

ROWS_TRIED = 3
MASK_UNREAD = "Give the model the attention mask of the batch: no output changes with it."


class PaddedLoss(TrainingLaw):
    """The law of this module."""

    def inapplicable_reason(self, step: TrainingStep) -> str | None:
        return "the batch has no pads: no attention mask with 0" if bool(step.batch.real.all()) else None

    def comparisons(self, step: TrainingStep) -> Iterator[TermComparison]:
        batch, logits = step.batch, step.base.logits
        length = logits.shape[1]
        real, ends = batch.real[:, :length], batch.real.long().cumsum(1).argmax(1)
        first = batch.real.long().argmax(1)
        control = _difference(logits, step.moved.logits, real)
        refilled = batch.with_other_tokens(~batch.real)
        changed = step.logits(refilled)
        place = _most_changed(logits, changed, real)
        yield _comparison(
            step, "other tokens at pads", _difference(logits, changed, real), control,
            (TokenOfBatch(batch, *place), TokenOfBatch(refilled, *place)),
        )  # fmt: skip
        rows = (~batch.real).any(1).nonzero().flatten().tolist()
        for row in [row for row in rows if bool(batch.real[row].any())][: min(ROWS_TRIED, step.tries)]:
            start, end = int(first[row]), int(ends[row]) + 1
            part, alone = step.alone(row, start, end)
            padded, kept = logits[row, start : start + len(alone)], real[row, start : start + len(alone)]
            difference = relative_difference(alone[kept[: len(alone)]], padded[kept])
            last = min(end - start, len(alone)) - 1
            calls = TokenOfBatch(part, 0, last), TokenOfBatch(batch, row, start + last)
            yield _comparison(step, f"row {row} without its pads", difference, control, calls)


def _most_changed(logits: Tensor, changed: Tensor, where: Tensor) -> tuple[int, int]:
    """The row and the token, among some, whose logits differ most."""
    sizes = torch.where(where, (logits - changed).abs().amax(-1), -1.0)
    return divmod(int(sizes.argmax()), sizes.shape[1])


def _comparison(
    step: TrainingStep, description: str, difference: float, control: float, calls: tuple[TokenOfBatch, TokenOfBatch]
) -> TermComparison:
    unread = difference > UNREAD and step.ignores("mask")
    return TermComparison(
        description, difference, control, found=f"the logits of tokens that are no pads differ: {description}",
        remedy=MASK_UNREAD if unread else "", calls=calls, blame=Blame.MODEL_CALL if unread else Blame.OPERATOR,
    )  # fmt: skip


def _difference(expected: Tensor, actual: Tensor, where: Tensor) -> float:
    return relative_difference(expected[where], actual[where])


LAW = PaddedLoss(
    code="OP705",
    name="padded_loss",
    statement="Content and number of pads change no term of the loss.",
    trait="has a loss that pads do not change",
    expectation={"training step": "holds"},
    remedies={
        ATTENTION: "Hide pads by the attention mask.",
        POSITIONS: "Count positions from the first token of each row that is no pad: attention_mask.cumsum(-1) - 1.",
    },
    remedy="Hide pads by the attention mask, and count positions from the first token of each row.",
)
