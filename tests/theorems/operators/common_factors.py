"""Programs in which a factor of each row, which depends on every token, cancels; and some in which it does not."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from tests.diagnosis.mutants.engine import M, mutants_of
from tests.theorems.operators.common_numbers import CAUSAL, NOT_CAUSAL, attend, by_hand, scores
from tests.theorems.programs import Case, Program, lower

Pair = tuple[Tensor, Tensor]


def less_largest_of_all(m: Program, x: Tensor) -> Tensor:
    """Scores less the largest of all rows."""
    s = scores(m, x)
    return s - s.max()


def endless(m: Program, x: Tensor) -> Tensor:
    """Scores of which those of later keys are infinite, if they are large."""
    s = scores(m, x)
    return torch.where((s > 0) & ~lower(x), math.inf, s)


def powers(m: Program, x: Tensor, first: float, second: float) -> Tensor:
    """Powers of weights over the sum of their powers."""
    w = scores(m, x).softmax(-1).masked_fill(~lower(x), 0.0)
    return (w**first / (w**second).sum(-1, keepdim=True)) @ m.third(x)


def bases(m: Program, x: Tensor, first: Callable[[Tensor], Tensor], second: Callable[[Tensor], Tensor]) -> Tensor:
    """Powers of a number over the sum of those of another one."""
    s = scores(m, x)
    s = (s - s.mean(-1, keepdim=True)).masked_fill(~lower(x), -math.inf)
    return first(s) @ m.third(x) / second(s).sum(-1, keepdim=True)


def with_one(m: Program, x: Tensor, added: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """Exponentials over their sum and one more, less a number of the row; another function gives the one more."""
    s = scores(m, x)
    largest = s.amax(-1, keepdim=True)
    e = (s - largest).exp().masked_fill(~lower(x), 0.0)
    return e @ m.third(x) / added(e.sum(-1, keepdim=True), largest)


def larger(a: Tensor, n: Tensor) -> Tensor:
    """The larger of a number and a power."""
    return torch.maximum(a, (-n).exp())


def less_infinity(m: Program, x: Tensor, number: float) -> Tensor:
    """A quotient of two numbers times a power of one that may be infinite."""
    factor = (-torch.where(scores(m, x).mean(-1, keepdim=True) > 0, number, 1.0)).exp()
    return factor * m.third(x) / (factor * x[..., :1].exp())


def features(m: Program, x: Tensor, dims: tuple[int, ...]) -> Pair:
    """Features of queries and keys, of which the latter are less their largest."""
    k = m.second(x)
    return m.first(x).exp(), (k - k.amax(dims, keepdim=True)).exp()


def by_states(m: Program, x: Tensor, dims: tuple[int, ...]) -> Tensor:
    """Linear attention by products with running sums."""
    q, k = features(m, x, dims)
    state = (k[..., None] * m.third(x)[..., None, :]).cumsum(1)
    return ((q[:, :, None] @ state) / (q[:, :, None] @ k.cumsum(1)[..., None] + 0.0)).squeeze(2)


def by_labels(m: Program, x: Tensor, dims: tuple[int, ...]) -> Tensor:
    """Linear attention by sums of products with labels."""
    q, k = features(m, x, dims)
    state = torch.einsum("btd,bte->btde", k, m.third(x)).cumsum(1)
    return torch.einsum("btd,btde->bte", q, state) / torch.einsum("btd,btd->bt", q, k.cumsum(1))[..., None]


PROGRAMS = [
    Case("largest score of all", lambda m, x: by_hand(m, x, less_largest_of_all(m, x)), CAUSAL),
    Case("log of softmax, masked", lambda m, x: attend(m, x, scores(m, x).log_softmax(-1)), CAUSAL),
    Case("log of softmax over queries", lambda m, x: attend(m, x, scores(m, x).log_softmax(-2)), NOT_CAUSAL),
    Case("log of softmax of infinite scores", lambda m, x: attend(m, x, endless(m, x).log_softmax(-1)), NOT_CAUSAL),
    Case(
        "exponential of the log of softmax",
        lambda m, x: scores(m, x).log_softmax(-1).exp().masked_fill(~lower(x), 0.0) @ m.third(x),
        NOT_CAUSAL,
    ),
    Case("squares made again", lambda m, x: powers(m, x, 2, 2), CAUSAL),
    Case("squares over the sum of cubes", lambda m, x: powers(m, x, 2, 3), NOT_CAUSAL),
    Case("powers of two made again", lambda m, x: bases(m, x, torch.exp2, torch.exp2), CAUSAL),
    Case("powers of two over those of e", lambda m, x: bases(m, x, torch.exp2, torch.exp), NOT_CAUSAL),
    Case("one more less the largest", lambda m, x: with_one(m, x, lambda a, n: a + (-n).exp()), CAUSAL),
    Case("larger of both less the largest", lambda m, x: with_one(m, x, larger), CAUSAL),
    Case("one more that is not less", lambda m, x: with_one(m, x, lambda a, n: a + 1), NOT_CAUSAL),
    Case("one more less the largest twice", lambda m, x: with_one(m, x, lambda a, n: a + (-n - n).exp()), NOT_CAUSAL),
    Case("one more and the largest", lambda m, x: with_one(m, x, lambda a, n: a + n.exp()), NOT_CAUSAL),
    Case("half of one more", lambda m, x: with_one(m, x, lambda a, n: a + (-n / 2).exp()), NOT_CAUSAL),
    Case("quotient of opposites", lambda m, x: less_infinity(m, x, 2.0), CAUSAL),
    Case("quotient of opposites of infinity", lambda m, x: less_infinity(m, x, math.inf), NOT_CAUSAL),
    Case("states of keys less the largest", lambda m, x: by_states(m, x, (1, 2)), CAUSAL),
    Case("states of keys less those of each feature", lambda m, x: by_states(m, x, (1,)), NOT_CAUSAL),
    Case("labels of keys less the largest", lambda m, x: by_labels(m, x, (1, 2)), CAUSAL),
    Case("labels of keys less those of each feature", lambda m, x: by_labels(m, x, (1,)), NOT_CAUSAL),
]
MUTANTS = mutants_of(
    "theorems.walks.common_numbers",
    M(
        "factor_of_a_summed_row",
        "(rank - 1 if arguments[0] is node else rank - 2) in common.along",
        "arguments[0] is not node or rank - 1 in common.along",
        program="states of keys less those of each feature",
    ),
    M(
        "factor_of_a_summed_label",
        "summed <= common.along",
        "True",
        program="labels of keys less those of each feature",
    ),
    M("any_power", '(*common.number, "pow", float($power))', "common.number", program="squares over the sum of cubes"),
    M(
        "any_base",
        'common.number if name == "exp" else (*common.number, name)',
        "common.number",
        program="powers of two over those of e",
    ),
    M(
        "two_factors",
        "(first.number, first.labels, first.rest.dims) == (second.number, second.labels, second.rest.dims)",
        "True",
        program="half of one more",
        quick=True,
    ),
    M(
        "logs_of_infinite_scores",
        "is_ordinary(scores) and scores.dtype is call.dtype",
        "True",
        program="log of softmax of infinite scores",
    ),
    M("opposite_of_infinity", "~fact.ranges().finite", "FALSE", program="quotient of opposites of infinity"),
)
