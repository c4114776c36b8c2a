"""Experts, depth, and tokens that are merged, dropped or pooled."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.unseen.claims import WIDTH, Corpus, Parts, later

UNSEEN = Corpus()
INF = float("-inf")


@UNSEEN.add(causal=True, permutation=True, batch=True)
def two_experts_of_a_dense_sum(m: Parts, x: Tensor) -> Tensor:
    p = m.router(x).softmax(-1)
    best, place = p.topk(2, -1)
    w = torch.zeros_like(p).scatter_(-1, place, best / best.sum(-1, keepdim=True))
    y = torch.stack([f(x) for f in m.experts], -2)
    return x + (w[..., None] * y).sum(-2)


@UNSEEN.add(causal=True, permutation=True, batch=True)
def experts_in_a_loop_of_masks(m: Parts, x: Tensor) -> Tensor:
    flat = x.view(-1, WIDTH)
    weight, chosen = m.router(flat).softmax(-1).topk(2, dim=-1)
    out = torch.zeros_like(flat)
    for e, expert in enumerate(m.experts):
        w = (weight * (chosen == e)).sum(-1, keepdim=True)
        out = out + w * expert(flat)
    return out.view_as(x)


@UNSEEN.add(causal=False, permutation=False, batch=True)
def capacity_of_each_expert(m: Parts, x: Tensor) -> Tensor:
    onehot = F.one_hot(m.router(x).argmax(-1), 4)
    place = onehot.flip(1).cumsum(1).flip(1) * onehot
    kept = ((place > 0) & (place <= 3)).to(x.dtype)
    y = torch.stack([f(x) for f in m.experts], 2)
    return x + torch.einsum("bte,bted->btd", kept, y)


@UNSEEN.add(causal=True, permutation=False, batch=True)
def slots_filled_in_order(m: Parts, x: Tensor) -> Tensor:
    onehot = F.one_hot(m.router(x).argmax(-1), 4)
    place = onehot.cumsum(1) * onehot - 1
    slot = F.one_hot(place.clamp(min=0), x.shape[1])[..., :3] * onehot[..., None]
    slot = slot.to(x.dtype)
    held = torch.einsum("btec,btd->becd", slot, x)
    y = torch.stack([f(held[:, e]) for e, f in enumerate(m.experts)], 1)
    return torch.einsum("btec,becd->btd", slot, y)


@UNSEEN.add(causal=False, permutation=True, batch=True)
def soft_slots(m: Parts, x: Tensor) -> Tensor:
    s = torch.einsum("btd,ed->bte", x, m.latents)
    held = torch.einsum("bte,btd->bed", s.softmax(1), x)
    return torch.einsum("bte,bed->btd", s.softmax(2), m.experts[0](held))


@UNSEEN.add(causal=True, permutation=True, batch=True)
def expert_with_a_shared_one(m: Parts, x: Tensor) -> Tensor:
    p = torch.sigmoid(m.router(x))
    chosen = (p + m.bias.weight[:4, 0]).topk(2, dim=-1, sorted=False).indices
    w = p.gather(-1, chosen)
    w = w / (w.sum(-1, keepdim=True) + 1e-20)
    weights = torch.stack([e.weight for e in m.experts])[chosen]
    return m.o(x) + torch.einsum("btk,btkod,btd->bto", w, weights, x)


@UNSEEN.add(causal=True, permutation=True, batch=True)
def depth_by_a_threshold(m: Parts, x: Tensor) -> Tensor:
    for _ in range(2):
        go = torch.sigmoid(m.router(x)[..., :1])
        x = torch.where(go > 0.5, x + go * m.down(F.silu(m.up(m.norm(x)))), x)
    return x


@UNSEEN.add(causal=False, batch=True, permutation=True)
def depth_by_a_share_of_tokens(m: Parts, x: Tensor) -> Tensor:
    r = m.router(x)[..., 0]
    least = r.sort(1, descending=True).values[:, 2:3]
    return x + (r >= least)[..., None] * m.o(x) * r[..., None]


@UNSEEN.add(causal=True, permutation=True, batch=True)
def halting_after_enough(m: Parts, x: Tensor) -> Tensor:
    total, out, h = x.new_zeros(x.shape[:2] + (1,)), torch.zeros_like(x), x
    for _ in range(3):
        h = torch.tanh(m.o(h))
        p = torch.minimum(m.router(h)[..., :1].sigmoid(), 1 - total)
        out, total = out + p * h, total + p
    return out + (1 - total) * h


@UNSEEN.add(permutation=False, batch=True)
def neighbours_merged(m: Parts, x: Tensor) -> Tensor:
    b, t, d = x.shape
    even = x[:, : t // 2 * 2].reshape(b, t // 2, 2 * d)
    return m.norm(m.down(even)).mean(1)


@UNSEEN.add(causal=False, batch=True)
def most_similar_pairs_merged(m: Parts, x: Tensor) -> Tensor:
    a, b = x[:, ::2], x[:, 1::2]
    s = F.normalize(a, dim=-1) @ F.normalize(b, dim=-1).mT
    place = s.argmax(-1, keepdim=True)
    merged = b.scatter_add(1, place.expand_as(a), a)
    return torch.cat([a, merged], 1)


@UNSEEN.add(permutation=False, batch=True)
def patches_of_an_image(m: Parts, x: Tensor) -> Tensor:
    image = m.square[:16, : WIDTH * 2].view(1, 1, 16, 16) * x.mean((1, 2))[:, None, None, None]
    y = F.unfold(image, 4, stride=4).mT @ m.square[:16, :WIDTH]
    y = torch.cat([m.latents[:1].expand(x.shape[0], -1, -1), y], 1) + m.table.weight[:17]
    return y[:, 0] + y.mean(1) + x[:, 0]


@UNSEEN.add(permutation=False, batch=True)
def class_token_in_front(m: Parts, x: Tensor) -> Tensor:
    h = torch.cat([m.latents[:1].expand(x.shape[0], 1, -1), x], dim=1)
    h = h + m.table(torch.arange(h.shape[1]))
    h = h + m.scores(h).softmax(-1) @ m.v(h)
    return m.o(m.norm(h)[:, 0])


@UNSEEN.add(permutation=True, batch=True)
def class_token_without_positions(m: Parts, x: Tensor) -> Tensor:
    h = torch.cat([m.latents[:1].expand(x.shape[0], 1, -1), x], dim=1)
    h = h + m.scores(h).softmax(-1) @ m.v(h)
    return m.o(m.norm(h)[:, 0])


@UNSEEN.add(masked=True, padding=True, batch=True)
def class_token_and_padding(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    h = torch.cat([m.latents[:1].expand(x.shape[0], 1, -1), x], dim=1)
    seen = F.pad(mask, (1, 0), value=1).bool()
    w = m.scores(h).masked_fill(~seen[:, None], -1e9).softmax(-1)
    return m.o((w @ m.v(h))[:, 0])


@UNSEEN.add(masked=True, padding=True, permutation=True, batch=True)
def gated_attention_pooling(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    s = (torch.tanh(m.v(x)) * torch.sigmoid(m.gate(x))) @ m.decay
    s = s.masked_fill(mask == 0, torch.finfo(s.dtype).min)
    return (s.softmax(1).unsqueeze(1) @ x).squeeze(1)


@UNSEEN.add(masked=True, padding=True, batch=True)
def norm_with_statistics_of_real_tokens(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    w = mask[..., None].to(x.dtype)
    n = w.sum(1, keepdim=True)
    mean = (x * w).sum(1, keepdim=True) / n
    var = ((x - mean).pow(2) * w).sum(1, keepdim=True) / n
    return (x - mean) / (var + 1e-5).sqrt() * w


@UNSEEN.add(masked=True, padding=False, batch=True)
def norm_with_statistics_of_all_tokens(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    y = F.instance_norm(x.mT).mT
    return y * mask[..., None]


@UNSEEN.add(masked=True, padding=False, batch=False)
def norm_over_real_tokens_of_all_rows(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    w = mask[..., None].to(x.dtype)
    mean = (x * (1 - w)).sum((0, 1)) + (x * w).sum((0, 1)) / w.sum()
    return x - mean


@UNSEEN.add(masked=True, padding=True, batch=True)
def last_real_token(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    place = (mask * torch.arange(x.shape[1])).argmax(1)
    h = m.scores(x).masked_fill(mask[:, None] == 0, -1e9).softmax(-1) @ m.v(x)
    return h[torch.arange(x.shape[0]), place]


@UNSEEN.add(masked=True, right=True, padding=True, batch=True)
def token_at_the_number_of_real_ones(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    place = mask.sum(1) - 1
    return m.v(x)[torch.arange(x.shape[0]), place]


@UNSEEN.add(causal=True, batch=True)
def forward_sums_of_paths(m: Parts, x: Tensor) -> Tensor:
    scores, step = m.router(x), m.square[:4, :4]
    alpha, out = scores[:, 0], [scores[:, 0]]
    for t in range(1, x.shape[1]):
        alpha = torch.logsumexp(alpha[:, :, None] + step, 1) + scores[:, t]
        out.append(alpha)
    return torch.stack(out, 1)


@UNSEEN.add(batch=True, permutation=False)
def best_path(m: Parts, x: Tensor) -> Tensor:
    scores, step = m.router(x), m.square[:4, :4]
    best = scores[:, 0]
    for t in range(1, x.shape[1]):
        best = (best[:, :, None] + step).max(1).values + scores[:, t]
    return best.amax(-1)


@UNSEEN.add(causal=False, batch=True)
def repeats_collapsed(m: Parts, x: Tensor) -> Tensor:
    ids = m.router(x).argmax(-1)
    after = F.pad(ids[:, 1:], (0, 1), value=-1)
    return m.v(x) * (ids != after)[..., None]


@UNSEEN.add(causal=True, batch=True)
def repeats_of_the_token_before_hidden(m: Parts, x: Tensor) -> Tensor:
    ids = m.router(x).argmax(-1)
    new = torch.cat([torch.ones_like(ids[:, :1], dtype=torch.bool), ids[:, 1:] != ids[:, :-1]], 1)
    s = m.scores(x).masked_fill(~new[:, None] | later(x.shape[1]), INF)
    return s.softmax(-1) @ m.v(x)
