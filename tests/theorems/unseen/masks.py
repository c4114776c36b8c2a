"""Masks, and how they are made."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.theorems.unseen.claims import HEADS, Corpus, Parts, later

UNSEEN = Corpus()
INF = float("-inf")


def _attend(m: Parts, x: Tensor, seen: Tensor) -> Tensor:
    return m.scores(x).masked_fill(~seen, INF).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def triangle_of_numpy(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    return _attend(m, x, torch.from_numpy(np.tril(np.ones((t, t)))).bool())


@UNSEEN.add(causal=False, batch=True)
def triangle_of_numpy_one_too_far(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    return _attend(m, x, torch.from_numpy(np.tril(np.ones((t, t)), k=1)).bool())


@UNSEEN.add(causal=True, batch=True)
def triangle_of_numpy_as_uint8(m: Parts, x: Tensor) -> Tensor:
    size = (1, x.shape[1], x.shape[1])
    return _attend(m, x, torch.from_numpy(np.triu(np.ones(size), k=1).astype("uint8")) == 0)


@lru_cache(maxsize=8)
def _kept(t: int) -> Tensor:
    return torch.full((t, t), INF).triu(1)


@UNSEEN.add(causal=True, batch=True)
def mask_kept_by_its_length(m: Parts, x: Tensor) -> Tensor:
    return (m.scores(x) + _kept(x.shape[1])).softmax(-1) @ m.v(x)


@lru_cache(maxsize=8)
def _kept_wrong(t: int) -> Tensor:
    return torch.full((t, t), INF).triu(2)


@UNSEEN.add(causal=False, batch=True)
def mask_kept_one_too_far(m: Parts, x: Tensor) -> Tensor:
    return (m.scores(x) + _kept_wrong(x.shape[1])).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=False, batch=True, tokens=65)  # where the bits of an integer end
def rows_as_bits(m: Parts, x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1])
    bits = (1 << (i + 1)) - 1
    return _attend(m, x, (bits[:, None] >> i[None]) & 1 == 1)


@UNSEEN.add(causal=False, batch=True)
def rows_as_bits_one_too_far(m: Parts, x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1])
    bits = (1 << (i + 2)) - 1
    return _attend(m, x, (bits[:, None] >> i[None]) & 1 == 1)


@UNSEEN.add(causal=True, batch=True)
def large_number_added(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    return (m.scores(x) + (1 - torch.tril(torch.ones(t, t))) * -1e9).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def smallest_number(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    mask = torch.full((t, t), torch.finfo(x.dtype).min)
    i = torch.arange(t)
    mask.masked_fill_(i < (i + 1).view(t, 1), 0)
    return (m.scores(x) + mask[None]).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def mask_of_torch(m: Parts, x: Tensor) -> Tensor:
    return (m.scores(x) + nn.Transformer.generate_square_subsequent_mask(x.shape[1])).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=False, batch=True)
def mask_of_torch_transposed(m: Parts, x: Tensor) -> Tensor:
    return (m.scores(x) + nn.Transformer.generate_square_subsequent_mask(x.shape[1]).T).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=False, batch=True)
def hidden_keys_as_seen_ones(m: Parts, x: Tensor) -> Tensor:
    return m.join(F.scaled_dot_product_attention(*m.heads(x), attn_mask=later(x.shape[1], 0)))


@UNSEEN.add(causal=True, batch=True)
def comprehension(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    return _attend(m, x, torch.tensor([[j <= i for j in range(t)] for i in range(t)]))


@UNSEEN.add(causal=False, batch=True)
def blocks_by_kron(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    seen = torch.kron(torch.eye((t + 1) // 2), torch.ones(2, 2))[:t, :t].bool()
    return _attend(m, x, seen)


@UNSEEN.add(causal=True, batch=True)
def part_of_a_buffer(m: Parts, x: Tensor) -> Tensor:
    q, k, v = m.heads(x)
    t, whole = q.shape[-2], k.shape[-2]
    seen = m.triangle[:, :, whole - t : whole, :whole]
    s = torch.where(seen, q @ k.mT, torch.full([], torch.finfo(x.dtype).min))
    return m.join(s.softmax(-1) @ v)


@UNSEEN.add(causal=False, batch=True)
def wrong_part_of_a_buffer(m: Parts, x: Tensor) -> Tensor:
    q, k, v = m.heads(x)
    t = q.shape[-2]
    return m.join((q @ k.mT).masked_fill(~m.triangle[:, :, -t:, :t], INF).softmax(-1) @ v)


@UNSEEN.add(causal=True, batch=True)
def greater_or_equal(m: Parts, x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1])
    return _attend(m, x, i.unsqueeze(1).ge(i))


@UNSEEN.add(causal=False, batch=True)
def less_or_equal(m: Parts, x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1])
    return _attend(m, x, i.unsqueeze(1).le(i))


@UNSEEN.add(causal=True, batch=True)
def grids(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    i, j = torch.meshgrid(torch.arange(t), torch.arange(t), indexing="ij")
    return _attend(m, x, i >= j)


@UNSEEN.add(causal=True, batch=True)
def running_sum_of_the_identity(m: Parts, x: Tensor) -> Tensor:
    return _attend(m, x, torch.eye(x.shape[1]).cumsum(0) > 0)


@UNSEEN.add(causal=False, batch=True)
def running_sum_along_keys(m: Parts, x: Tensor) -> Tensor:
    return _attend(m, x, torch.eye(x.shape[1]).cumsum(1) > 0)


@UNSEEN.add(causal=True, batch=True)
def indices_of_a_triangle(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    seen = torch.zeros(t, t, dtype=torch.bool)
    i, j = torch.tril_indices(t, t)
    seen[i, j] = True
    return _attend(m, x, seen)


@UNSEEN.add(causal=True, batch=True)
def rows_filled_in_a_loop(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    mask = torch.zeros(t, t)
    for i in range(t):
        mask[i, i + 1 :] = INF
    return (m.scores(x) + mask).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=False, batch=True)
def rows_filled_one_too_far(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    mask = torch.zeros(t, t)
    for i in range(t):
        mask[i, i + 2 :] = INF
    return (m.scores(x) + mask).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def times_between_zero_and_one(m: Parts, x: Tensor) -> Tensor:
    time = torch.linspace(0, 1, x.shape[1])
    return _attend(m, x, time[:, None] >= time[None])


@UNSEEN.add(causal=True, batch=True)
def triangle_times_scores_of_log(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    return (m.scores(x) + torch.ones(t, t).tril().log()).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def mask_for_each_head(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    mask = later(t)[None].repeat(x.shape[0] * HEADS, 1, 1)
    q, k, v = (y.flatten(0, 1) for y in m.heads(x))
    w = torch.baddbmm(torch.zeros_like(mask, dtype=x.dtype).masked_fill(mask, INF), q, k.mT).softmax(-1)
    return m.join((w @ v).unflatten(0, (x.shape[0], HEADS)))


@UNSEEN.add(causal=True, batch=True)
def windows_by_two_triangles(m: Parts, x: Tensor) -> Tensor:
    ones = torch.ones(x.shape[1], x.shape[1])
    seen = (ones.tril(0) - ones.tril(-4)).bool()
    return _attend(m, x, seen)


@UNSEEN.add(causal=False, batch=True)
def windows_by_two_triangles_around(m: Parts, x: Tensor) -> Tensor:
    ones = torch.ones(x.shape[1], x.shape[1])
    return _attend(m, x, (ones.tril(2) * ones.triu(-2)).bool())


@UNSEEN.add(causal=True, batch=True)
def documents_of_equal_signs(m: Parts, x: Tensor) -> Tensor:
    starts = (x[..., 0] > 1).cumsum(1)
    seen = (starts[:, :, None] == starts[:, None, :]) & ~later(x.shape[1])
    return _attend(m, x, seen)


@UNSEEN.add(causal=False, batch=True)
def documents_without_triangle(m: Parts, x: Tensor) -> Tensor:
    starts = (x[..., 0] > 0).cumsum(1)
    return _attend(m, x, starts[:, :, None] == starts[:, None, :])


@UNSEEN.add(causal=True, batch=True)
def three_dimensional_grid_of_positions(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    row, column = torch.arange(t) // 3, torch.arange(t) % 3
    before = (row[:, None] > row[None]) | ((row[:, None] == row[None]) & (column[:, None] >= column[None]))
    return _attend(m, x, before)
