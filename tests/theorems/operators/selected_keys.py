"""Programs in which each query selects keys by their scores, so that one that it sees stays, or none may stay.

Hidden scores are finite: in a row that keeps no key, all weights are equal, and later tokens show.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from tests.diagnosis.mutants.engine import M, mutants_of
from tests.theorems.programs import Case, Program, index, lower

CAUSAL, NOT_CAUSAL = frozenset({"causal", "batch"}), frozenset({"batch"})
HIDDEN = -1e9


def scores(m: Program, x: Tensor, fill: float = HIDDEN, *, second: bool = False) -> Tensor:
    """Causal scores."""
    keys = m.third(x) if second else m.second(x)
    return (m.first(x) @ keys.mT).masked_fill(~lower(x), fill)


def weighted(m: Program, x: Tensor, s: Tensor) -> Tensor:
    """The mean of the values, weighted by the softmax of scores."""
    return s.softmax(-1) @ m.third(x)


def later_weights(x: Tensor, s: Tensor) -> Tensor:
    """The weights of later tokens, which are zero where one that is seen has a weight."""
    return x + s.softmax(-1).triu(1).sum(-1, keepdim=True)


def above(m: Program, x: Tensor, least: Callable[[Tensor], Tensor], fill: float = HIDDEN) -> Tensor:
    """Attention to scores that are not below one of their row."""
    s = scores(m, x, fill)
    return weighted(m, x, s.masked_fill(s < least(s), fill))


def strictly_above(m: Program, x: Tensor) -> Tensor:
    """Attention to scores that are above the largest: to none."""
    s = scores(m, x)
    return weighted(m, x, torch.where(s > s.amax(-1, keepdim=True), s, HIDDEN))


def before_the_mask(m: Program, x: Tensor) -> Tensor:
    """Scores below one of all scores of their row are hidden, and then later tokens."""
    s = m.first(x) @ m.second(x).mT
    return weighted(m, x, s.masked_fill(s < s.topk(2).values[..., -1:], HIDDEN).masked_fill(~lower(x), HIDDEN))


def among_largest(m: Program, x: Tensor, *, largest: bool = True, dim: int = -1, write: int = -1) -> Tensor:
    """Attention to the keys of the two largest scores, by a mask into which ones are scattered."""
    s = scores(m, x)
    chosen = torch.zeros_like(s).scatter(write, s.topk(2, dim, largest=largest).indices, 1.0)
    return weighted(m, x, s.masked_fill(chosen == 0, HIDDEN))


def rewritten(m: Program, x: Tensor, write: int = -1) -> Tensor:
    """The two largest scores of each row among hidden ones."""
    s = scores(m, x)
    top, own = s.topk(2), index(x)[0] == index(x)[1]
    kept = torch.full_like(s, HIDDEN).scatter(write, top.indices, top.values)
    return weighted(m, x, kept) if write == -1 else later_weights(x, kept.masked_fill(own, 1.0))


def by_an_index(m: Program, x: Tensor, fill: float = -torch.inf, *, hides: bool = True) -> Tensor:
    """Scores of two heads that keep the keys with the largest scores of an index."""
    n = x.shape[1]
    bias = torch.full((n, n), fill).triu(1)
    own = m.first(x) @ m.third(x).mT + (bias if hides else 0)
    places = own.topk(2, dim=-1)[1]
    kept = torch.full(own.shape, fill).scatter(-1, places, 0) + bias
    heads = [(f(x).view(*x.shape[:2], 2, 3).transpose(1, 2)) for f in (m.first, m.second, m.third)]
    s = heads[0] @ heads[1].mT + kept.unsqueeze(1)
    return (s.softmax(-1) @ heads[2]).transpose(1, 2).flatten(2)


def two_masks(m: Program, x: Tensor, *, second: bool) -> Tensor:
    """Attention to keys that are largest in two ways: of the same scores, or of others."""
    s = scores(m, x)
    t = scores(m, x, second=True) if second else s
    kept = (s >= s.topk(1).values) & (t >= t.topk(1).values)
    return weighted(m, x, s.masked_fill(~kept, HIDDEN))


def another_mask(m: Program, x: Tensor, width: int) -> Tensor:
    """Attention to the largest scores that another mask leaves: a window, or one in which nothing is left."""
    s, near = scores(m, x), index(x)[1] > index(x)[0] - width
    s = s.masked_fill(~near, HIDDEN) if width > 3 else s
    return weighted(m, x, s.masked_fill(~((s >= s.topk(1).values) & near), HIDDEN))


def best(m: Program, x: Tensor, place: Callable[[Tensor], Tensor], fill: float = HIDDEN) -> Tensor:
    """The value of one key for each query."""
    return x + m.third(x).gather(1, place(scores(m, x, fill)).expand_as(x))


def best_of_none(m: Program, x: Tensor) -> Tensor:
    """The best of the earlier keys, of which the first token has none: it gets the last token."""
    i, j = index(x)
    hidden = torch.where(j == x.shape[1] - 1, HIDDEN, 2 * HIDDEN)
    s = torch.where(j < i, m.first(x) @ m.second(x).mT, hidden)
    return x + m.third(x).gather(1, s.argmax(-1)[..., None].expand_as(x))


def by_other_scores(m: Program, x: Tensor) -> Tensor:
    """Attention to scores that are not below the largest of other ones."""
    s = scores(m, x)
    return weighted(m, x, s.masked_fill(s < scores(m, x, second=True).amax(-1, keepdim=True), HIDDEN))


def least_of_each_key(m: Program, x: Tensor) -> Tensor:
    """The weights of later tokens, after scores below the largest of their key were hidden."""
    s = scores(m, x)
    return later_weights(x, s.masked_fill(s < s.amax(-2, keepdim=True), HIDDEN))


def best_of_a_choice(m: Program, x: Tensor) -> Tensor:
    """The value of the best key where a score is the largest, and that of the last token elsewhere."""
    s = scores(m, x)
    best_key, last = s.argmax(-1, keepdim=True), torch.full((1,), x.shape[1] - 1)
    places = torch.where(s >= s.amax(-1, keepdim=True), best_key, last)
    return x + m.third(x).gather(1, places[..., :1].expand_as(x))


def largest_weights(m: Program, x: Tensor, *, own: bool = True) -> Tensor:
    """The largest weights, normalized again; or those that are as large as one of another row."""
    w = scores(m, x).softmax(-1)
    least = w.topk(2).values[..., -1:]
    kept = w * (w >= (least if own else least.flip(1)))
    return kept / kept.sum(-1, keepdim=True).clamp(min=1e-3) @ m.third(x)


def of_another_row(m: Program, x: Tensor) -> Tensor:
    """Scores below one of the row of the key are hidden."""
    s = scores(m, x)
    return weighted(m, x, s.masked_fill(s < s.amax(-1, keepdim=True).mT, HIDDEN))


def taken(m: Program, x: Tensor, s: Tensor) -> Tensor:
    """The value of the best key, with an index for all features."""
    return x + torch.take_along_dim(m.third(x), s.argmax(-1, keepdim=True), dim=1)


PROGRAMS = [
    Case("best key taken along tokens", lambda m, x: taken(m, x, scores(m, x)), CAUSAL),
    Case("best key of all taken", lambda m, x: taken(m, x, m.first(x) @ m.second(x).mT), NOT_CAUSAL),
    Case("threshold of the second largest", lambda m, x: above(m, x, lambda s: s.topk(2).values[..., -1:]), CAUSAL),
    Case("threshold by kthvalue", lambda m, x: above(m, x, lambda s: s.kthvalue(2, -1, True).values, -1e30), CAUSAL),
    Case("threshold by sort", lambda m, x: above(m, x, lambda s: s.sort(-1).values[..., 1].unsqueeze(-1)), CAUSAL),
    Case("threshold of -inf", lambda m, x: above(m, x, lambda s: s.topk(2)[0].amin(-1, keepdim=True), -torch.inf),
         CAUSAL),
    Case("threshold of a mean", lambda m, x: above(m, x, lambda s: s.mean(-1, keepdim=True) + 1e9), NOT_CAUSAL),
    Case("threshold of each key", least_of_each_key, NOT_CAUSAL),
    Case("threshold of another row", of_another_row, NOT_CAUSAL),
    Case("above the largest", strictly_above, NOT_CAUSAL),
    Case("threshold before the mask", before_the_mask, NOT_CAUSAL),
    Case("mask of the largest", among_largest, CAUSAL),
    Case("mask of the smallest", lambda m, x: among_largest(m, x, largest=False), NOT_CAUSAL),
    Case("mask of the largest of each key", lambda m, x: among_largest(m, x, dim=-2, write=-2), NOT_CAUSAL),
    Case("mask of the largest, along the queries", lambda m, x: among_largest(m, x, write=-2), NOT_CAUSAL),
    Case("largest scores rewritten", rewritten, CAUSAL),
    Case("largest scores rewritten along the queries", lambda m, x: rewritten(m, x, -2), NOT_CAUSAL),
    Case("keys of an index", by_an_index, CAUSAL),
    Case("keys of an index without a mask", lambda m, x: by_an_index(m, x, HIDDEN, hides=False), NOT_CAUSAL),
    Case("largest twice", lambda m, x: two_masks(m, x, second=False), CAUSAL),
    Case("largest of two scores", lambda m, x: two_masks(m, x, second=True), NOT_CAUSAL),
    Case("largest within a window", lambda m, x: another_mask(m, x, 5), CAUSAL),
    Case("largest that a window may hide", lambda m, x: another_mask(m, x, 2), NOT_CAUSAL),
    Case("best key", lambda m, x: best(m, x, lambda s: s.argmax(-1)[..., None]), CAUSAL),
    Case("best key by max", lambda m, x: best(m, x, lambda s: s.max(-1, True)[1], -torch.inf), CAUSAL),
    Case("best key by topk", lambda m, x: best(m, x, lambda s: s.topk(1)[1]), CAUSAL),
    Case("second best key", lambda m, x: best(m, x, lambda s: s.topk(2)[1][..., 1:]), NOT_CAUSAL),
    Case("worst key", lambda m, x: best(m, x, lambda s: s.argmin(-1)[..., None]), NOT_CAUSAL),
    Case("largest weights", largest_weights, CAUSAL),
    Case("weights as large as those of another row", lambda m, x: largest_weights(m, x, own=False), NOT_CAUSAL),
    Case("best key of a choice", best_of_a_choice, NOT_CAUSAL),
    Case("best key of none", best_of_none, NOT_CAUSAL),
    Case("threshold of other scores", by_other_scores, NOT_CAUSAL),
    Case("best key of all", lambda m, x: best(m, x, lambda s: s.argmax(-1)[..., None], 0.0), NOT_CAUSAL),
]  # fmt: skip
MUTANTS = [
    *mutants_of(
        "theorems.walks.largest_scores",
        M("threshold_of_other_scores", "ranked.scores is not scores", "False", program="threshold of other scores"),
        M("threshold_of_each_key", "one.dims[dim] != one.dim", "False", program="threshold of each key"),
        M("strictly_above", '{"lt": False, "ge": True}', '{"lt": False, "ge": True, "gt": True}',
          program="above the largest", quick=True),
        M("smallest_places", 'call.argument(3, "largest", True) is True', "True", program="mask of the smallest"),
        M("any_of_several_places", 'call.argument(1, "k") == 1', "True", program="second best key"),
        M("best_of_all_is_visible", "implication(has_largest, visible)", "visible", program="best key of none"),
    ),
    *mutants_of(
        "theorems.walks.at_largest",
        M("other_masks_keep_it", "call.context.proves(implication(visible, test), sizes)", "True",
          program="largest that a window may hide"),
        M("ranked_scores_at_the_largest", "own.known not in OF_EACH", "True",
          program="best key of a choice"),
    ),
    *mutants_of(
        "theorems.operators.scatter.scatter",
        M("scores_written_along_another_dimension", "(one.dim, one.dims) == (dim, tuple(range(rank)))", "True",
          program="largest scores rewritten along the queries"),
    ),
]  # fmt: skip
