"""Pads in several layers, nested sums and norms, and what is made of the real tokens."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.unseen.claims import HEADS, WIDTH, Corpus, Parts, later

UNSEEN = Corpus()
INF = float("-inf")


@UNSEEN.add(masked=True, padding=True, causal=True, batch=True)
def two_layers_with_rows_that_see_nothing(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    t = x.shape[1]
    seen = torch.ones(t, t, dtype=torch.bool).tril()[None, None] & mask.bool()[:, None, None, :]
    bias = torch.zeros(seen.shape, dtype=x.dtype).masked_fill(~seen, torch.finfo(x.dtype).min)
    for _ in range(2):
        q, k, v = m.heads(m.norm(x))
        x = x + m.join((q @ k.mT / 2 + bias).softmax(-1) @ v)
    return x


@UNSEEN.add(masked=True, padding=False, batch=True)
def mask_lost_in_the_second_layer(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    for bias in ((1.0 - mask[:, None, None].to(x.dtype)) * -1e9, None):
        q, k, v = m.heads(m.norm(x))
        s = q @ k.mT / 2
        x = x + m.join((s if bias is None else s + bias).softmax(-1) @ v)
    return x


@UNSEEN.add(masked=True, padding=True, causal=True, batch=True)
def positions_shifted_by_two(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    positions = (torch.cumsum(mask, 1).type_as(mask) * mask).long() - 1
    h = x + m.table(positions + 2)
    hidden = later(x.shape[1]) | (mask == 0)[:, None]
    return m.scores(h).masked_fill(hidden, torch.finfo(x.dtype).min).softmax(-1) @ m.v(h)


@UNSEEN.add(masked=True, padding=True, batch=True)
def rotations_from_the_first_real_token(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    start = mask.argmax(1, keepdim=True)
    place = (torch.arange(x.shape[1])[None] - start).clamp(min=0).to(x.dtype)
    angle = place[..., None] * m.scale[: WIDTH // 2]
    c, s = angle.cos().repeat(1, 1, 2), angle.sin().repeat(1, 1, 2)

    def turn(y: Tensor) -> Tensor:
        a, b = y.chunk(2, -1)
        return y * c + torch.cat([-b, a], -1) * s

    hidden = later(x.shape[1]) | ~mask.bool()[:, None]
    return (turn(m.q(x)) @ turn(m.k(x)).mT).masked_fill(hidden, -1e30).softmax(-1) @ m.v(x)


@UNSEEN.add(masked=True, padding=True, batch=True)
def mask_before_every_convolution(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    real = mask[:, None].to(x.dtype)
    h = x.mT
    for _ in range(2):
        h = h + F.relu(m.conv(F.pad(h * real, (1, 1))))
    return (h * real).mT


@UNSEEN.add(masked=True, padding=True, batch=True)
def mask_before_the_first_convolution_only(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    h = (x * mask[..., None]).mT
    for _ in range(2):
        h = F.relu(m.conv(F.pad(h, (1, 1))))
    return h.mT


@UNSEEN.add(masked=True, padding=False, batch=True)
def residual_brings_pads_back(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    h = x + m.conv(F.pad((x * mask[..., None]).mT, (1, 1))).mT
    return h + m.conv(F.pad(h.mT, (1, 1))).mT


@UNSEEN.add(masked=True, padding=True, batch=True)
def pads_squeezed_out_of_the_gate(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    real = mask[..., None].to(x.dtype)
    mean = torch.einsum("btd,bt->bd", x, mask.to(x.dtype)) / real.sum((1, 2)).unsqueeze(-1)
    return x * m.gate(F.silu(m.o(mean))).sigmoid().unsqueeze(1)


@UNSEEN.add(masked=True, padding=False, batch=True)
def pads_in_the_gate(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    gate = F.adaptive_avg_pool1d(x.mT, 1).squeeze(-1)
    return x * m.gate(gate).sigmoid()[:, None] * mask[..., None]


@UNSEEN.add(masked=True, padding=True, batch=True)
def instance_norm_of_zeroed_pads(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    return F.instance_norm((x * mask[..., None]).mT).mT


@UNSEEN.add(masked=True, padding=True, batch=True)
def layer_norm_over_the_whole_row_of_zeroed_pads(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    h = x.masked_fill(mask[..., None] == 0, 0.0)
    h = (h - h.mean((1, 2), keepdim=True)) / (h.var((1, 2), keepdim=True, unbiased=False) + 1e-5).sqrt()
    return m.o(h)


@UNSEEN.add(masked=True, padding=True, causal=True, batch=True)
def mean_so_far_of_real_tokens(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    total = (x * mask[..., None]).cumsum(1)
    return m.o(total / mask.cumsum(1).clamp(min=1)[..., None])


@UNSEEN.add(masked=True, padding=False, causal=True, batch=True)
def mean_so_far_with_pads_in_front(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    return m.o(x.cumsum(1) / mask.cumsum(1).clamp(min=1)[..., None]) * mask[..., None]


@UNSEEN.add(masked=True, padding=True, causal=True, batch=True)
def largest_so_far_of_real_tokens(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    hidden = mask.unsqueeze(-1) == 0
    y = x.masked_fill(hidden, INF).cummax(1).values
    return m.o(y.masked_fill(hidden, 0.0))


@UNSEEN.add(masked=True, padding=True, batch=True)
def pads_replaced_by_a_vector(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    h = torch.where(mask[..., None].bool(), x, m.latents[0])
    q, k, v = m.heads(m.norm(h))
    return h + m.join(F.scaled_dot_product_attention(q, k, v))


@UNSEEN.add(masked=True, padding=False, batch=True)
def pads_replaced_in_values_only(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    v = torch.where(mask[..., None].bool(), m.v(x), m.latents[1])
    return m.scores(x).softmax(-1) @ v


@UNSEEN.add(masked=True, padding=True, batch=True)
def share_of_each_token_made_again(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    w = m.router(x)[..., 0].softmax(-1) * mask
    return ((w / w.sum(-1, keepdim=True))[..., None] * x).sum(1)


@UNSEEN.add(masked=True, padding=True, batch=True)
def two_strongest_real_tokens(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    best = m.router(x)[..., 0].masked_fill(mask == 0, INF).topk(2, -1)
    chosen = x.gather(1, best.indices[..., None].expand(-1, -1, WIDTH))
    return (chosen * best.values.softmax(-1)[..., None]).sum(1)


@UNSEEN.add(masked=True, padding=False, batch=True)
def two_strongest_tokens_weighted_later(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    best = m.router(x)[..., 0].topk(2, -1)
    chosen = x.gather(1, best.indices[..., None].expand(-1, -1, WIDTH))
    return (chosen * mask.gather(1, best.indices)[..., None]).sum(1)


@UNSEEN.add(masked=True, padding=True, batch=True)
def median_of_real_tokens(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    return m.o(x.masked_fill(mask[..., None] == 0, float("nan")).nanmedian(1).values)


@UNSEEN.add(masked=True, padding=True, batch=True)
def mean_that_skips_nan(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    return m.o(torch.nanmean(torch.where(mask[..., None] == 1, x, torch.nan), dim=1))


@UNSEEN.add(masked=True, padding=True, batch=True)
def smooth_maximum_of_real_tokens(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    hidden = mask.logical_not().unsqueeze(-1)
    return torch.logsumexp(x.masked_fill(hidden, INF), 1) - mask.sum(1, keepdim=True).to(x.dtype).log()


@UNSEEN.add(masked=True, padding=True, batch=True)
def generalized_mean_of_real_tokens(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    p = 3.0
    powers = x.clamp(min=1e-6).pow(p) * mask[..., None]
    return (powers.sum(1) / mask.sum(1)[:, None]).pow(1.0 / p)


@UNSEEN.add(masked=True, padding=True, batch=True)
def mean_of_sentences_of_words(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    b, t, d = x.shape
    short = -t % 4
    words = F.pad(x * mask[..., None], (0, 0, 0, short)).view(b, -1, 4, d)
    real = F.pad(mask, (0, short)).view(b, -1, 4)
    sentences = words.sum(2) / real.sum(2, keepdim=True).clamp(min=1)
    some = real.any(2, keepdim=True)
    return m.o((sentences * some).sum(1) / some.sum(1))


@UNSEEN.add(masked=True, padding=False, batch=True)
def mean_of_sentences_of_all_words(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    b, t, d = x.shape
    short = -t % 4
    sentences = F.pad(x, (0, 0, 0, short)).view(b, -1, 4, d).mean(2)
    some = F.pad(mask, (0, short)).view(b, -1, 4).any(2, keepdim=True)
    return m.o((sentences * some).sum(1) / some.sum(1))


@UNSEEN.add(masked=True, padding=True, batch=True)
def mean_weighted_by_the_place_of_real_tokens(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    weight = (mask.cumsum(1) * mask).to(x.dtype)
    return torch.bmm(weight[:, None], m.o(x)).squeeze(1) / weight.sum(1, keepdim=True)


@UNSEEN.add(masked=True, padding=True, batch=True)
def attention_pool_of_a_small_network(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    s = m.router(torch.tanh(m.o(x)))[..., :HEADS]
    w = torch.softmax(s.masked_fill(~mask.unsqueeze(-1).bool(), -1e4), dim=1)
    return torch.einsum("bth,btd->bhd", w, x).flatten(1)


@UNSEEN.add(masked=True, padding=False, batch=True)
def attention_pool_over_features(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    s = m.router(torch.tanh(m.o(x)))
    w = torch.softmax(s.masked_fill(~mask.unsqueeze(-1).bool(), -1e4), dim=-1)
    return torch.einsum("bth,btd->bhd", w, x).flatten(1)


@UNSEEN.add(masked=True, padding=True, batch=True)
def distances_to_the_mean_of_real_tokens(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    centre = (x * mask[..., None]).sum(1, keepdim=True) / mask.sum(1)[:, None, None]
    far = torch.cdist(x, centre).squeeze(-1)
    return ((-far).masked_fill(mask == 0, INF).softmax(-1)[:, None] @ x).squeeze(1)


@UNSEEN.add(masked=True, padding=True, batch=True)
def flattened_tokens_reduced_by_row(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    b, t, d = x.shape
    rows = torch.arange(b)[:, None].expand(b, t).reshape(-1)
    kept = torch.where(mask.reshape(-1, 1).bool(), x.reshape(-1, d), INF)
    largest = torch.full((b, d), INF, dtype=x.dtype)
    return m.o(largest.scatter_reduce(0, rows[:, None].expand(-1, d), kept, "amax"))


@UNSEEN.add(masked=True, padding=True, batch=True)
def cross_attention_to_real_tokens(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    queries = m.q(m.latents).expand(x.shape[0], -1, -1)
    y = F.scaled_dot_product_attention(queries, m.k(x), m.v(x), attn_mask=mask.bool()[:, None].expand(-1, 3, -1))
    return y.mean(1)
