"""Programs that subtract the largest score of each row before they take exponentials."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.diagnosis.mutants.engine import M, mutants_of
from tests.theorems.moved_programs import Case as MovedCase
from tests.theorems.programs import Case, Program, lower

CAUSAL, NOT_CAUSAL = frozenset({"causal", "batch"}), frozenset({"batch"})


def _exponentials(m: Program, x: Tensor, visible: Tensor, **least: float) -> tuple[Tensor, Tensor]:
    s = (m.first(x) @ m.second(x).mT).masked_fill(~visible, float("-inf"))
    top = s.amax(-1, keepdim=True)
    top = top.clamp(**least) if least else top
    return (s - top).exp(), top


def one_in_the_denominator(m: Program, x: Tensor, visible: Tensor | None = None) -> Tensor:
    """Softmax with one more score of zero."""
    e, top = _exponentials(m, x, lower(x) if visible is None else visible, min=0.0)
    return e @ m.third(x) / (e.sum(-1, keepdim=True) + (-top).exp())


def gates_as_a_matrix(m: Program, x: Tensor) -> Tensor:
    """Weights of gates, and not of a softmax."""
    e, _ = _exponentials(m, x, lower(x))
    w = (x @ x.mT) * e
    return w @ m.third(x) / w.sum(-1, keepdim=True).abs().clamp(min=1.0)


def hidden_before(m: Program, x: Tensor) -> Tensor:
    """A largest score of all keys: the mask comes after it."""
    s = m.first(x) @ m.second(x).mT
    return (s - s.amax(-1, keepdim=True)).exp().tril() @ m.third(x)


PROGRAMS = [
    Case("one in the denominator", one_in_the_denominator, CAUSAL),
    Case(
        "one in the denominator of both sides",
        lambda m, x: one_in_the_denominator(m, x, torch.ones(x.shape[1], x.shape[1]).triu(0).bool()),
        NOT_CAUSAL,
    ),
    Case("gates as a matrix", gates_as_a_matrix, CAUSAL),
    Case("largest of all scores, then the mask", hidden_before, NOT_CAUSAL),
]
MOVED_PROGRAMS = [
    MovedCase("one in the denominator of all", lambda m, x, p: one_in_the_denominator(m, x, p[:, None] == p[:, None])),
]
MUTANTS = mutants_of(
    "theorems.operators.reduction.reduction",
    M("largest_reads_hidden_scores", '("logsumexp", "amax")', '("logsumexp",)', program="gates as a matrix"),
)
