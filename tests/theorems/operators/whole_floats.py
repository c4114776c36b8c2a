"""Positions that are floats: compared, and counted by running sums."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.diagnosis.mutants.engine import M, mutants_of
from tests.theorems.moved_programs import Case as MovedCase
from tests.theorems.programs import Case, Program, attend, index, lower

CAUSAL, NOT_CAUSAL = frozenset({"causal", "batch"}), frozenset({"batch"})


def retention(m: Program, x: Tensor, *, least: float = 0.0) -> Tensor:
    """Scores that decay with the distance, and no softmax."""
    i, j = index(x)
    d = (i - j).float()
    decay = torch.where(d >= least, 0.9 ** d.clamp(min=0), torch.zeros_like(d))
    return ((m.first(x) @ m.second(x).mT) * decay) @ m.third(x)


def by_places(m: Program, x: Tensor, *, shift: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    """Attention to tokens whose place is no greater, where places are floats."""
    place = torch.arange(x.shape[1], dtype=dtype)
    return attend(m, x, place[None] - shift <= place[:, None])


def by_places_of_a_float(m: Program, x: Tensor) -> Tensor:
    """Places that begin with a float, times a number, less the first."""
    place = torch.arange(1.0, x.shape[1] + 1.0, 1.0) * 2.0
    return attend(m, x, torch.cat([place[:1], place[1:]]) <= place[:, None])


def counted(m: Program, x: Tensor, ones: Tensor, dim: int = 0, least: float = 0.0) -> Tensor:
    """Attention to the keys at which a running sum is greater than a number."""
    return attend(m, x, ones.cumsum(dim) > least)


def square(x: Tensor) -> Tensor:
    """A matrix of ones."""
    return torch.ones(x.shape[1], x.shape[1])


PROGRAMS = [
    Case("retention", retention, CAUSAL),
    Case("retention one too far", lambda m, x: retention(m, x, least=-1.0), NOT_CAUSAL),
    Case("places as floats", by_places, CAUSAL),
    Case("places as floats, one too far", lambda m, x: by_places(m, x, shift=1), NOT_CAUSAL),
    Case("places that begin with a float", by_places_of_a_float, CAUSAL),
    Case("running sum of the identity", lambda m, x: counted(m, x, torch.eye(x.shape[1])), CAUSAL),
    Case("running sum of the identity along keys", lambda m, x: counted(m, x, torch.eye(x.shape[1]), 1), NOT_CAUSAL),
    Case("running sum of a triangle", lambda m, x: attend(m, x, square(x).tril(-1).cumsum(0) <= 2), NOT_CAUSAL),
    Case("running sum of a band", lambda m, x: counted(m, x, square(x).tril(1).triu(1), 0), NOT_CAUSAL),
    Case("running sum of a band and the key itself", lambda m, x: counted(m, x, square(x).tril().triu(-2), 0), CAUSAL),
    Case(
        "running sum of a triangle of zeros",
        lambda m, x: attend(m, x, ((1 - square(x).tril()).cumsum(0) > 0) | lower(x)),
        NOT_CAUSAL,
    ),
    Case(
        "running sum of ones",
        lambda m, x: attend(m, x, torch.ones(x.shape[1]).cumsum(0) <= torch.arange(1, x.shape[1] + 1)[:, None]),
        CAUSAL,
    ),
    Case(
        "running sum of integers that are not zero outside",
        lambda m, x: counted(m, x, square(x).tril().long() * 2 - 1, 0),
        CAUSAL,
    ),
]
MOVED_PROGRAMS = [
    MovedCase(
        "places of tokens as floats", lambda m, x, p: attend(m, x, p[:, None].float() <= p[..., None].float() + 0.0)
    ),
    MovedCase("places by their index as floats", lambda m, x, p: by_places(m, x + p[..., None]), equivariant=False),
]
MUTANTS = [
    *mutants_of(
        "theorems.facts.running_sums",
        M(
            "elements_outside_count_nothing",
            "(index(axis) + 1) * outside",
            "as_term(0)",
            program="running sum of a triangle of zeros",
        ),
        M(
            "one_more_is_counted",
            "high - low + 1",
            "high - low + 2",
            program="running sum of a band and the key itself",
        ),
        M(
            "points_out_of_bounds",
            "conjunction(*rest, *inside, *same)",
            "conjunction(*rest)",
            program="running sum of the identity",
        ),
    ),
    *mutants_of(
        "theorems.facts.integer_values",
        M(
            "last_number_everywhere",
            "conditional(condition, as_term(int(number)), found)",
            "found",
            program="running sum of a band and the key itself",
        ),
    ),
]
