"""Attention to the keys with the k largest scores, causal and not."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.diagnosis.corpus.parts import LOWEST
from tests.diagnosis.walking import Function


def band(x: Tensor, width: int) -> Tensor:
    """A sliding window of this width, as a mask to be added to the scores."""
    place = torch.arange(x.shape[1])
    distance = place[:, None] - place
    return torch.zeros(distance.shape).masked_fill((distance < 0) | (distance >= width), LOWEST)


def ranked(x: Tensor, mask: Tensor) -> Tensor:
    """Scores by which keys are chosen, not those that weigh them."""
    return x.sin() @ x.cos().transpose(1, 2) + mask


def chosen(x: Tensor, places: Tensor, mask: Tensor, dim: int = -1) -> Tensor:
    """Attention to the chosen keys alone, under a mask that is added."""
    left_out = torch.ones(x.shape[0], x.shape[1], x.shape[1], dtype=torch.bool).scatter(dim, places, False)
    return (x @ x.transpose(1, 2) + mask.masked_fill(left_out, LOWEST)).softmax(-1) @ x


def sparse(x: Tensor, width: int, count: int, *, largest: bool = True, narrow: bool = False) -> Tensor:
    mask = band(x, width)
    places = ranked(x, mask).topk(count, -1, largest).indices
    return chosen(x, places.int().long() if narrow else places, mask)


def all_of_them(x: Tensor, *, largest: bool = True) -> Tensor:
    """As many as there are keys: whichever order they come in, each is chosen."""
    return chosen(x, (x @ x.transpose(1, 2)).topk(x.shape[1], -1, largest).indices, band(x, x.shape[1]))


def of_two(x: Tensor, *, second: bool) -> Tensor:
    """Two choices of which as much is known, but not the same: the smallest are no visible keys."""
    mask = band(x, 2)
    ranks = ranked(x, mask)
    return chosen(x, ranks.topk(2, -1).indices, mask) + chosen(x, ranks.topk(2, -1, not second).indices, mask)


PROVED: dict[str, Function] = {
    "as_many_as_are_visible": lambda x: sparse(x, 2, 2),
    "more_than_are_visible": lambda x: sparse(x, 2, 4),
    "through_narrower_numbers": lambda x: sparse(x, 3, 3, narrow=True),
    "all_of_them": all_of_them,
    "all_of_them_from_the_smallest": lambda x: all_of_them(x, largest=False),
    "of_queries_for_each_key": lambda x: chosen(x, ranked(x, band(x, 2)).topk(2, 1).indices, band(x, 2), dim=1),
    "two_choices": lambda x: of_two(x, second=False),
}

BROKEN: dict[str, Function] = {
    "the_smallest": lambda x: sparse(x, 2, 2, largest=False),
    "scores_without_a_mask": lambda x: chosen(x, ranked(x, torch.zeros(())).topk(2, -1).indices, band(x, 2)),
    "places_moved_on": lambda x: chosen(x, (ranked(x, band(x, 2)).topk(2, -1).indices + 1) % x.shape[1], band(x, 2)),
    "written_across": lambda x: chosen(x, ranked(x, torch.zeros(())).topk(x.shape[1], -1).indices, band(x, 2), dim=1),
    "two_choices_of_which_one_is_of_the_smallest": lambda x: of_two(x, second=True),
}

OPEN: dict[str, Function] = {  # true, and not said: one of them is, but not which
    "fewer_than_are_visible": lambda x: sparse(x, 3, 2),
}
