"""Elements of a second tensor in the places where a mask is true."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.diagnosis.mutants.engine import M, mutants_of
from tests.theorems.programs import Case, Program

PADS = frozenset({"padding", "batch"})
IN_ROWS = frozenset({"batch"})


def _pads(mask: Tensor) -> Tensor:
    return (mask == 0)[..., None]


def _every_other(x: Tensor) -> Tensor:
    return (torch.arange(x.shape[1]) % 2 == 1)[:, None]


def _sums(m: Program, x: Tensor) -> Tensor:
    return m.first(x).cumsum(1).flip(1)


PROGRAMS = [
    Case("stored features where pads are", lambda m, x, a: _sums(m, x.masked_scatter(
        _pads(a), m.table.weight[:1].repeat(10**4, 1))), PADS, masked=True),
    Case("stored features where tokens are real", lambda m, x, a: _sums(m, x.masked_scatter(
        ~_pads(a), m.table.weight[:1].repeat(10**4, 1))), IN_ROWS, masked=True),
    Case("tokens moved into every other place", lambda m, x: x.masked_scatter(_every_other(x), m.first(x)),
         frozenset()),
    Case("stored features in every other place", lambda m, x: x.masked_scatter(
        _every_other(x), m.table.weight[:1].repeat(10**4, 1)), frozenset({"causal", "batch"})),
    Case("stored features by content", lambda m, x: x.masked_scatter(
        x > 0, m.table.weight[:1].repeat(10**4, 1).cumsum(0)), frozenset()),
]  # fmt: skip
MUTANTS = mutants_of(
    "theorems.operators.scatter.filled_places",
    M("only_what_was_there", "TRUE if source.same is TRUE else call.context.for_all(source.same, source.sizes, 0)",
      "TRUE", program="tokens moved into every other place", quick=True),
    M("the_other_places", "(negation(here), own)", "(here, own)",
      program="stored features where tokens are real"),
)  # fmt: skip
