"""Causal attention that hides pads by their ids, with -inf: a first token that is a pad sees no key."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from orderproof import audit
from orderproof.number_limits import VISIBLE_ROW_ASSUMPTION

TOKENS, VOCABULARY = 7, 5000  # a random id is hardly that of a pad

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]  # of scores, pads and values


def later(scores: Tensor) -> Tensor:
    return torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)


def hidden(scores: Tensor, pads: Tensor) -> Tensor:
    return scores.masked_fill(pads | later(scores), -torch.inf)


def one_mask(scores: Tensor, pads: Tensor, x: Tensor) -> Tensor:
    return hidden(scores, pads).softmax(-1) @ x


def two_masks(scores: Tensor, pads: Tensor, x: Tensor) -> Tensor:
    return (scores + torch.zeros(TOKENS, TOKENS).masked_fill(later(scores), -torch.inf)).masked_fill(
        pads, -torch.inf
    ).softmax(-1) @ x


def added_masks(scores: Tensor, pads: Tensor, x: Tensor) -> Tensor:
    masks = torch.full((TOKENS, TOKENS), -torch.inf).triu(1) + torch.zeros(pads.shape).masked_fill(pads, -torch.inf)
    return (scores + masks).softmax(-1) @ x


def finite(scores: Tensor, pads: Tensor, x: Tensor) -> Tensor:
    return scores.masked_fill(pads | later(scores), -1e9).softmax(-1) @ x


def mean_in_place_of_nan(scores: Tensor, pads: Tensor, x: Tensor) -> Tensor:
    found = one_mask(scores, pads, x)
    return torch.where(found.isnan(), x.mean(1, keepdim=True), found)


def number_in_place_of_nan(scores: Tensor, pads: Tensor, x: Tensor) -> Tensor:
    return hidden(scores, pads).softmax(-1).nan_to_num(0.1) @ x


def unequal_to_itself(scores: Tensor, pads: Tensor, x: Tensor) -> Tensor:
    found = one_mask(scores, pads, x)
    return torch.where(found != found, x.mean(1, keepdim=True), found)


def seen_at_pads(scores: Tensor, pads: Tensor, x: Tensor) -> Tensor:
    return scores.masked_fill(later(scores) & ~pads, -torch.inf).softmax(-1) @ x


class Model(nn.Module):
    """Attention on the words of ids; the id of a pad is 0."""

    def __init__(self, attend: Attend) -> None:
        super().__init__()
        self.words, self.key, self.attend = nn.Embedding(VOCABULARY, 16), nn.Linear(16, 16), attend

    def forward(self, ids: Tensor) -> Tensor:
        x = self.words(ids)
        return self.attend(x @ self.key(x).transpose(1, 2), ids.eq(0)[:, None], x)


@pytest.mark.parametrize("attend", [one_mask, two_masks, added_masks])
def test_it_is_causal_where_each_token_sees_a_key(attend: Attend) -> None:
    (finding,) = audit(Model(attend).eval(), inputs=torch.randint(1, VOCABULARY, (2, TOKENS)), laws=["causal"]).findings
    assert finding.verdict == "proved"
    assert VISIBLE_ROW_ASSUMPTION in finding.scope.assumptions


@pytest.mark.parametrize(
    "attend", [finite, mean_in_place_of_nan, number_in_place_of_nan, unequal_to_itself, seen_at_pads]
)
def test_what_a_token_without_a_key_reads_is_not_assumed_away(attend: Attend) -> None:
    (finding,) = audit(Model(attend).eval(), inputs=torch.randint(1, VOCABULARY, (2, TOKENS)), laws=["causal"]).findings
    assert finding.verdict != "proved"
