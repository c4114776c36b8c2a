"""Masks of spans, documents and prefixes."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.unseen.claims import LONGEST, Corpus, Parts, later

UNSEEN = Corpus()
INF = float("-inf")


def _attend(m: Parts, x: Tensor, seen: Tensor) -> Tensor:
    return m.scores(x).masked_fill(seen.logical_not(), INF).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def documents_after_separators(m: Parts, x: Tensor) -> Tensor:
    separator = m.gate(x)[..., 0] > 0.5
    document = separator.long().cumsum(-1) - separator.long()
    same = document.unsqueeze(2).eq(document.unsqueeze(1))
    return _attend(m, x, same & torch.tril(torch.ones_like(same)))


@UNSEEN.add(causal=True, batch=True)
def documents_by_difference(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    document = (x[..., 1] > 1.0).int().cumsum(1)
    different = (document[:, None, :] - document[:, :, None]) != 0
    mask = torch.zeros(x.shape[0], t, t).masked_fill(different | later(t), -1e4)
    return (m.scores(x) + mask).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def documents_numbered_from_the_end(m: Parts, x: Tensor) -> Tensor:
    ends = (x[..., 1] > 0.5).long()
    document = ends.flip(1).cumsum(1).flip(1)
    return _attend(m, x, (document[:, :, None] == document[:, None]) & ~later(x.shape[1]))


@UNSEEN.add(causal=True, batch=True)
def places_restart_at_each_document(m: Parts, x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1])
    start = torch.where(x[..., 0] > 1.0, i, 0).cummax(1).values
    h = x + m.table(i - start)
    return _attend(m, h, (start[:, :, None] == start[:, None]) & ~later(x.shape[1]))


@UNSEEN.add(causal=False, batch=True)
def prefix_up_to_a_share(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    i = torch.arange(t)
    return _attend(m, x, (i[None] <= i[:, None]) | (i[None] < t // 2))


@UNSEEN.add(causal=True, batch=True)
def windows_of_each_head(m: Parts, x: Tensor) -> Tensor:
    q, k, v = m.heads(x)
    d = torch.arange(x.shape[1])[:, None] - torch.arange(x.shape[1])
    width = torch.tensor([2, 5])[:, None, None]
    s = (q @ k.mT).masked_fill((d < 0) | (d >= width), INF)
    return m.join(s.softmax(-1) @ v)


@UNSEEN.add(causal=True, batch=True)
def window_by_the_buffer(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    triangle = m.triangle[0, 0, :t, :t]
    seen = triangle & ~torch.tril(torch.ones(t, t), -4).bool()
    return _attend(m, x, seen)


@UNSEEN.add(causal=True, batch=True)
def chunks_of_local_attention(m: Parts, x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1])
    return _attend(m, x, (i[:, None] // 4 == i[None] // 4) & (i[None] <= i[:, None]))


@UNSEEN.add(causal=False, batch=True)
def chunks_of_full_attention(m: Parts, x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1])
    return _attend(m, x, i[:, None] // 4 >= i[None] // 4)


@UNSEEN.add(causal=True, batch=True)
def doubling_distances(m: Parts, x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1])
    d = i[:, None] - i[None]
    power = (d > 0) & ((d & (d - 1)) == 0)
    return _attend(m, x, (d == 0) | power)


@UNSEEN.add(causal=True, batch=True)
def mask_joined_of_rows(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    i = torch.arange(t)
    hidden = torch.stack([i[None] > i[:, None], i[None] < i[:, None] - 5]).any(0)
    return (m.scores(x) + hidden * -1e30).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def mask_of_minus_ten_thousand(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    bias = m.triangle[:, 0, :t, :t]
    w = torch.where(bias, m.scores(x), torch.tensor(-1e4))
    return F.softmax(w, dim=-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def scores_multiplied_then_shifted(m: Parts, x: Tensor) -> Tensor:
    b = torch.ones(x.shape[1], x.shape[1]).tril()
    w = m.scores(x) * b - 1e10 * (1 - b)
    return w.softmax(-1) @ m.v(x)


@UNSEEN.add(causal=False, batch=True)
def scores_multiplied_only(m: Parts, x: Tensor) -> Tensor:
    b = torch.ones(x.shape[1], x.shape[1]).tril()
    return (m.scores(x) * b).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def mask_made_at_the_longest_size(m: Parts, x: Tensor) -> Tensor:
    full = torch.full((LONGEST, LONGEST), INF)
    full = torch.triu(full, diagonal=1)
    return (m.scores(x) + full[: x.shape[1], : x.shape[1]]).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=False, batch=True)
def mask_cut_at_the_end_of_keys(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    full = torch.full((LONGEST, LONGEST), INF).triu(1)
    return (m.scores(x) + full[-t - 1 : -1, :t]).softmax(-1) @ m.v(x)


@UNSEEN.add(masked=True, padding=True, causal=True, batch=True)
def padding_and_triangle_by_minimum(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    t = x.shape[1]
    both = torch.minimum(mask[:, None].expand(-1, t, -1), torch.ones(t, t, dtype=torch.long).tril())
    return m.scores(x).masked_fill(both == 0, -1e9).softmax(-1) @ m.v(x)


@UNSEEN.add(masked=True, padding=True, batch=True)
def documents_in_the_mask(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    same = (mask[:, :, None] == mask[:, None, :]) & (mask[:, None, :] > 0)
    w = m.scores(x).masked_fill(~same, -1e9).softmax(-1)
    return w @ m.v(x)


@UNSEEN.add(masked=True, padding=True, batch=True)
def pads_see_themselves(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    t = x.shape[1]
    seen = mask[:, None].bool() | torch.eye(t, dtype=torch.bool)
    seen = torch.where(mask[..., None].bool(), mask[:, None].bool().expand(-1, t, -1), seen)
    return _attend(m, x, seen)


@UNSEEN.add(masked=True, padding=False, batch=True)
def diagonal_always_seen_and_next(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    t = x.shape[1]
    i = torch.arange(t)
    near = (i[:, None] - i[None]).abs() <= 1
    return _attend(m, x, mask[:, None].bool() | near)


@UNSEEN.add(masked=True, padding=False, batch=True)
def small_number_at_pads(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    return (m.scores(x) + (1 - mask[:, None].to(x.dtype)) * -5.0).softmax(-1) @ m.v(x)
