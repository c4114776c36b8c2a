"""Rows read at an index of their own, and bags of embeddings; each proof has a faulty twin."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.auditing.law_pairs import IDS, VECTORS, verdicts


class Pooled(nn.Module):
    """A causal model whose output for a row is that of one token (CLIP takes the one with the largest id)."""

    def __init__(self, place):
        super().__init__()
        self.place = place
        self.embedding = nn.Embedding(32, 16)

    def forward(self, ids):
        x = self.embedding(ids).cumsum(1)
        rows, tokens = self.place(ids)
        return x[rows, tokens]


def rows(ids):
    return torch.arange(ids.shape[0])


@pytest.mark.parametrize(
    "place",
    [
        lambda ids: (rows(ids), ids.argmax(-1)),
        lambda ids: (rows(ids), (ids == 31).int().argmax(-1)),
        lambda ids: (rows(ids), (ids != 0).sum(-1) - 1),
        lambda ids: (rows(ids)[:, None], ids.argsort(-1)[:, :2]),
        lambda ids: (rows(ids) - ids.shape[0], ids.argmax(-1)),
    ],
)
def test_a_token_of_the_own_row_is_read(place):
    assert verdicts(Pooled(place), ["batch"], IDS) == {"batch": "proved"}


@pytest.mark.parametrize(
    "place",
    [
        lambda ids: (rows(ids).flip(0), ids.argmax(-1)),
        lambda ids: (rows(ids), ids.argmax(-1).flip(0)),
        lambda ids: (rows(ids).clamp(max=1), ids.argmax(-1)),
        lambda ids: (ids.argmax(-1) % ids.shape[0], ids.argmax(-1)),
    ],
)
def test_a_token_of_another_row_is_read(place):
    assert verdicts(Pooled(place), ["batch"], IDS) == {"batch": "refuted"}


class Offsets(nn.Module):
    """Bags of equally many tokens, from a shifted offset on."""

    def __init__(self, shift, mode="mean"):
        super().__init__()
        self.shift = shift
        self.bag = nn.EmbeddingBag(32, 16, mode=mode)

    def forward(self, ids):
        starts = torch.arange(0, ids.numel(), ids.shape[1])
        starts = torch.where(starts > 0, starts + self.shift, starts)
        return self.bag(ids.flatten(), starts)


@pytest.mark.parametrize("options", [{"mode": "mean"}, {"mode": "max"}, {"mode": "sum", "padding_idx": 0}])
def test_a_bag_of_a_row_keeps_no_order(options):
    found = verdicts(nn.EmbeddingBag(32, 16, **options), ["permutation", "batch"], IDS)
    assert found == {"permutation": "proved", "batch": "proved"}


@pytest.mark.parametrize(("shift", "verdict"), [(0, "proved"), (1, "refuted"), (-1, "refuted")])
def test_a_bag_with_a_token_of_another_row_mixes_rows(shift, verdict):
    assert verdicts(Offsets(shift), ["permutation", "batch"], IDS) == {"permutation": verdict, "batch": verdict}


def test_offsets_that_depend_on_tokens_prove_nothing():
    class Ragged(Offsets):
        def forward(self, ids):
            return self.bag(ids.flatten(), torch.cat([ids.new_zeros(1), ids[0, :2].sort().values]))

    assert "proved" not in verdicts(Ragged(0), ["permutation"], IDS).values()


class Memory(nn.Module):
    """A bag of the best keys of each token, or of each pair of tokens."""

    def __init__(self, tokens=1):
        super().__init__()
        self.scores, self.bag, self.tokens = nn.Linear(16, 32), nn.EmbeddingBag(32, 16, mode="sum"), tokens

    def forward(self, x):
        values, keys = self.scores(x).topk(3, -1)
        bags = x.shape[0] * x.shape[1] // self.tokens
        found = self.bag(keys.reshape(bags, -1), per_sample_weights=values.reshape(bags, -1).sigmoid())
        return found.view(x.shape[0], -1, 16).repeat_interleave(self.tokens, 1)


@pytest.mark.parametrize(("tokens", "verdict"), [(1, "proved"), (2, "refuted")])
def test_a_bag_of_each_token_moves_with_it(tokens, verdict):
    found = verdicts(Memory(tokens), ["permutation", "causal", "batch"])
    assert found == {"permutation": verdict, "causal": verdict, "batch": "proved"}


class Cached(nn.Module):
    """Attention over a cache of keys, written at positions (gpt-fast, litgpt)."""

    def __init__(self, shift=0, copy=False):
        super().__init__()
        self.shift, self.copy = shift, copy
        self.inner = nn.Linear(16, 48)
        self.register_buffer("keys", torch.zeros(2, 32, 16))
        self.register_buffer("values", torch.zeros(2, 32, 16))
        self.register_buffer("mask", torch.tril(torch.ones(32, 32, dtype=torch.bool)))

    def forward(self, x):
        positions = torch.arange(x.shape[1])
        query, key, value = self.inner(x).chunk(3, -1)
        places = (positions + x.shape[1] - self.shift) % x.shape[1]
        if self.copy:
            keys, values = (old.index_copy(1, places, new) for old, new in ((self.keys, key), (self.values, value)))
        else:
            keys, values = self.keys.clone(), self.values.clone()
            keys[:, places], values[:, places] = key, value
        return nn.functional.scaled_dot_product_attention(query, keys, values, attn_mask=self.mask[positions])


@pytest.mark.parametrize("copy", [False, True])
@pytest.mark.parametrize(("shift", "verdict"), [(0, "proved"), (1, "refuted")])
def test_a_cache_that_is_written_at_constant_positions(shift, verdict, copy):
    found = verdicts(Cached(shift, copy), ["causal", "batch"], VECTORS)
    assert found == {"causal": verdict, "batch": "proved"}


def test_a_cache_that_is_written_twice_at_one_position_proves_nothing():
    class Twice(Cached):
        def forward(self, x):
            places = torch.arange(x.shape[1]) // 2
            keys = self.keys.clone()
            keys[:, places] = x
            return x + keys[:, : x.shape[1]]

    assert verdicts(Twice(), ["causal"], VECTORS)["causal"] != "proved"
