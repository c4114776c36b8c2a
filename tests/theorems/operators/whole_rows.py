"""Rows of masks of which all, or none, is hidden, and which are then shown; and other uses of such rows."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.diagnosis.mutants.engine import M, mutants_of
from tests.theorems.programs import Case, Program, lower

LAWS = frozenset({"causal", "padding", "batch"})
BATCH = frozenset({"batch"})


def hidden(x: Tensor, mask: Tensor) -> Tensor:
    """The smallest number where a key is later or a pad."""
    least = torch.finfo(x.dtype).min
    return (~lower(x) | (mask[:, None] == 0)).to(x.dtype) * least


def attend(m: Program, x: Tensor, bias: Tensor) -> Tensor:
    """Attention with a bias."""
    return (m.first(x) @ m.second(x).mT + bias).softmax(-1) @ m.third(x)


def shown(m: Program, x: Tensor, mask: Tensor, dim: int = -1) -> Tensor:
    """Attention in which nothing is hidden in rows of which all is."""
    bias = hidden(x, mask)
    return attend(m, x, bias * ~torch.all(bias == torch.finfo(x.dtype).min, dim=dim, keepdim=True))


def shown_by_any(m: Program, x: Tensor, mask: Tensor) -> Tensor:
    """The same by rows of which any is seen."""
    seen = lower(x) & mask[:, None].bool()
    seen = seen | ~seen.any(-1, keepdim=True)
    return attend(m, x, torch.where(seen, 0.0, -1e9))


def shown_where_any_is_hidden(m: Program, x: Tensor, mask: Tensor) -> Tensor:
    """Rows of which any is hidden are shown."""
    bias = hidden(x, mask)
    return attend(m, x, bias * ~(bias != 0).any(-1, keepdim=True))


def shown_where_not_all_is_seen(m: Program, x: Tensor, mask: Tensor) -> Tensor:
    """Rows of which not all is seen are shown."""
    seen = lower(x) & mask[:, None].bool()
    return attend(m, x, torch.where(seen | ~seen.all(-1, keepdim=True), 0.0, -1e9))


def of_the_row_before(m: Program, x: Tensor, mask: Tensor) -> Tensor:
    """Rows are shown where all of the row before is hidden."""
    seen = lower(x) & mask[:, None].bool()
    return attend(m, x, torch.where(seen | ~seen.any(-1, keepdim=True).roll(1, 1), 0.0, -1e9))


PROGRAMS = [
    Case("rows of which all is hidden", shown, LAWS, masked=True),
    Case("rows of which none is seen", shown_by_any, LAWS, masked=True),
    Case("columns of which all is hidden", lambda m, x, mask: shown(m, x, mask, 1), BATCH, masked=True),
    Case("rows of which any is hidden", shown_where_any_is_hidden, BATCH, masked=True),
    Case("rows of which not all is seen", shown_where_not_all_is_seen, BATCH, masked=True),
    Case("rows after one of which all is hidden", of_the_row_before, BATCH, masked=True),
]
MUTANTS = mutants_of(
    "theorems.facts.whole_rows",
    M(
        "any_for_all",
        "implication(whole, element) if self.is_all else implication(element, whole)",
        "implication(element, whole)",
        program="rows of which not all is seen",
        quick=True,
    ),
    M(
        "all_for_any",
        "implication(whole, element) if self.is_all else implication(element, whole)",
        "implication(whole, element)",
        program="rows of which any is hidden",
        quick=True,
    ),
)
