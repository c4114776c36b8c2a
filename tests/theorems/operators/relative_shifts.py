"""Scores of relative positions that are aligned by a view, as in Transformer-XL, Conformer and Music Transformer."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from tests.diagnosis.mutants.engine import M, mutants_of
from tests.theorems.programs import WIDTH, Case, Program

BATCH = frozenset({"batch"})
BOTH = frozenset({"causal", "batch"})


def _shifted(m: Program, x: Tensor, *, masked: bool = True, keys: bool = False) -> Tensor:
    """The scores of each distance, padded on the left, read as rows that are longer by one."""
    tokens = x.shape[1]
    distances = m.second(x) if keys else m.table(torch.arange(tokens).flip(0))
    scores = m.first(x) @ distances.transpose(-1, -2)
    scores = pad(scores, (1, 0)).view(x.shape[0], tokens + 1, tokens)[:, 1:]
    if masked:
        later = torch.ones(tokens, tokens, dtype=torch.bool).triu(1)
        scores = scores.masked_fill(later, float("-inf"))
    return scores.softmax(-1) @ m.third(x)


def _shifted_on_both_sides(m: Program, x: Tensor, *, masked: bool = True) -> Tensor:
    """Distances to later tokens too: two tokens of memory for each key."""
    tokens = x.shape[1]
    distances = torch.arange(2 * tokens - 1)[:, None] * torch.arange(WIDTH) * 0.1
    scores = pad(m.first(x) @ distances.sin().T, (1, 0))
    scores = scores.view(x.shape[0], 2 * tokens, tokens)[:, 1:].reshape(x.shape[0], tokens, 2 * tokens - 1)
    scores = scores[:, :, :tokens]
    if masked:
        scores = scores.masked_fill(torch.ones(tokens, tokens, dtype=torch.bool).triu(1), float("-inf"))
    return scores.softmax(-1) @ m.third(x)


def _rows_of_the_next(m: Program, x: Tensor) -> Tensor:
    """A row has the scores of the next one, from the second key after its own on."""
    tokens = x.shape[1]
    scores = m.first(x) @ m.table(torch.arange(tokens)).T
    return pad(scores, (1, 0)).view(x.shape[0], tokens + 1, tokens)[:, 1:].tril(2).sum(-1, keepdim=True) + x


def _rows_of_its_own(m: Program, x: Tensor) -> Tensor:
    """Up to its own key a row has its own scores."""
    tokens = x.shape[1]
    scores = m.first(x) @ m.table(torch.arange(tokens)).T
    return pad(scores, (1, 0)).view(x.shape[0], tokens + 1, tokens)[:, 1:].tril().sum(-1, keepdim=True) + x


PROGRAMS = [
    Case("shift of distances", _shifted, BOTH),
    Case("shift of distances without a mask", lambda m, x: _shifted(m, x, masked=False), BATCH),
    Case("shift of scores of keys", lambda m, x: _shifted(m, x, keys=True), BATCH),
    Case("shift of distances on both sides", _shifted_on_both_sides, BOTH),
    Case("shift on both sides without a mask", lambda m, x: _shifted_on_both_sides(m, x, masked=False), BATCH),
    Case("a shift that reads the next row", _rows_of_the_next, BATCH),
    Case("a shift up to its own key", _rows_of_its_own, BOTH),
]
MUTANTS = mutants_of(
    "theorems.operators.movement.skewed",
    M(
        "quotient_that_is_one_more",
        "as_term(q)",
        "as_term(q + 1)",
        program="a shift up to its own key",
    ),
    M(
        "place_without_its_row",
        "index(last) + index(first) * rest",
        "index(last)",
        program="a shift up to its own key",
    ),
)
