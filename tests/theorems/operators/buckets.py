"""Programs that number documents by boundaries, or skip what is not a number; and some that read other tokens."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.diagnosis.mutants.engine import M, mutants_of
from tests.theorems.programs import Case, Program, attend, lower

NAN = float("nan")


def _places(x: Tensor) -> Tensor:
    return torch.arange(x.shape[1])


def _documents(m: Program, x: Tensor, *, right: bool, causal: bool = True) -> Tensor:
    """Attention within documents that begin at fixed tokens; the last token of one may be of the next."""
    number = torch.bucketize(_places(x), torch.tensor([0, 4, 9]), right=right)
    same = number[:, None] == number[None]
    return attend(m, x, same & lower(x) if causal else same)


def _levels(m: Program, x: Tensor, boundaries: Tensor) -> Tensor:
    return x + m.table(torch.bucketize(x[..., 0].contiguous(), boundaries))


def _skipped(x: Tensor, mask: Tensor) -> Tensor:
    return x.masked_fill(mask[..., None] == 0, NAN)


def _case(name: str, function: object, *laws: str, masked: bool = False) -> Case:
    return Case(name, function, frozenset(laws), masked=masked, pooled=masked)  # type: ignore[arg-type]


PROGRAMS = [
    _case("documents by boundaries", lambda m, x: _documents(m, x, right=True), "causal", "batch"),
    _case("documents by boundaries, from the left", lambda m, x: _documents(m, x, right=False), "causal", "batch"),
    _case(
        "documents by boundaries without a triangle", lambda m, x: _documents(m, x, right=True, causal=False), "batch"
    ),
    _case("levels of a feature", lambda m, x: _levels(m, x, torch.tensor([-1.0, 0.0, 1.0])), "causal", "batch"),
    _case("levels between stored numbers", lambda m, x: _levels(m, x, m.first.bias.sort()[0]), "causal", "batch"),
    _case("levels between tokens", lambda m, x: _levels(m, x, x[0, -1].sort()[0])),
    _case("sum of numbers", lambda m, x, mask: _skipped(x, mask).nansum(1), "padding", "batch", masked=True),
    _case("mean of numbers", lambda m, x, mask: _skipped(x, mask).nanmean(1), "padding", "batch", masked=True),
    _case("median of numbers", lambda m, x, mask: _skipped(x, mask).nanmedian(1)[0], "padding", "batch", masked=True),
    _case("sum of numbers and pads", lambda m, x, mask: x.nansum(1) * mask.any(), "batch", masked=True),
]
MUTANTS = mutants_of(
    "theorems.operators.lookup.buckets",
    M(
        "boundaries_that_differ",
        "$numbers.same & $all_agree",
        "$numbers.same",
        program="levels between tokens",
        quick=True,
    ),
)
