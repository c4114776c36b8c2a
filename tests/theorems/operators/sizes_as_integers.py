"""Functions of torch that are called with an open size where torch takes an integer."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.diagnosis.mutants.engine import M, mutants_of
from tests.theorems.programs import Case, Program, index, lower

CAUSAL, NOT_CAUSAL = frozenset({"causal", "batch"}), frozenset({"batch"})


def _toeplitz(m: Program, x: Tensor, *, shift: int = 0) -> Tensor:
    """Scores that a window of one row of numbers gives each query; those of later tokens are -inf."""
    n = x.shape[1]
    row = F.pad(m.table.weight[:n, 0].flip(0), (0, n), value=float("-inf"))
    bias = row.unfold(0, n, 1)[: n - shift].flip(0)
    bias = F.pad(bias, (0, 0, 0, shift))
    return (m.first(x) @ m.second(x).mT + bias).softmax(-1) @ m.third(x)


def _windows(x: Tensor, *, dim: int, step: int) -> Tensor:
    """Windows as long as the tokens of tokens that come after as many zeros."""
    padded = F.pad(x, (0, 0, x.shape[1], 0)) if dim == 1 else F.pad(x.mT, (x.shape[1], 0))
    windows = padded.unfold(dim, size=x.shape[1], step=step)
    return windows[:, 1:].sum(-1) if dim == 1 else windows[:, :, 1:].sum(-1).mT


def _rows_of_numbers(m: Program, x: Tensor, at: Tensor) -> Tensor:
    """The tokens at some places, by a one-hot encoding."""
    return F.one_hot(at, num_classes=x.shape[1]).to(x.dtype) @ m.first(x)


def _one_key(m: Program, x: Tensor, chosen: Tensor) -> Tensor:
    """The key that is chosen for each query."""
    return x + F.one_hot(chosen, x.shape[1]).to(x.dtype) @ m.third(x)


def _scores(m: Program, x: Tensor, fill: float = float("-inf")) -> Tensor:
    return (m.first(x) @ m.second(x).mT).masked_fill(~lower(x), fill)


def _kept_place(m: Program, x: Tensor, *, before: int = 0) -> Tensor:
    """The place of the largest score, compared with those of the keys, or with the ones before."""
    chosen = _scores(m, x).argmax(-1, keepdim=True) == torch.arange(x.shape[1]) - before
    return x + chosen.to(x.dtype) @ m.third(x)


def _only_earlier(m: Program, x: Tensor) -> Tensor:
    """The first query sees no key: of its scores, all of which are hidden, one is the largest."""
    i, j = index(x)
    hidden = (i <= j).to(x.dtype) * -1e9
    return _one_key(m, x, (100.0 * m.first(x) @ m.second(x).mT + hidden).argmax(-1))


PROGRAMS = [
    Case("one-hot of the largest visible score", lambda m, x: _one_key(m, x, _scores(m, x).argmax(-1)), CAUSAL),
    Case("one-hot of the smallest score", lambda m, x: _one_key(m, x, _scores(m, x, -1e9).argmin(-1)), NOT_CAUSAL),
    Case("one-hot of the largest of all scores", lambda m, x: _one_key(m, x, (x @ x.mT).argmax(-1)), NOT_CAUSAL),
    Case("place of the largest score", _kept_place, CAUSAL),
    Case("place after that of the largest score", lambda m, x: _kept_place(m, x, before=1), NOT_CAUSAL),
    Case("bias of windows of a row", _toeplitz, CAUSAL),
    Case("bias of windows of the row before", lambda m, x: _toeplitz(m, x, shift=1), NOT_CAUSAL, least=3),
    Case("windows of tokens before", lambda m, x: _windows(x, dim=1, step=1), CAUSAL),
    Case("windows of the last dimension", lambda m, x: _windows(x, dim=-1, step=1), CAUSAL),
    Case("one-hot places before", lambda m, x: _rows_of_numbers(m, x, index(x)[1][0] // 2), CAUSAL),
    Case("one-hot places from the end", lambda m, x: _rows_of_numbers(m, x, index(x)[1][0].flip(0)), NOT_CAUSAL),
    Case("one-hot of the largest score before", _only_earlier, NOT_CAUSAL),
    Case("one-hot places of a mask", lambda m, x: _rows_of_numbers(m, x, lower(x).sum(1) - 1), CAUSAL),
]
MUTANTS = mutants_of(
    "theorems.walks.largest_scores",
    M(
        "place_that_is_another_number",
        "fact.value is index(fact.first_axis(own))",
        "fact.value is not None",
        program="place after that of the largest score",
    ),
)
