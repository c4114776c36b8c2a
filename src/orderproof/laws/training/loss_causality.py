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
from itertools import zip_longest

import torch
from torch import Tensor

from orderproof.errors import UnsupportedCallError
from orderproof.laws.training.training_batch import TrainingBatch
from orderproof.laws.training.training_law import TermComparison, TokenOfBatch, TrainingLaw
from orderproof.laws.training.training_step import TrainingStep

Change = tuple[int, int, list[int]]  # a row, an output of it, and the tokens of the row that change
OUTPUTS_TRIED = 3
CLOSE = 1e-6  # relative: a term that changes by less does not depend on the tokens


class LossCausality(TrainingLaw):
    """The law of this module."""

    def comparisons(self, step: TrainingStep) -> Iterator[TermComparison]:
        offset, batch = step.offset, step.batch
        ends = batch.real.long().cumsum(1).argmax(1)  # the last token of each row that is no pad
        places = [(s.row, s.index + offset) for s in step.scored_labels]
        control = _moved(step, step.moved.gradient, *step.scored_place)
        places = [(row, output) for row, output in places if 0 <= output < int(ends[row])]
        if not places:
            raise UnsupportedCallError("no label of its batch has a token after the output that scores it")
        tried = 0
        for group in _by_row(places):
            chosen = group[: min(OUTPUTS_TRIED, step.tries) - tried]
            tried += len(chosen)
            if chosen:
                yield from _comparisons(step, chosen, control)


def _by_row(places: list[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """Groups of places of different rows: the first of each row, then the second."""
    rows: dict[int, list[tuple[int, int]]] = {}
    for row, output in places:
        rows.setdefault(row, []).append((row, output))
    return [[each for each in group if each is not None] for group in zip_longest(*rows.values())]


def _comparisons(step: TrainingStep, places: list[tuple[int, int]], control: float) -> Iterator[TermComparison]:
    """The comparisons of outputs in different rows, whose later tokens change at once; if one differs, one by one."""
    changes = [(row, output, _later(step, row, output)) for row, output in places]
    differences = _changed(step, changes)
    for (row, output, later), together in zip(changes, differences, strict=True):
        difference = together
        if len(places) > 1 and max(differences) > CLOSE:
            difference = _changed(step, [(row, output, later)])[0]
        yield _comparison(step, row, output, later, difference, control)


def _later(step: TrainingStep, row: int, output: int) -> list[int]:
    return [k for k in range(output + 1, step.batch.tokens.shape[1]) if bool(step.batch.real[row, k])]


def _comparison(
    step: TrainingStep, row: int, output: int, later: list[int], difference: float, control: float
) -> TermComparison:
    on, changed = "later tokens", later
    if difference > CLOSE and _changed(step, [(row, output, later[:1])])[0] > difference / 10:
        on, changed = f"token {output + 1}, its own label", later[:1]
    calls = (
        TokenOfBatch(step.batch, row, output),
        TokenOfBatch(_with_others(step, [(row, output, changed)]), row, output),
    )
    return TermComparison(
        f"the term of output {output} with other tokens after it", difference, control,
        found=f"the term of output {output} in row {row} depends on {on}", calls=calls,
    )  # fmt: skip


def _changed(step: TrainingStep, changes: list[Change]) -> list[float]:
    """How far the direction of the gradient at each output changes with some tokens of its row."""
    other = step.terms(_with_others(step, changes)).gradient
    return [_moved(step, other, row, output) for row, output, _ in changes]


def _moved(step: TrainingStep, other: Tensor, row: int, output: int) -> float:
    """How far the direction of the gradient at an output differs in another call."""
    return _difference(_direction(step.base.gradient, row, output), _direction(other, row, output))


def _with_others(step: TrainingStep, changes: list[Change]) -> TrainingBatch:
    where = torch.zeros_like(step.batch.real)
    for row, _, tokens in changes:
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
