"""Scoring a model on a test batch, by counts rather than means of means.

    accuracy       scored positions with the right answer / scored positions
    exact_match    rows in which every scored position is right / rows
    nats           sum over the scored positions of -log p(target) / scored positions

An answer is the token with the largest score, among the question's answer tokens if it names them; ties go to the
first. In `exact_match` every position sees the correct previous tokens. That is equivalent to greedy decoding: all
answers are right if and only if greedy decoding produces exactly these tokens.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from orderproof.blocks import Transformer
from orderproof.lab.question import UNSCORED, Batch, Question

MAX_TOKENS_PER_FORWARD = 65_536


@dataclass(frozen=True, kw_only=True)
class Score:
    """The score on one test batch."""

    value: float
    right: int | None
    """Right answers among those scored; None for nats."""
    scored: int


@torch.no_grad()
def evaluate(model: Transformer, question: Question, batch: Batch) -> Score:
    """The score of a model on all rows of a batch."""
    right = scored = 0
    nats: list[Tensor] = []
    rows = max(1, MAX_TOKENS_PER_FORWARD // batch.tokens.shape[1])
    for start in range(0, len(batch.tokens), rows):
        tokens, targets = batch.tokens[start : start + rows], batch.targets[start : start + rows]
        scores = model(tokens, None if batch.positions is None else batch.positions[start : start + rows])
        is_scored = targets != UNSCORED
        if question.measure == "nats":
            nats.append(functional.cross_entropy(scores[is_scored].double(), targets[is_scored], reduction="sum"))
            scored += int(is_scored.sum())
            continue
        wrong = is_scored & (predictions(scores, question) != targets)
        if question.measure == "exact_match":
            right += int((~wrong.any(1)).sum())
            scored += len(tokens)
        else:
            right += int(is_scored.sum() - wrong.sum())
            scored += int(is_scored.sum())
    if question.measure == "nats":
        return Score(value=math.fsum(float(x) for x in nats) / scored, right=None, scored=scored)
    return Score(value=right / scored, right=right, scored=scored)


def predictions(scores: Tensor, question: Question) -> Tensor:
    """The predicted token at each position, [..., token, vocabulary] -> [..., token]."""
    if question.answer_tokens is None:
        return scores.argmax(-1)
    allowed = torch.tensor(question.answer_tokens)
    return allowed[scores[..., allowed].argmax(-1)]
