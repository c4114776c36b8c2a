"""Tokens, keys and experts that are chosen: thresholds, capacities, hashes and orders."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.unseen.claims import WIDTH, Corpus, Parts, later

UNSEEN = Corpus()
INF = float("-inf")


@UNSEEN.add(causal=True, batch=True)
def keys_above_the_third_best(m: Parts, x: Tensor) -> Tensor:
    s = m.scores(x).masked_fill(later(x.shape[1]), INF)
    third = s.topk(3, dim=-1).values[..., -1:]
    return s.masked_fill(s < third, INF).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=False, batch=True)
def keys_above_the_third_best_of_all(m: Parts, x: Tensor) -> Tensor:
    s = m.scores(x)
    third = s.topk(3, dim=-1).values[..., -1:]
    seen = ((s >= third) & ~later(x.shape[1])) | torch.eye(x.shape[1], dtype=torch.bool)
    return s.masked_fill(~seen, INF).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def keys_of_most_of_the_weight(m: Parts, x: Tensor) -> Tensor:
    p = m.scores(x).masked_fill(later(x.shape[1]), INF).softmax(-1)
    values, index = p.sort(dim=-1, descending=True)
    cut = (values.cumsum(-1) - values) > 0.9
    hidden = torch.zeros_like(cut).scatter(-1, index, cut)
    p = p.masked_fill(hidden, 0.0)
    return p / p.sum(-1, keepdim=True) @ m.v(x)


def _gates(m: Parts, x: Tensor) -> tuple[Tensor, Tensor]:
    gate, expert = m.router(x).softmax(-1).max(-1)
    return gate, F.one_hot(expert, 4)


def _experts(m: Parts, x: Tensor, weights: Tensor) -> Tensor:
    return torch.einsum("bte,ebtd->btd", weights.to(x.dtype), torch.stack([f(x) for f in m.experts]))


@UNSEEN.add(causal=True, batch=True)
def capacity_in_order_of_tokens(m: Parts, x: Tensor) -> Tensor:
    gate, chosen = _gates(m, x)
    place = (chosen.cumsum(1) * chosen).sum(-1)
    kept = (place <= 2).to(x.dtype)
    return _experts(m, x, chosen * (gate * kept)[..., None])


@UNSEEN.add(causal=False, batch=True)
def capacity_in_order_of_gates(m: Parts, x: Tensor) -> Tensor:
    gate, chosen = _gates(m, x)
    order = gate.argsort(dim=1, descending=True)
    ranked = chosen.gather(1, order[..., None].expand_as(chosen))
    place = (ranked.cumsum(1) * ranked).sum(-1).gather(1, order.argsort(1))
    return _experts(m, x, chosen * (gate * (place <= 2))[..., None])


@UNSEEN.add(causal=False, permutation=True, batch=True)
def experts_choose_the_best_tokens(m: Parts, x: Tensor) -> Tensor:
    p = m.router(x).softmax(-1)
    index = p.topk(2, dim=1).indices
    kept = torch.zeros_like(p).scatter(1, index, 1.0)
    return x + _experts(m, x, p * kept)


@UNSEEN.add(causal=False, permutation=True, batch=True)
def experts_balanced_by_their_load(m: Parts, x: Tensor) -> Tensor:
    logits = m.router(x)
    load = F.one_hot(logits.argmax(-1), 4).to(x.dtype).mean(1, keepdim=True)
    _, index = (logits - load).topk(2, dim=-1)
    kept = torch.zeros_like(logits).scatter(-1, index, 1.0)
    return _experts(m, x, logits.sigmoid() * kept)


@UNSEEN.add(causal=True, permutation=True, batch=True)
def two_best_experts_of_groups(m: Parts, x: Tensor) -> Tensor:
    scores = m.router(x).sigmoid()
    group = scores.view(*scores.shape[:2], 2, 2).amax(-1).argmax(-1)
    mask = F.one_hot(group, 2).repeat_interleave(2, -1)
    w, index = (scores * mask).topk(2, dim=-1)
    dense = torch.zeros_like(scores).scatter_(-1, index, w / (w.sum(-1, keepdim=True) + 1e-20))
    return _experts(m, x, dense)


@UNSEEN.add(causal=True, batch=True)
def tokens_sent_to_experts_by_index(m: Parts, x: Tensor) -> Tensor:
    flat = x.reshape(-1, WIDTH)
    gate, expert = m.router(flat).softmax(-1).max(-1)
    out = torch.zeros_like(flat)
    for e, layer in enumerate(m.experts):
        rows = torch.where(expert == e)[0]
        out.index_add_(0, rows, layer(flat[rows]) * gate[rows, None])
    return out.view_as(x)


@UNSEEN.add(causal=False, batch=False)
def gates_over_the_whole_batch(m: Parts, x: Tensor) -> Tensor:
    flat = x.reshape(-1, WIDTH)
    gate = m.router(flat).softmax(0)
    return _experts(m, x, gate.view(*x.shape[:2], 4))


def _bucket(m: Parts, x: Tensor) -> Tensor:
    r = F.normalize(m.q(x), dim=-1) @ m.square[:WIDTH, :2]
    return torch.cat([r, -r], -1).argmax(-1)


@UNSEEN.add(causal=True, batch=True)
def earlier_keys_of_the_same_hash(m: Parts, x: Tensor) -> Tensor:
    bucket = _bucket(m, x)
    seen = (bucket[:, :, None] == bucket[:, None]) & ~later(x.shape[1])
    s = m.scores(x) - 1e5 * torch.eye(x.shape[1])
    return s.masked_fill(~seen, -1e9).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=False, batch=True)
def chunks_of_tokens_sorted_by_hash(m: Parts, x: Tensor) -> Tensor:
    t, d = x.shape[1:]
    order = (_bucket(m, x) * t + torch.arange(t)).argsort(1)
    index = order[..., None].expand(-1, -1, d)
    chunk = torch.arange(t) // 4
    y = x.gather(1, index)
    hidden = (chunk[:, None] != chunk) | (order[:, None] > order[..., None])
    y = m.scores(y).masked_fill(hidden, INF).softmax(-1) @ m.v(y)
    return torch.zeros_like(x).scatter(1, index, y)


@UNSEEN.add(causal=False, permutation=True, batch=True)
def ranks_as_positions(m: Parts, x: Tensor) -> Tensor:
    rank = m.router(x)[..., 0].argsort(1).argsort(1)
    y = x + m.table(rank)
    return m.scores(y).softmax(-1) @ m.v(y)


@UNSEEN.add(causal=True, batch=True)
def ranks_among_earlier_tokens(m: Parts, x: Tensor) -> Tensor:
    score = m.router(x)[..., 0]
    rank = ((score[:, None] > score[..., None]) & ~later(x.shape[1])).sum(-1)
    return m.o(x + m.table(rank))


@UNSEEN.add(causal=True, batch=True)
def hashes_of_the_last_two_tokens(m: Parts, x: Tensor) -> Tensor:
    ids = ((x[..., :3] > 0).long() * torch.tensor([1, 2, 4])).sum(-1)
    before = F.pad(ids, (1, 0), value=0)[:, :-1]
    return m.o(x + m.table((ids * 31 + before * 17) % 64))


@UNSEEN.add(causal=False, batch=True)
def hashes_of_two_tokens_by_a_roll(m: Parts, x: Tensor) -> Tensor:
    ids = ((x[..., :3] > 0).long() * torch.tensor([1, 2, 4])).sum(-1)
    return m.o(x + m.table((ids * 31 + ids.roll(1, 1) * 17) % 64))


@UNSEEN.add(causal=True, permutation=True, batch=True)
def codes_of_codes(m: Parts, x: Tensor) -> Tensor:
    rest, total = x, torch.zeros_like(x)
    for book in (m.table.weight, m.square[:16, :WIDTH]):
        code = torch.cdist(rest, book[None].expand(x.shape[0], -1, -1)).argmin(-1)
        total, rest = total + book[code], rest - book[code]
    return x + (total - x).detach()


@UNSEEN.add(causal=True, permutation=True, batch=True)
def levels_of_each_feature(m: Parts, x: Tensor) -> Tensor:
    z = torch.tanh(m.v(x)) * 2
    return m.o(z + (z.round() - z).detach())


@UNSEEN.add(causal=True, batch=True)
def median_of_the_last_three(m: Parts, x: Tensor) -> Tensor:
    y = F.pad(m.v(x), (0, 0, 2, 0)).unfold(1, 3, 1)
    return y.median(-1).values


@UNSEEN.add(causal=False, batch=True)
def median_of_three_around(m: Parts, x: Tensor) -> Tensor:
    y = F.pad(m.v(x), (0, 0, 1, 1)).unfold(1, 3, 1)
    return y.median(-1).values


@UNSEEN.add(causal=False, batch=True)
def rows_and_columns_normalized_in_turn(m: Parts, x: Tensor) -> Tensor:
    s = m.scores(x)
    for _ in range(3):
        s = s - s.logsumexp(2, keepdim=True)
        s = s - s.logsumexp(1, keepdim=True)
    return s.exp().tril() @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def weights_set_to_zero_below_a_share(m: Parts, x: Tensor) -> Tensor:
    p = m.scores(x).masked_fill(later(x.shape[1]), INF).softmax(-1)
    p = torch.where(p >= 0.3 * p.amax(-1, keepdim=True), p, 0.0)
    return F.normalize(p, p=1, dim=-1) @ m.v(x)


@UNSEEN.add(causal=False, permutation=True, batch=True)
def the_longest_token_takes_the_layer(m: Parts, x: Tensor) -> Tensor:
    size = x.norm(dim=-1, keepdim=True)
    return torch.where(size == size.amax(1, keepdim=True), m.v(x), x)


@UNSEEN.add(causal=True, batch=True)
def tokens_skip_a_layer_by_their_score(m: Parts, x: Tensor) -> Tensor:
    taken = m.router(x)[..., :1] > 0
    y = m.scores(x).masked_fill(later(x.shape[1]), INF).softmax(-1) @ m.v(x)
    return torch.where(taken, x + y, x)


@UNSEEN.add(masked=True, padding=True, causal=True, batch=True)
def best_real_keys(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    hidden = later(x.shape[1]) | (mask[:, None] == 0)
    s = m.scores(x).masked_fill(hidden, -1e9)
    kth = s.topk(min(4, x.shape[1]), -1).values[..., -1:]
    s = s.masked_fill(s < kth, -1e9).softmax(-1).masked_fill(hidden, 0.0)
    return s @ m.v(x)


@UNSEEN.add(masked=True, padding=False, batch=True)
def best_keys_then_the_real_ones(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    s = m.scores(x).masked_fill(later(x.shape[1]), -1e9)
    kth = s.topk(min(4, x.shape[1]), -1).values[..., -1:]
    s = s.masked_fill((s < kth) | (mask[:, None] == 0), -1e9).softmax(-1)
    return s @ m.v(x)


@UNSEEN.add(masked=True, padding=True, causal=True, batch=True)
def experts_filled_with_real_tokens(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    gate, chosen = _gates(m, x)
    chosen = chosen * mask[..., None]
    place = (chosen.cumsum(1) * chosen).sum(-1)
    return _experts(m, x, chosen * (gate * (place <= 2))[..., None])


@UNSEEN.add(masked=True, padding=False, causal=True, batch=True)
def experts_filled_with_all_tokens(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    gate, chosen = _gates(m, x)
    place = (chosen.cumsum(1) * chosen).sum(-1)
    return _experts(m, x, chosen * (gate * (place <= 2))[..., None]) * mask[..., None]
