"""Functions of torch that are called with an open size where torch takes an integer."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F

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


PROGRAMS = [
    Case("bias of windows of a row", _toeplitz, CAUSAL),
    Case("bias of windows of the row before", lambda m, x: _toeplitz(m, x, shift=1), NOT_CAUSAL),
    Case("windows of tokens before", lambda m, x: _windows(x, dim=1, step=1), CAUSAL),
    Case("windows of the last dimension", lambda m, x: _windows(x, dim=-1, step=1), CAUSAL),
    Case("one-hot places before", lambda m, x: _rows_of_numbers(m, x, index(x)[1][0] // 2), CAUSAL),
    Case("one-hot places from the end", lambda m, x: _rows_of_numbers(m, x, index(x)[1][0].flip(0)), NOT_CAUSAL),
    Case("one-hot places of a mask", lambda m, x: _rows_of_numbers(m, x, lower(x).sum(1) - 1), CAUSAL),
]
