"""OP701 loss_causality: the term of an output depends on the tokens up to it, and on its label.

    term_t(x_0 ... x_t, y)   does not change with   x_{t+1} ... x_{T-1}

where y is the label that output t scores. A model that sees token t + 1 copies its label: the loss falls, and
generation fails. The later tokens of the row are replaced and the labels kept. The gradient at the logits of output t
is compared without the entry of the label and up to a factor, so that counts of tokens do not matter.
Where the loss is a cross-entropy of torch, the prover is asked for the same statement, for every label and length.
Source: elementary; broken by masks that are off by one, and by normalisation over the tokens of a row.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from orderproof.errors import UnsupportedCallError
from orderproof.laws.training.training_batch import TrainingBatch
from orderproof.laws.training.training_law import TermComparison, TokenOfBatch, TrainingLaw
from orderproof.laws.training.training_step import TrainingStep

OUTPUTS_TRIED = 4
CLOSE = 1e-6  # relative: a term that changes by less does not depend on the tokens


class LossCausality(TrainingLaw):
    """The law of this module."""

    def comparisons(self, step: TrainingStep) -> Iterator[TermComparison]:
        offset, batch = step.offset, step.batch
        ends = batch.real.long().cumsum(1).argmax(1)  # the last token of each row that is no pad
        places = [(s.row, s.index + offset) for s in step.scored_labels]
        places = [(row, output) for row, output in places if 0 <= output < int(ends[row])][:OUTPUTS_TRIED]
        if not places:
            raise UnsupportedCallError("no label of its batch has a token after the output that scores it")
        control = _changed(step, *places[0], [places[0][1]])
        for row, output in places[: step.tries]:
            yield _comparison(step, row, output, control)


def _comparison(step: TrainingStep, row: int, output: int, control: float) -> TermComparison:
    later = [k for k in range(output + 1, step.batch.tokens.shape[1]) if bool(step.batch.real[row, k])]
    difference, changed = _changed(step, row, output, later), later
    on = "later tokens"
    if difference > CLOSE and _changed(step, row, output, later[:1]) > difference / 10:
        on, changed = f"token {output + 1}, its own label", later[:1]
    calls = TokenOfBatch(step.batch, row, output), TokenOfBatch(_with_others(step, row, changed), row, output)
    return TermComparison(
        f"the term of output {output} with other tokens after it", difference, control,
        found=f"the term of output {output} in row {row} depends on {on}", calls=calls,
    )  # fmt: skip


def _changed(step: TrainingStep, row: int, output: int, tokens: list[int]) -> float:
    """How far the direction of the gradient at an output changes with some tokens of its row."""
    other = step.terms(_with_others(step, row, tokens)).gradient
    return _difference(_direction(step.base.gradient, row, output), _direction(other, row, output))


def _with_others(step: TrainingStep, row: int, tokens: list[int]) -> TrainingBatch:
    where = torch.zeros_like(step.batch.real)
    where[row, tokens] = True
    return step.batch.with_other_tokens(where)


def _direction(gradient: Tensor, row: int, output: int) -> Tensor:
    """The gradient at an output without the entry of its label, divided by its norm [vocabulary]."""
    vector: Tensor = gradient[row, output].clone()
    vector[vector.abs().argmax()] = 0
    direction: Tensor = vector / torch.linalg.vector_norm(vector).clamp_min(torch.finfo(vector.dtype).tiny)
    return direction


def _difference(expected: Tensor, actual: Tensor) -> float:
    return float((expected - actual).abs().max() / expected.abs().max())


LAW = LossCausality(
    code="OP701",
    name="loss_causality",
    statement="The term of an output depends on the tokens up to it and on its label only.",
    trait="has a loss whose terms see no later token",
    expectation={"training step": "holds"},
    proved_as="causal",
    remedy="Hide the tokens after the query in the mask that the model gets in training.",
)
