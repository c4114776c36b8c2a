"""Losses of tokens whose labels are made of the tokens, some of which are ignored."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.diagnosis.mutants.engine import M, mutants_of
from tests.theorems.programs import Case, Program

ALL, NO_PADS = frozenset({"causal", "padding", "batch"}), frozenset({"causal", "batch"})


def _labels(x: Tensor) -> Tensor:
    return (x[..., 0] > 0).long() + (x[..., 1] > 0).long()


def _losses(m: Program, x: Tensor, labels: Tensor) -> Tensor:
    """Each token with the losses so far of labels that are not -100."""
    losses = F.cross_entropy(m.second(x).mT, labels, ignore_index=-100, reduction="none")
    return m.first(x) + losses.cumsum(1)[..., None]


PROGRAMS = [
    Case("labels of pads are ignored", lambda m, x, a: _losses(m, x, _labels(x).masked_fill(a == 0, -100)), ALL,
         masked=True),
    Case("labels where tokens are real", lambda m, x, a: _losses(m, x, torch.where(a.bool(), _labels(x), -100)), ALL,
         masked=True),
    Case("labels of pads are zero", lambda m, x, a: _losses(m, x, _labels(x).masked_fill(a == 0, 0)), NO_PADS,
         masked=True),
    Case("labels of real tokens are ignored", lambda m, x, a: _losses(m, x, _labels(x).masked_fill(a == 1, -100)),
         NO_PADS, masked=True),
    Case("labels of pads at the other end are ignored", lambda m, x, a: _losses(
        m, x, _labels(x).masked_fill(a.flip(1) == 0, -100)), NO_PADS, masked=True),
    Case("labels of tokens as numbers", lambda m, x, a: torch.where(
        a.bool(), _labels(x.flip(1)), -100).to(x.dtype)[..., None] + m.first(x), frozenset({"batch"}), masked=True),
]  # fmt: skip
MUTANTS = mutants_of(
    "theorems.operators.pointwise.pointwise",
    M("the_other_choice", "conditional(test, own, other.value)", "conditional(test, other.value, own)",
      program="labels where tokens are real", quick=True),
    M("choices_that_differ", "same is TRUE and (partly := _partly_known(call, test, chosen, other)) is not None",
      "(partly := _partly_known(call, test, chosen, other)) is not None", program="labels of tokens as numbers"),
)  # fmt: skip
