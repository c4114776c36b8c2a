"""How well a model answers: counts, never averages of averages.

    accuracy       scored places whose answer is right / scored places
    exact_match    rows in which every scored place is right / rows
    nats           sum over the scored places of -log p(target) / scored places

An answer is the token with the largest score, among the question's answers where it names them; the first of several
that are as large. In `exact_match` every place is read with the right tokens before it. That is greedy decoding: if
every answer is right, greedy decoding would have produced exactly these tokens, and the other way round.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from orderproof.blocks import Transformer
from orderproof.lab.question import UNSCORED, Batch, Question

PLACES = 65_536  # tokens in one forward, at most


@dataclass(frozen=True, kw_only=True)
class Score:
    """One test set, answered."""

    value: float
    right: int | None
    """What was right of what was scored; None for nats."""
    scored: int


@torch.no_grad()
def score(model: Transformer, question: Question, batch: Batch) -> Score:
    """Ask the model every row."""
    right = scored = 0
    nats: list[Tensor] = []
    rows = max(1, PLACES // batch.tokens.shape[1])
    for tokens, targets in zip(torch.split(batch.tokens, rows), torch.split(batch.targets, rows), strict=True):
        scores = model(tokens)
        asked = targets != UNSCORED
        if question.measure == "nats":
            nats.append(functional.cross_entropy(scores[asked].double(), targets[asked], reduction="sum"))
            scored += int(asked.sum())
            continue
        wrong = asked & (answers(scores, question) != targets)
        if question.measure == "exact_match":
            right += int((~wrong.any(1)).sum())
            scored += len(tokens)
        else:
            right += int(asked.sum() - wrong.sum())
            scored += int(asked.sum())
    if question.measure == "nats":
        return Score(value=math.fsum(float(x) for x in nats) / scored, right=None, scored=scored)
    return Score(value=right / scored, right=right, scored=scored)


def answers(scores: Tensor, question: Question) -> Tensor:
    """The token chosen at each place [..., token, vocabulary] -> [..., token]."""
    if question.answers is None:
        return scores.argmax(-1)
    among = torch.tensor(question.answers)
    return among[scores[..., among].argmax(-1)]
