"""Keys, tokens and experts that are chosen by what they contain."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.unseen.claims import Corpus, Parts, later

UNSEEN = Corpus()
INF = float("-inf")


@UNSEEN.add(causal=True, batch=True)
def three_best_visible_keys(m: Parts, x: Tensor) -> Tensor:
    s = m.scores(x).masked_fill(later(x.shape[1]), INF)
    least = torch.topk(s, 3, dim=-1)[0][..., -1, None]
    return torch.where(s < least, INF, s).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=False, batch=True)
def three_best_keys_of_all(m: Parts, x: Tensor) -> Tensor:
    s = m.scores(x)
    least = torch.topk(s, 3, dim=-1)[0][..., -1, None]
    return torch.where(s < least, -1e4, s).masked_fill(later(x.shape[1]), -1e9).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, permutation=True, batch=True)
def one_expert(m: Parts, x: Tensor) -> Tensor:
    p = m.router(x).softmax(-1)
    chosen = F.one_hot(p.argmax(-1), 4).to(x.dtype) * p
    return torch.einsum("bte,betd->btd", chosen, torch.stack([f(x) for f in m.experts], 1))


@UNSEEN.add(causal=True, permutation=True, batch=True)
def two_experts(m: Parts, x: Tensor) -> Tensor:
    p, chosen = m.router(x).topk(2, dim=-1)
    gates = torch.zeros(*x.shape[:2], 4, dtype=x.dtype).scatter(-1, chosen, p.softmax(-1))
    return sum(gates[..., i, None] * f(x) for i, f in enumerate(m.experts))


@UNSEEN.add(causal=True, batch=False)
def capacity_over_rows(m: Parts, x: Tensor) -> Tensor:
    b, t, d = x.shape
    flat = x.transpose(0, 1).reshape(-1, d)
    chosen = F.one_hot(m.router(flat).argmax(-1), 4)
    place = (chosen.cumsum(0) * chosen).sum(-1)
    y = m.v(flat) * (place <= 3)[:, None]
    return x + y.view(t, b, d).transpose(0, 1)


@UNSEEN.add(causal=True, batch=True)
def capacity_of_each_row(m: Parts, x: Tensor) -> Tensor:
    chosen = F.one_hot(m.router(x).argmax(-1), 4)
    place = (chosen.cumsum(1) * chosen).sum(-1)
    return x + m.v(x) * (place <= 2).unsqueeze(-1)


@UNSEEN.add(causal=False, permutation=True, batch=True)
def experts_choose_tokens(m: Parts, x: Tensor) -> Tensor:
    p = m.router(x).softmax(-1)
    least = p.topk(2, dim=1).values[:, -1:]
    return x + ((p >= least) * p)[..., :1] * m.experts[0](x)


@UNSEEN.add(causal=False, batch=True)
def few_tokens_take_the_layer(m: Parts, x: Tensor) -> Tensor:
    weight, place = m.router(x)[..., 0].topk(3, dim=1)
    place = place[..., None].expand(-1, -1, x.shape[-1])
    y = m.down(F.gelu(m.up(x.gather(1, place)))) * weight[..., None]
    return x.scatter_add(1, place, y)


@UNSEEN.add(causal=True, batch=True)
def best_visible_key(m: Parts, x: Tensor) -> Tensor:
    best = m.scores(x).masked_fill(later(x.shape[1]), INF).argmax(-1, keepdim=True)
    return x + torch.take_along_dim(m.v(x), best, dim=1)


@UNSEEN.add(causal=False, permutation=True, batch=True)
def nearest_tokens(m: Parts, x: Tensor) -> Tensor:
    d = torch.cdist(x, x)
    far = d.topk(3, dim=-1, largest=False).values[..., -1:]
    return ((d <= far) / 3.0) @ m.v(x)


@UNSEEN.add(causal=True, permutation=True, batch=True)
def nearest_code(m: Parts, x: Tensor) -> Tensor:
    code = torch.cdist(x, m.latents[None].expand(x.shape[0], -1, -1)).argmin(-1)
    chosen = m.latents[code]
    return x + (chosen - x).detach()


@UNSEEN.add(causal=True, permutation=True, batch=True)
def nearest_code_by_squares(m: Parts, x: Tensor) -> Tensor:
    d = x.pow(2).sum(-1, keepdim=True) - 2 * x @ m.latents.T + m.latents.pow(2).sum(-1)
    return F.one_hot(d.argmin(-1), 3).to(x.dtype) @ m.latents


@UNSEEN.add(causal=True, batch=True)
def keys_of_the_same_bucket(m: Parts, x: Tensor) -> Tensor:
    r = m.router(x)
    bucket = torch.cat([r, -r], -1).argmax(-1)
    seen = (bucket[:, :, None] == bucket[:, None]) & ~later(x.shape[1])
    return m.scores(x).masked_fill(~seen, INF).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=False, permutation=True, batch=True)
def same_bucket_on_both_sides(m: Parts, x: Tensor) -> Tensor:
    r = m.router(x)
    bucket = torch.cat([r, -r], -1).argmax(-1)
    seen = bucket[:, :, None] == bucket[:, None]
    return m.scores(x).masked_fill(~seen, INF).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, permutation=True, batch=True)
def hard_choice_with_soft_gradient(m: Parts, x: Tensor) -> Tensor:
    soft = (m.router(x) / 0.5).softmax(-1)
    hard = torch.zeros_like(soft).scatter_(-1, soft.max(-1, keepdim=True)[1], 1.0)
    w = hard - soft.detach() + soft
    return x + w @ m.table.weight[:4]


@UNSEEN.add(causal=True, permutation=True, batch=True)
def features_sorted(m: Parts, x: Tensor) -> Tensor:
    return m.o(m.v(x).sort(-1)[0])


@UNSEEN.add(causal=False, batch=True)
def tokens_sorted(m: Parts, x: Tensor) -> Tensor:
    order = m.router(x)[..., 0].argsort(1)
    return m.v(x.gather(1, order[..., None].expand_as(x)))


@UNSEEN.add(causal=True, permutation=True, batch=True)
def long_tokens_take_the_layer(m: Parts, x: Tensor) -> Tensor:
    return torch.where(x.norm(dim=-1, keepdim=True) > 2.5, m.o(x), x)


@UNSEEN.add(causal=False, permutation=True, batch=True)
def longer_than_the_mean(m: Parts, x: Tensor) -> Tensor:
    n = x.norm(dim=-1, keepdim=True)
    return torch.where(n > n.mean(1, keepdim=True), m.o(x), x)


@UNSEEN.add(causal=True, batch=True)
def keys_up_to_a_share(m: Parts, x: Tensor) -> Tensor:
    p = m.scores(x).masked_fill(later(x.shape[1]), INF).softmax(-1)
    sorted_p, order = p.sort(-1, descending=True)
    kept = sorted_p.cumsum(-1) - sorted_p < 0.8
    p = p * torch.zeros_like(p).scatter(-1, order, kept.to(p.dtype))
    return (p / p.sum(-1, keepdim=True)) @ m.v(x)


@UNSEEN.add(causal=True, permutation=True, batch=True)
def table_by_signs(m: Parts, x: Tensor) -> Tensor:
    bits = (m.router(x) > 0).long()
    return x + m.table((bits * 2 ** torch.arange(4)).sum(-1))


@UNSEEN.add(causal=True, permutation=True, batch=True)
def best_of_two_key_sets(m: Parts, x: Tensor) -> Tensor:
    a, b = m.q(x).chunk(2, -1)
    sa, ia = (a @ m.table.weight[:6, :4].T).topk(2, -1)
    sb, ib = (b @ m.table.weight[6:12, :4].T).topk(2, -1)
    s, i = (sa[..., :, None] + sb[..., None, :]).flatten(-2), (ia[..., :, None] * 6 + ib[..., None, :]).flatten(-2)
    best, place = s.topk(2, -1)
    return (best.softmax(-1)[..., None] * m.table(i.gather(-1, place))).sum(-2)


@UNSEEN.add(causal=True, batch=True)
def projection_to_the_simplex(m: Parts, x: Tensor) -> Tensor:
    s = m.scores(x).masked_fill(later(x.shape[1]), -1e9)
    z = s.sort(-1, descending=True).values
    k = torch.arange(1, x.shape[1] + 1, dtype=x.dtype)
    support = 1 + k * z > z.cumsum(-1)
    size = support.sum(-1, keepdim=True)
    tau = ((z * support).sum(-1, keepdim=True) - 1) / size
    return (s - tau).clamp(min=0) @ m.v(x)


@UNSEEN.add(causal=False, permutation=True, batch=True)
def above_the_median(m: Parts, x: Tensor) -> Tensor:
    n = m.router(x)[..., 0]
    keep = n >= n.median(1, keepdim=True).values
    return m.scores(x).masked_fill(~keep[:, None], INF).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=False, permutation=True, batch=True)
def clipped_at_a_quantile(m: Parts, x: Tensor) -> Tensor:
    y = m.v(x)
    return y.clamp(max=torch.quantile(y, 0.8, dim=1, keepdim=True))


@UNSEEN.add(causal=True, batch=True)
def blocks_chosen_by_their_mean(m: Parts, x: Tensor) -> Tensor:
    t, size = x.shape[1], 2
    k = F.pad(m.k(x), (0, 0, 0, -t % size))
    mean = k.unflatten(1, (-1, size)).mean(2)
    i, block = torch.arange(t), torch.arange(mean.shape[1])
    past = (block + 1)[None] * size <= i[:, None]
    s = (m.q(x) @ mean.mT).masked_fill(~past, -1e9)
    chosen = (s >= s.amax(-1, keepdim=True)) & past
    own = i[:, None] // size == block[None]
    seen = (chosen | own).repeat_interleave(size, -1)[..., :t] & ~later(t)
    return m.scores(x).masked_fill(~seen, INF).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def value_after_the_same_token(m: Parts, x: Tensor) -> Tensor:
    sign = (x[..., :3] > 0).long() @ torch.tensor([1, 2, 4])
    before = F.pad(sign, (1, -1), value=-1)
    same = (sign[:, :, None] == before[:, None]) & ~later(x.shape[1])
    w = same.to(x.dtype)
    return x + w @ m.v(x) / w.sum(-1, keepdim=True).clamp(min=1)


@UNSEEN.add(causal=False, batch=True)
def value_before_the_same_token(m: Parts, x: Tensor) -> Tensor:
    sign = (x[..., :3] > 0).long() @ torch.tensor([1, 2, 4])
    same = sign[:, :, None] == sign[:, None]
    w = same.to(x.dtype)
    return x + w @ m.v(x) / w.sum(-1, keepdim=True).clamp(min=1)


@UNSEEN.add(causal=True, batch=True)
def counts_of_earlier_signs(m: Parts, x: Tensor) -> Tensor:
    sign = (x[..., 0] > 0).long()
    count = F.one_hot(sign, 2).cumsum(1)
    return x + m.table(count.gather(-1, sign[..., None]).squeeze(-1))


@UNSEEN.add(causal=False, batch=True)
def counts_of_all_signs(m: Parts, x: Tensor) -> Tensor:
    sign = (x[..., 0] > 0).long()
    return x + m.table(sign.sum(1, keepdim=True))
