"""Programs in which a number of each row, which depends on every token, cancels; and some in which it does not."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from tests.diagnosis.mutants.engine import M, mutants_of
from tests.theorems.programs import Case, Program, index, lower

CAUSAL, NOT_CAUSAL = frozenset({"causal", "batch"}), frozenset({"batch"})


def scores(m: Program, x: Tensor) -> Tensor:
    """Scores of all queries and keys."""
    return m.first(x) @ m.second(x).mT


def centred(m: Program, x: Tensor, dim: int = -1) -> Tensor:
    """Scores less their mean over all keys, or over all queries."""
    s = scores(m, x)
    return s - s.mean(dim, keepdim=True)


def less(m: Program, x: Tensor) -> Tensor:
    """The largest score of a row less all of them."""
    s = scores(m, x)
    return s.amax(-1, keepdim=True) - s


def attend(m: Program, x: Tensor, shifted: Tensor, fill: float = -math.inf) -> Tensor:
    """Causal attention with these scores."""
    return shifted.masked_fill(~lower(x), fill).softmax(-1) @ m.third(x)


def visible(x: Tensor, shifted: Tensor, hidden: float = 0.0) -> Tensor:
    """Exponentials of scores, and a number for hidden ones."""
    return shifted.exp().masked_fill(~lower(x), hidden)


def by_hand(m: Program, x: Tensor, shifted: Tensor, scale: float = 1) -> Tensor:
    """Weights as quotients of exponentials and their sum."""
    return (
        visible(x, shifted) / visible(x, shifted if scale == 1 else shifted * scale).sum(-1, keepdim=True)
    ) @ m.third(x)


def again(m: Program, x: Tensor, weights: Tensor, power: float = 1, add: float = 0.0) -> Tensor:
    """Weights of all keys, of which those of hidden ones are set to zero, over their sum."""
    w = weights * lower(x)
    total = (w if power == 1 else w**power).sum(-1, keepdim=True)
    return w / (total + add if add else total) @ m.third(x)


def by_another_row(m: Program, x: Tensor) -> Tensor:
    """Weights over the sum of those of the row before."""
    w = scores(m, x).softmax(-1).tril()
    return w / w.sum(-1, keepdim=True).roll(1, 1) @ m.third(x)


def next_to_infinite(m: Program, x: Tensor) -> Tensor:
    """Weights of keys of which a later one may be infinite, so that all of the row are none."""
    w = torch.where(m.second(x)[:, None, :, 0] > 1, math.inf, scores(m, x)).softmax(-1).tril()
    return (w / w.sum(-1, keepdim=True)).tril() @ m.third(x)


def weighted_queries(m: Program, x: Tensor) -> Tensor:
    """A softmax over the keys up to each token, of queries that are weights."""
    keys = m.first(x)
    e = (keys - keys.amax(1, keepdim=True)).exp()
    return m.second(x).softmax(-1) * (e * m.third(x)).cumsum(1) / e.cumsum(1)


def real_weights(m: Program, x: Tensor, mask: Tensor) -> Tensor:
    """Weights of earlier keys, of which those of pads are set to zero, over their sum."""
    w = scores(m, x).masked_fill(~lower(x), -math.inf).softmax(-1) * mask[:, None]
    return w / w.sum(-1, keepdim=True) @ m.third(x)


def opposite(m: Program, x: Tensor) -> Tensor:
    """Weights as quotients of exponentials to which a number is added, and of the sum of those less that number."""
    s = scores(m, x)
    mean = s.mean(-1, keepdim=True)
    return visible(x, s + mean) / visible(x, s - mean).sum(-1, keepdim=True) @ m.third(x)


def by_its_exponent(m: Program, x: Tensor) -> Tensor:
    """Quotients of exponentials and their exponents, of which only the first have a factor in common."""
    s = centred(m, x).masked_fill(~lower(x), -math.inf)
    return (s.exp() / s).masked_fill(~lower(x), 0) @ m.third(x)


def by_queries(m: Program, x: Tensor) -> Tensor:
    """Weights over the queries up to a key, each of which has a number of its own."""
    e = centred(m, x).exp().masked_fill(~lower(x).mT, 0)
    return (e / e.sum(-2, keepdim=True)).mT @ m.third(x)


def ones_for_hidden(m: Program, x: Tensor) -> Tensor:
    """Weights among which hidden exponentials are one."""
    e = visible(x, centred(m, x), 1.0)
    return x * (e / e.sum(-1, keepdim=True))[..., :1]


def sum_by_product(m: Program, x: Tensor, dim: int) -> Tensor:
    """The quotient of two sums over keys, of which the second is a product with ones."""
    e = visible(x, centred(m, x, dim))
    return (e @ m.third(x)) / (e @ torch.ones_like(x))


def running(m: Program, x: Tensor, dim: int = 1) -> Tensor:
    """A softmax over the keys up to each token, whose exponentials are less their mean over all tokens."""
    keys = m.first(x)
    e = (keys - keys.mean(dim, keepdim=True)).exp()
    return (e * m.second(x)).cumsum(1) / e.cumsum(1)


def two_fills(m: Program, x: Tensor) -> Tensor:
    """A weight among hidden scores, of which only some are shifted."""
    shifted = torch.full_like(scores(m, x), -1e9) - 1e3 * scores(m, x).mean(-1, keepdim=True)
    return x * shifted.masked_fill(index(x)[1] % 2 == 0, -1e9).softmax(-1)[..., :1]


def endless(m: Program, x: Tensor) -> Tensor:
    """Scores less a number of the row that may be infinite: rows are NaN or not by all of their tokens."""
    s = scores(m, x)
    return s - torch.where(s.mean(-1, keepdim=True) > 0, math.inf, 0.0)


def endless_queries(m: Program, x: Tensor) -> Tensor:
    """Differences of scores of queries that may be infinite, and of keys less their mean: by its sign, NaN or not."""
    keys = m.second(x)[..., :1]
    s = torch.where(m.first(x)[..., :1] > 0, math.inf, 1.0) @ (keys - keys.mean(1, keepdim=True)).mT
    return (s - s[..., :1]).sigmoid().masked_fill(~lower(x) | (index(x)[1] == 0), 0) @ m.third(x)


PROGRAMS = [
    Case("mean of all scores", lambda m, x: attend(m, x, centred(m, x)), CAUSAL),
    Case("mean of all scores, finite mask", lambda m, x: attend(m, x, centred(m, x), -1e9), CAUSAL),
    Case("mean of all scores, scaled", lambda m, x: attend(m, x, centred(m, x) * 0.5), CAUSAL),
    Case("largest less all scores, finite mask", lambda m, x: attend(m, x, less(m, x), -1e9), CAUSAL),
    Case("mean over queries", lambda m, x: attend(m, x, centred(m, x, -2)), NOT_CAUSAL),
    Case("number that may be infinite", lambda m, x: attend(m, x, endless(m, x)), NOT_CAUSAL),
    Case("queries that may be infinite", endless_queries, NOT_CAUSAL),
    Case("finite mask of hidden scores", two_fills, NOT_CAUSAL),
    Case("quotient of one exponential", lambda m, x: by_hand(m, x, centred(m, x)), CAUSAL),
    Case("weights made again", lambda m, x: again(m, x, scores(m, x).softmax(-1)), CAUSAL),
    Case("weights made again of another softmax", lambda m, x: again(m, x, scores(m, x).softmax(-2)), NOT_CAUSAL),
    Case("weights made again of half of them", lambda m, x: again(m, x, scores(m, x).softmax(-1), 0.5), NOT_CAUSAL),
    Case("weights made again with a number", lambda m, x: again(m, x, scores(m, x).softmax(-1), add=0.1), NOT_CAUSAL),
    Case("weights made again next to infinite scores", next_to_infinite, NOT_CAUSAL),
    Case("weights divided by another row", by_another_row, NOT_CAUSAL),
    Case("running quotient of weighted queries", weighted_queries, CAUSAL),
    Case("weights of real keys made again", real_weights, CAUSAL | {"padding"}, masked=True),
    Case("quotient of two numbers", lambda m, x: by_hand(m, x, centred(m, x), 2), NOT_CAUSAL),
    Case("quotient of opposite numbers", opposite, NOT_CAUSAL),
    Case("quotient by an exponent", by_its_exponent, NOT_CAUSAL),
    Case("quotient by a sum over queries", by_queries, NOT_CAUSAL),
    Case("quotient of products", lambda m, x: sum_by_product(m, x, -1), CAUSAL),
    Case("quotient of products over queries", lambda m, x: sum_by_product(m, x, -2), NOT_CAUSAL),
    Case("running quotient", running, CAUSAL),
    Case("running quotient over features", lambda m, x: running(m, x, 2), CAUSAL),
    Case("softmax of exponentials", lambda m, x: x * visible(x, centred(m, x)).softmax(-1)[..., :1], NOT_CAUSAL),
    Case("ones in place of hidden exponentials", ones_for_hidden, NOT_CAUSAL),
]
MUTANTS = mutants_of(
    "theorems.walks.common_numbers",
    M("number_along_another_dimension", "call.dim(1, default=-1) in first.along", "True", program="mean over queries"),
    M(
        "infinite_number",
        "ranges.hidden is FALSE and ranges.unbounded is FALSE",
        "True",
        program="queries that may be infinite",
    ),
    M(
        "finite_mask_of_any_scores",
        "all(part is FALSE for part in (ranges.hidden, ranges.low, ranges.unbounded))",
        "True",
        program="finite mask of hidden scores",
    ),
    M(
        "number_of_the_other_sign",
        "Common((arguments[1], call.name), $_rest, labels)",
        "Common((arguments[1],), $_rest, labels)",
        program="quotient of opposite numbers",
    ),
    M(
        "another_number",
        "(first.number, first.labels) != (second.number, second.labels)",
        "first.labels != second.labels",
        program="quotient of two numbers",
        quick=True,
    ),
    M(
        "exponent_for_a_factor",
        "first.factor and second.factor",
        "first.factor",
        program="quotient by an exponent",
        quick=True,
    ),
    M(
        "sum_over_another_dimension",
        "{d % rank for d in call.dims(dims)} <= common.along",
        "True",
        program="quotient by a sum over queries",
    ),
    M(
        "factor_of_a_key",
        "(rank - 1 if arguments[0] is node else rank - 2) in common.along",
        "arguments[0] is node or rank - 2 in common.along",
        program="quotient of products over queries",
    ),
    M(
        "weights_first",
        "{$x: $one for $x, $one in $known.items() if not $one.weak} or $known",
        "$known",
        program="running quotient of weighted queries",
    ),
    M(
        "weights_of_any_row",
        "scores.same & scores.ranges().finite & ~result.unbounded",
        "scores.same",
        program="weights made again next to infinite scores",
    ),
    M("softmax_of_a_factor", "not first.factor", "True", program="softmax of exponentials", quick=True),
    M("any_number_for_hidden_ones", "number == 0", "True", program="ones in place of hidden exponentials"),
)
