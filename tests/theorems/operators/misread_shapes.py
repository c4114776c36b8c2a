"""Views that put elements of a row elsewhere in the row; and keys in blocks, one of which a query sees."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.diagnosis.mutants.engine import M, mutants_of
from tests.theorems.moved_programs import Case as MovedCase
from tests.theorems.programs import WIDTH, Case, Program, from_chunks, in_chunks

CAUSAL, NOT_CAUSAL = frozenset({"causal", "batch"}), frozenset({"batch"})


def heads_without_transpose(m: Program, x: Tensor) -> Tensor:
    """Heads that mix tokens: the dimensions of heads and tokens are not swapped."""
    y = m.first(x).reshape(x.shape[0], 2, x.shape[1], WIDTH // 2).softmax(-2)
    return y.transpose(1, 2).flatten(2)


def rows_mixed(m: Program, x: Tensor) -> Tensor:
    """Rows and tokens that are not swapped."""
    return x + m.first(x).reshape(x.shape[1], x.shape[0], WIDTH).transpose(0, 1)


def keys_in_blocks(m: Program, x: Tensor, *, shift: int = 0) -> Tensor:
    """Causal attention to keys that were padded to blocks of four."""
    k, v = (in_chunks(f(x)).flatten(1, 2) for f in (m.second, m.third))
    hidden = torch.arange(k.shape[1])[None] > torch.arange(x.shape[1])[:, None] + shift
    return (m.first(x) @ k.mT).masked_fill(hidden, float("-inf")).softmax(-1) @ v


PROGRAMS = [
    Case("heads without transpose", heads_without_transpose, NOT_CAUSAL),
    Case("rows and tokens without transpose", rows_mixed, frozenset()),
    Case("keys in blocks", keys_in_blocks, CAUSAL, least=5),
    Case("keys in blocks, one too far", lambda m, x: keys_in_blocks(m, x, shift=1), NOT_CAUSAL, least=5),
]
MOVED_PROGRAMS = [
    MovedCase(
        "heads without transpose of permuted tokens", lambda m, x, p: heads_without_transpose(m, x), equivariant=False
    ),
    MovedCase(
        "chunks of permuted tokens", lambda m, x, p: from_chunks(in_chunks(x).flip(2), x.shape[1]), equivariant=False
    ),
]
MUTANTS = [
    *mutants_of(
        "theorems.operators.movement.shape",
        M("rows_are_not_followed", "within is None", "True", program="heads without transpose"),
    ),
    *mutants_of(
        "theorems.operators.softmax.masked_rows",
        M(
            "rows_of_one_axis",
            "not row or any(not size.is_constant for size in row[1:])",
            "len(row) != 1",
            program="keys in blocks",
        ),
    ),
]
