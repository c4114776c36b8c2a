"""Programs with masks and places that are computed as integers, and with weights that are repaired."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from tests.diagnosis.mutants.engine import M, mutants_of
from tests.theorems.programs import Case, Program, attend, lower

ALL = frozenset({"causal", "padding", "batch"})


def of_two(m: Program, x: Tensor, mask: Tensor, *, either: bool = False) -> Tensor:
    """Causal attention where query and key are real, or one of them is, by integers."""
    keys, queries = mask[:, None, :], mask[:, :, None]
    both = keys | queries if either else keys * queries
    return attend(m, x, lower(x) & (both & torch.ones_like(both)).bool(), fill=-1e9)


def repaired(m: Program, x: Tensor, mask: Tensor, *, scores: bool = False) -> Tensor:
    """Causal attention whose NaN are replaced, or the infinite scores."""
    visible = lower(x) & mask[:, None, :].bool()
    s = (m.first(x) @ m.second(x).mT).masked_fill(~visible, -math.inf)
    return (s.nan_to_num(neginf=0.0).softmax(-1) if scores else s.softmax(-1).nan_to_num(nan=0.0)) @ m.third(x)


def as_bytes(m: Program, x: Tensor, *, upper: bool = False) -> Tensor:
    """Attention by a triangle of floats that became bytes."""
    ones = torch.ones(x.shape[1], x.shape[1])
    return attend(m, x, (ones.triu(1) if upper else ones.tril()).to(torch.uint8) == 1, fill=-1e9)


def gathered(m: Program, x: Tensor, least: int) -> Tensor:
    """The token before each, but none before this one."""
    before = (torch.arange(x.shape[1]) - 1).clamp(min=least)
    return x + m.first(x).gather(1, before[None, :, None].expand_as(x))


PROGRAMS = [
    Case("product of masks", of_two, ALL, masked=True),
    Case("one of two masks", lambda m, x, mask: of_two(m, x, mask, either=True), ALL - {"padding"}, masked=True),
    Case("weights without NaN", repaired, ALL, masked=True),
    Case("scores without infinity", lambda m, x, mask: repaired(m, x, mask, scores=True), frozenset({"batch"}), True),
    Case("triangle of bytes", as_bytes, frozenset({"causal", "batch"})),
    Case("upper triangle of bytes", lambda m, x: as_bytes(m, x, upper=True), frozenset({"batch"})),
    Case("token before by gather", lambda m, x: gathered(m, x, 0), frozenset({"causal", "batch"})),
    Case("token before, not the first", lambda m, x: gathered(m, x, 1), frozenset({"batch"}), least=2),
]
MUTANTS = [
    *mutants_of(
        "theorems.operators.pointwise.known_values",
        M(
            "numbers_of_other_elements",
            "conditional(condition, as_term(int(integer)), whole)",
            "conditional(~condition, as_term(int(integer)), whole)",
            program="upper triangle of bytes",
        ),
        M("least_of_a_clamp", "maximum(value, least)", "value", program="token before, not the first"),
    ),
    *mutants_of(
        "theorems.facts.integer_values",
        M("either_for_both", "_OF_BITS[name](a, b)", "conjunction(a, b)", program="one of two masks", quick=True),
    ),
]
