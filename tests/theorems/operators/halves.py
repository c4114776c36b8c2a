"""One part of the tokens that reads another part, at places that the number of tokens gives."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.theorems.programs import Case, Program

CAUSAL, NOT_CAUSAL = frozenset({"causal", "batch"}), frozenset({"batch"})


def read(m: Program, first: Tensor, second: Tensor) -> Tensor:
    """Tokens, and what they read of others by attention without a mask."""
    return first + (m.first(first) @ m.second(second).mT).softmax(-1) @ m.third(second)


def second_reads(m: Program, x: Tensor, more: int) -> Tensor:
    """The second half reads the first one, and some tokens more."""
    n = x.shape[1] // 2
    return torch.cat([x[:, :n], read(m, x[:, n:], x[:, : n + more])], 1)


def first_reads(m: Program, x: Tensor) -> Tensor:
    """The first half reads the second one."""
    n = x.shape[1] // 2
    return torch.cat([read(m, x[:, :n], x[:, n:]), x[:, n:]], 1)


PROGRAMS = [
    Case("second half reads the first", lambda m, x: second_reads(m, x, 0), CAUSAL, least=4),
    Case("second half reads one more", lambda m, x: second_reads(m, x, 1), CAUSAL, least=4),
    Case("second half reads two more", lambda m, x: second_reads(m, x, 2), NOT_CAUSAL, least=4),
    Case("first half reads the second", first_reads, NOT_CAUSAL, least=4),
]
