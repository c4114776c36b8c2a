"""Recommenders, tables, sets, and graphs whose edges are a mask."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.unseen.claims import WIDTH, Corpus, Parts, later

UNSEEN = Corpus()
INF = float("-inf")


@UNSEEN.add(masked=True, padding=True, causal=True, batch=True)
def histories_with_a_timeline_mask(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    t = x.shape[1]
    y = x * WIDTH**0.5 + m.table(torch.arange(t))
    y = y * mask.unsqueeze(-1)
    hidden = ~torch.tril(torch.ones((t, t), dtype=torch.bool))
    w = m.scores(y).masked_fill(hidden, INF).softmax(-1)
    y = (m.norm(y) + w @ m.v(y)) * mask.unsqueeze(-1)
    return m.norm(y + m.down(F.relu(m.up(y))))


@UNSEEN.add(masked=True, padding=False, causal=True, batch=True)
def timeline_mask_after_attention(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    t = x.shape[1]
    y = x * WIDTH**0.5 + m.table(torch.arange(t))
    hidden = ~torch.tril(torch.ones((t, t), dtype=torch.bool))
    y = y + m.scores(y).masked_fill(hidden, INF).softmax(-1) @ m.v(y)
    return m.norm(y * mask.unsqueeze(-1))


@UNSEEN.add(masked=True, padding=True, causal=False, batch=True)
def items_masked_on_both_sides(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    y = x + m.table(torch.arange(x.shape[1]))
    q, k, v = m.heads(y)
    seen = (mask > 0).unsqueeze(1).repeat(1, mask.size(1), 1).unsqueeze(1)
    s = (q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))).masked_fill(seen == 0, -1e9)
    return m.norm(x + m.join(F.softmax(s, dim=-1) @ v))


def _times(x: Tensor) -> Tensor:
    return (x[..., 0].abs() * 10).cumsum(1)


@UNSEEN.add(causal=True, batch=True)
def intervals_between_items(m: Parts, x: Tensor) -> Tensor:
    times = _times(x)
    interval = (times[:, :, None] - times[:, None]).abs().clamp(max=31).long()
    q, k, v = m.heads(x)
    s = q @ k.mT + m.bias(interval).permute(0, 3, 1, 2)
    return m.join(s.masked_fill(later(x.shape[1]), -(2**32) + 1).softmax(-1) @ v)


@UNSEEN.add(causal=False, batch=True)
def intervals_in_units_of_the_shortest(m: Parts, x: Tensor) -> Tensor:
    times = _times(x)
    shortest = times.diff(dim=1).amin(dim=1).clamp(min=1)
    interval = ((times[:, :, None] - times[:, None]).abs() / shortest[:, None, None]).clamp(max=31).long()
    q, k, v = m.heads(x)
    s = q @ k.mT + m.bias(interval).permute(0, 3, 1, 2)
    return m.join(s.masked_fill(later(x.shape[1]), INF).softmax(-1) @ v)


@UNSEEN.add(causal=False, permutation=True, batch=True)
def keys_up_to_the_time_of_a_query(m: Parts, x: Tensor) -> Tensor:
    stamp = x[..., 0]
    hidden = stamp[:, None, :] > stamp[:, :, None]
    return m.scores(x).masked_fill(hidden, INF).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def items_of_the_last_hours(m: Parts, x: Tensor) -> Tensor:
    times = _times(x)
    age = times.unsqueeze(2) - times.unsqueeze(1)
    seen = (age < 12.0) & torch.ones_like(age, dtype=torch.bool).tril()
    return torch.where(seen, m.scores(x), -1e9).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=False, batch=True)
def items_of_the_last_hours_without_a_triangle(m: Parts, x: Tensor) -> Tensor:
    times = _times(x)
    age = (times.unsqueeze(2) - times.unsqueeze(1)).abs()
    return torch.where(age < 12.0, m.scores(x), -1e9).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def items_of_the_same_user(m: Parts, x: Tensor) -> Tensor:
    user = (x[..., :2] > 0).long() @ torch.tensor([1, 2])
    bias = torch.where(user[:, :, None] == user[:, None, :], 0.0, -10000.0)
    bias = bias + torch.full((x.shape[1], x.shape[1]), -10000.0).triu(1)
    return (m.scores(x) + bias).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def sessions_split_at_long_gaps(m: Parts, x: Tensor) -> Tensor:
    gap = F.pad(_times(x).diff(dim=1), (1, 0)) > 10.0
    session = gap.cumsum(1)
    same = session[..., None] == session[:, None]
    return m.scores(x).masked_fill(~(same & ~later(x.shape[1])), INF).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def state_reset_at_each_session(m: Parts, x: Tensor) -> Tensor:
    starts = (x[..., 0] > 1.0).to(x.dtype)
    h, out = torch.zeros_like(x[:, 0]), []
    for i in range(x.shape[1]):
        h = m.cell(x[:, i], h * (1 - starts[:, i, None]))
        out.append(h)
    return torch.stack(out, 1)


def _interest(m: Parts, x: Tensor, target: Tensor) -> Tensor:
    target = target.expand_as(x)
    return torch.sigmoid(m.q(x) + m.k(target) + m.v(x - target) + m.gate(x * target)).mean(-1, keepdim=True)


@UNSEEN.add(masked=True, padding=True, batch=True)
def interest_in_a_candidate(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    w = _interest(m, x, m.latents[:1]) * mask.unsqueeze(-1)
    return m.o((w * x).sum(1))


@UNSEEN.add(masked=True, padding=False, batch=True)
def interest_in_the_last_item(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    w = _interest(m, x, x[:, -1:]).masked_fill(mask.unsqueeze(-1) == 0, 0.0)
    return m.o((w * x).sum(1))


@UNSEEN.add(masked=True, padding=False, batch=True)
def intent_of_the_last_click(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    last = (mask.sum(1) - 1)[:, None, None].expand(-1, 1, WIDTH)
    alpha = torch.sigmoid(m.q(x) + m.k(x.gather(1, last))).sum(-1, keepdim=True)
    return m.o((alpha * x * mask[..., None]).sum(1))


@UNSEEN.add(causal=True, batch=True)
def factors_of_all_pairs_before(m: Parts, x: Tensor) -> Tensor:
    v = m.v(x)
    return 0.5 * (v.cumsum(1).square() - v.square().cumsum(1))


@UNSEEN.add(permutation=True, batch=True)
def factors_of_all_pairs(m: Parts, x: Tensor) -> Tensor:
    v = m.v(x)
    return 0.5 * (v.sum(1).pow(2) - v.pow(2).sum(1)).sum(-1, keepdim=True)


@UNSEEN.add(causal=False, batch=True)
def next_item_as_a_feature(m: Parts, x: Tensor) -> Tensor:
    following = F.pad(x, (0, 0, 0, 1))[:, 1:]
    s = m.scores(m.q(x) + m.k(following)).masked_fill(later(x.shape[1]), INF)
    return s.softmax(-1) @ m.v(x)


@UNSEEN.add(causal=False, permutation=True, batch=True)
def equivariant_layer_of_a_set(m: Parts, x: Tensor) -> Tensor:
    return F.elu(m.q(x - x.mean(1, keepdim=True)) + m.k(x.amax(1, keepdim=True)))


@UNSEEN.add(permutation=False, batch=True)
def set_of_numbered_elements(m: Parts, x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1], dtype=x.dtype)[:, None]
    return m.o(F.relu(m.v(x + 0.1 * i)).amax(1))


def _cross(m: Parts, x: Tensor, y: Tensor) -> Tensor:
    h = x + (m.q(x) @ m.k(y).mT / math.sqrt(WIDTH)).softmax(-1) @ m.v(y)
    return m.norm(h + F.relu(m.o(h)))


@UNSEEN.add(permutation=True, causal=False, batch=True)
def induced_set_attention(m: Parts, x: Tensor) -> Tensor:
    return _cross(m, x, _cross(m, m.latents.expand(x.shape[0], -1, -1), x))


@UNSEEN.add(permutation=True, batch=True)
def set_pooled_by_seeds(m: Parts, x: Tensor) -> Tensor:
    seeds = m.latents.repeat(x.shape[0], 1, 1)
    return m.gate(_cross(m, seeds, _cross(m, x, x)).flatten(1).view(-1, 3, WIDTH).sum(1))


@UNSEEN.add(masked=True, padding=True, causal=False, batch=True)
def induced_points_of_real_elements(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    seeds = m.latents.expand(x.shape[0], -1, -1)
    s = (m.q(seeds) @ m.k(x).mT).masked_fill(~mask.bool()[:, None], INF)
    return _cross(m, x, seeds + s.softmax(-1) @ m.v(x))


@UNSEEN.add(causal=False, permutation=True, batch=True)
def slots_compete_for_tokens(m: Parts, x: Tensor) -> Tensor:
    y, slots = m.norm(x), m.latents.expand(x.shape[0], -1, -1)
    k, v = m.k(y), m.v(y)
    for _ in range(3):
        w = (k @ m.q(m.norm(slots)).mT / math.sqrt(WIDTH)).softmax(-1) + 1e-8
        updates = (w / w.sum(1, keepdim=True)).mT @ v
        slots = m.cell(updates.reshape(-1, WIDTH), slots.reshape(-1, WIDTH)).view(x.shape[0], -1, WIDTH)
    return w @ slots


@UNSEEN.add(masked=True, padding=True, batch=True)
def slots_of_real_tokens(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    slots = m.latents.expand(x.shape[0], -1, -1)
    for _ in range(2):
        w = (m.k(x) @ m.q(slots).mT).softmax(-1) * mask[..., None]
        slots = slots + m.o((w / (w.sum(1, keepdim=True) + 1e-8)).mT @ m.v(x))
    return slots.mean(1)


@UNSEEN.add(masked=True, padding=False, batch=True)
def slots_of_all_tokens(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    slots = m.latents.expand(x.shape[0], -1, -1)
    for _ in range(2):
        w = (m.k(x) @ m.q(slots).mT).softmax(1)
        slots = slots + m.o(w.mT @ (m.v(x) * mask[..., None]))
    return slots.mean(1)


@UNSEEN.add(permutation=False, batch=True)
def columns_with_their_own_weights(m: Parts, x: Tensor) -> Tensor:
    y = x * m.table.weight[: x.shape[1]] + m.square[: x.shape[1], :WIDTH]
    y = torch.cat([m.latents[:1].expand(x.shape[0], 1, -1), y], 1)
    return m.o(F.relu(m.norm((m.scores(y).softmax(-1) @ m.v(y))[:, 0])))


@UNSEEN.add(permutation=True, batch=True)
def columns_with_the_same_weights(m: Parts, x: Tensor) -> Tensor:
    y = torch.cat([x, m.latents[:1].expand(x.shape[0], 1, -1)], 1)
    return m.o(F.relu(m.norm((m.scores(y).softmax(-1) @ m.v(y))[:, -1])))


@UNSEEN.add(batch=False, permutation=True)
def attention_between_samples(m: Parts, x: Tensor) -> Tensor:
    y = x.transpose(0, 1)
    return (m.scores(y).softmax(-1) @ m.v(y)).transpose(0, 1)
