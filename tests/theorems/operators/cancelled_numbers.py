"""Numbers of all tokens that cancel in scores, comparisons and differences; and some that do not."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.diagnosis.mutants.engine import M, mutants_of
from tests.theorems.programs import Case, Program, lower

CAUSAL, NOT_CAUSAL = frozenset({"causal", "batch"}), frozenset({"batch"})


def less_mean(x: Tensor, dim: int = 1) -> Tensor:
    """Each element less the mean along a dimension."""
    return x - x.mean(dim, keepdim=True)


def attend(m: Program, x: Tensor, queries: Tensor, keys: Tensor, dim: int = -1) -> Tensor:
    """Causal attention of these queries and keys."""
    scores = (queries @ keys.transpose(1, 2)).masked_fill(~lower(x), float("-inf"))
    return scores.softmax(dim) @ m.third(x)


def fused(m: Program, x: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
    """The same by one operator."""
    return F.scaled_dot_product_attention(queries, keys, m.third(x), is_causal=True)


def keys_as_values(m: Program, x: Tensor) -> Tensor:
    """Keys less their mean that are the values too: what scores lose, values keep."""
    keys = less_mean(m.second(x))
    return F.scaled_dot_product_attention(m.first(x), keys, keys, is_causal=True)


def of_each_key(m: Program, x: Tensor) -> Tensor:
    """Keys less a number of each of them, in which all tokens are."""
    return m.second(x) - (x @ x.mT).mean(-1, keepdim=True)


def sigmoids(m: Program, x: Tensor) -> Tensor:
    """Weights that do not sum to one, so that a number of the row stays in them."""
    scores = m.first(x) @ less_mean(m.second(x)).mT
    return torch.sigmoid(scores) * lower(x) @ m.third(x)


def from_the_end(x: Tensor) -> Tensor:
    """The sum of each token and those after it."""
    return x.flip(1).cumsum(1).flip(1)


def ends(x: Tensor, feature: int = 0) -> Tensor:
    """Tokens at which a document ends."""
    return (x[..., feature] > 0.5).long()


def by_total(x: Tensor) -> Tensor:
    """The sum of each token and those after it, as a sum of all less those before."""
    total = x.sum(1, keepdim=True)
    return total - x.cumsum(1) + x


def within(m: Program, x: Tensor, seen: Tensor) -> Tensor:
    """Attention to earlier tokens where a mask says so, and to itself."""
    seen = (seen | torch.eye(x.shape[1], dtype=torch.bool)) & lower(x)
    scores = m.first(x) @ m.second(x).mT
    return scores.masked_fill(~seen, float("-inf")).softmax(-1) @ m.third(x)


def without_itself(m: Program, x: Tensor, seen: Tensor) -> Tensor:
    """Attention to earlier tokens where a mask says so."""
    scores = m.first(x) @ m.second(x).mT
    return scores.masked_fill(~(seen & lower(x)), -1e9).softmax(-1) @ m.third(x)


def same(one: Tensor, other: Tensor) -> Tensor:
    """True where two tokens have the same number."""
    return one[:, :, None] == other[:, None]


def decays(m: Program, x: Tensor, sums: Callable[[Tensor], Tensor], scale: float | None = None) -> Tensor:
    """Attention with a bias of gates between two tokens."""
    gates = sums(F.logsigmoid(m.first(x)))[..., 0]
    bias = gates[:, :, None] - (gates if scale is None else scale * gates)[:, None]
    return torch.tanh(bias) * lower(x) @ m.third(x)


def of_features(m: Program, x: Tensor, *, another: bool) -> Tensor:
    """Differences of gates, each less the mean of its feature."""
    gates = less_mean(m.first(x))
    first = gates[..., 0]
    other = gates[..., 1] if another else first
    difference = first[:, :, None] - other[:, None]
    return torch.tanh(difference) * lower(x) @ m.third(x)


def heads(m: Program, x: Tensor) -> Tensor:
    """Attention of two heads, whose keys are less their mean before they are taken apart."""
    q, k, v = (f.view(*x.shape[:2], 2, -1).transpose(1, 2) for f in (m.first(x), less_mean(m.second(x)), m.third(x)))
    y = (q @ k.mT).masked_fill(~lower(x), float("-inf")).softmax(-1) @ v
    return y.transpose(1, 2).flatten(2)


def of_opposite_signs(m: Program, x: Tensor, *, opposite: bool) -> Tensor:
    """Differences of gates to which a mean is added, and of those less that mean, or with it."""
    gates = m.first(x)[..., 0]
    mean = gates.mean(1, keepdim=True)
    other = gates - mean if opposite else gates + mean
    return torch.tanh((gates + mean)[:, :, None] - other[:, None]) * lower(x) @ m.third(x)


def less_its_transpose(m: Program, x: Tensor) -> Tensor:
    """A matrix less a number of each row, less the transpose of both."""
    whole = less_mean(m.first(x) @ m.second(x).mT, 2)
    return torch.tanh(whole - whole.mT) * lower(x) @ m.third(x)


PROGRAMS = [
    Case("keys less their mean", lambda m, x: attend(m, x, m.first(x), less_mean(m.second(x))), CAUSAL),
    Case("tokens less their mean as keys", lambda m, x: attend(m, x, m.first(x), m.second(less_mean(x))), CAUSAL),
    Case("keys less their mean, fused", lambda m, x: fused(m, x, m.first(x), less_mean(m.second(x))), CAUSAL),
    Case("keys less their mean, which are the values too", keys_as_values, NOT_CAUSAL),
    Case("keys less a number of each", lambda m, x: attend(m, x, m.first(x), of_each_key(m, x)), NOT_CAUSAL),
    Case("keys less a number of each, fused", lambda m, x: fused(m, x, m.first(x), of_each_key(m, x)), NOT_CAUSAL),
    Case("queries less their mean", lambda m, x: attend(m, x, less_mean(m.first(x)), m.second(x)), NOT_CAUSAL),
    Case("queries less their mean, fused", lambda m, x: fused(m, x, less_mean(m.first(x)), m.second(x)), NOT_CAUSAL),
    Case("both less their means", lambda m, x: attend(m, x, *map(less_mean, (m.first(x), m.second(x)))), NOT_CAUSAL),
    Case("keys less their mean over queries", lambda m, x: attend(m, x, m.first(x), less_mean(x), -2), NOT_CAUSAL),
    Case("sigmoids of keys less their mean", sigmoids, NOT_CAUSAL),
    Case("documents from the end", lambda m, x: within(m, x, same(*[from_the_end(ends(x))] * 2)), CAUSAL),
    Case("documents from the end by a total", lambda m, x: within(m, x, same(*[by_total(ends(x))] * 2)), CAUSAL),
    Case("documents of itself", lambda m, x: without_itself(m, x, same(*[from_the_end(ends(x))] * 2)), CAUSAL),
    Case(
        "documents of the token from the other end",
        lambda m, x: without_itself(m, x, same(from_the_end(ends(x)), from_the_end(ends(x)).flip(1))),
        NOT_CAUSAL,
    ),
    Case(
        "documents of two kinds of ends",
        lambda m, x: within(m, x, same(from_the_end(ends(x)), from_the_end(ends(x, 1)))),
        NOT_CAUSAL,
    ),
    Case(
        "documents from both ends",
        lambda m, x: within(m, x, same(from_the_end(ends(x)), ends(x).cumsum(1))),
        NOT_CAUSAL,
    ),
    Case("numbers from the end", lambda m, x: x + from_the_end(ends(x))[..., None], NOT_CAUSAL),
    Case("gates from the end", lambda m, x: decays(m, x, from_the_end), CAUSAL),
    Case("gates from the end, added", lambda m, x: decays(m, x, from_the_end, -1.0), NOT_CAUSAL),
    Case("gates from the end, twice", lambda m, x: decays(m, x, from_the_end, 2.0), NOT_CAUSAL),
    Case("gates flipped otherwise", lambda m, x: decays(m, x, lambda g: g.flip(2).cumsum(1).flip(1)), NOT_CAUSAL),
    Case("gates summed over features", lambda m, x: decays(m, x, lambda g: g.flip(1).cumsum(2).flip(1)), CAUSAL),
    Case("gates of two features", lambda m, x: of_features(m, x, another=True), NOT_CAUSAL),
    Case("gates of one feature", lambda m, x: of_features(m, x, another=False), CAUSAL),
    Case("gates less and with their mean", lambda m, x: of_opposite_signs(m, x, opposite=True), NOT_CAUSAL),
    Case("gates with their mean", lambda m, x: of_opposite_signs(m, x, opposite=False), CAUSAL),
    Case("heads of keys less their mean", heads, CAUSAL),
    Case("a matrix less its transpose", less_its_transpose, NOT_CAUSAL),
]
MUTANTS = mutants_of(
    "theorems.walks.common_numbers",
    M("numbers_of_keys", "kept not in common.along", "False", program="keys less a number of each"),
    M("numbers_of_keys_fused", "keys in second.along", "True", program="keys less a number of each, fused"),
    M(
        "numbers_of_other_rows",
        "(first.number, first.labels) != (second.number, second.labels)",
        "first.number != second.number",
        program="a matrix less its transpose",
    ),
    M(
        "numbers_of_another_feature",
        "common.number if whole else (*common.number, call.node)",
        "common.number",
        program="gates of two features",
    ),
    M("flips_along_other_dimensions", "not dims[0] == dims[1] == dims[2]", "False", program="gates flipped otherwise"),
)
