"""OP701 loss_causality: the term of an output depends on the tokens up to it, and on its label.

    term_t(x_0 ... x_t, y)   does not change with   x_{t+1} ... x_{T-1}

where y is the label that output t scores. A model that sees token t + 1 copies its label: the loss falls, and
generation fails. The later tokens of the row are replaced and the labels kept. The gradient at the logits of output t
is compared without the entry of the label and up to a factor, so that counts of tokens do not matter.
Source: elementary; broken by masks that are off by one, and by normalisation over the tokens of a row.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from orderproof.errors import UnsupportedCallError
from orderproof.laws.training.training_law import TermComparison, TokenOfBatch, TrainingLaw
from orderproof.laws.training.training_step import TrainingStep

OUTPUTS_TRIED = 4


class LossCausality(TrainingLaw):
    """The law of this module."""

    def comparisons(self, step: TrainingStep) -> Iterator[TermComparison]:
        offset, batch = step.offset, step.batch
        ends = batch.real.long().cumsum(1).argmax(1)  # the last token of each row that is no pad
        places = [(s.row, s.index + offset) for s in step.scored_labels]
        places = [(row, output) for row, output in places if 0 <= output < int(ends[row])][:OUTPUTS_TRIED]
        if not places:
            raise UnsupportedCallError("no label of its batch has a token after the output that scores it")
        for row, output in places:
            yield _comparison(step, row, output)


def _comparison(step: TrainingStep, row: int, output: int) -> TermComparison:
    where = torch.zeros_like(step.batch.real)
    where[row, output + 1 :] = step.batch.real[row, output + 1 :]
    own = torch.zeros_like(where)
    own[row, output] = True
    following = torch.zeros_like(where)
    following[row, output + 1] = True
    expected = _direction(step.base.gradient, row, output)
    changed = {
        name: _difference(expected, _direction(_gradient(step, tokens), row, output))
        for name, tokens in (("later", where), ("next", following), ("own", own))
    }
    other = step.batch.with_other_tokens(following if changed["next"] > changed["later"] / 10 else where)
    on = f"token {output + 1}, its own label" if changed["next"] > changed["later"] / 10 else "later tokens"
    return TermComparison(
        f"the term of output {output} with other tokens after it", changed["later"], changed["own"],
        found=f"the term of output {output} in row {row} depends on {on}",
        calls=(TokenOfBatch(step.batch, row, output), TokenOfBatch(other, row, output)),
    )  # fmt: skip


def _gradient(step: TrainingStep, where: Tensor) -> Tensor:
    return step.terms(step.batch.with_other_tokens(where)).gradient


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
    remedy="Hide the tokens after the query in the mask that the model gets in training.",
)
