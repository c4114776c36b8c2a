"""Newer variants of attention."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.unseen.claims import HEADS, WIDTH, Corpus, Parts, later

UNSEEN = Corpus()
INF = float("-inf")


@UNSEEN.add(causal=True, batch=True)
def keys_and_values_of_a_latent(m: Parts, x: Tensor) -> Tensor:
    b, t, _ = x.shape
    latent = m.norm(m.k(x))
    k, v = m.up(latent).view(b, t, HEADS, 2, WIDTH // HEADS).unbind(3)
    q = m.q(x).view(b, t, HEADS, -1).transpose(1, 2)
    return m.join(F.scaled_dot_product_attention(q, k.transpose(1, 2), v.transpose(1, 2), is_causal=True))


@UNSEEN.add(causal=True, batch=True)
def queries_absorb_the_latent_map(m: Parts, x: Tensor) -> Tensor:
    latent = m.norm(m.k(x))
    q = m.q(x) @ m.o.weight
    s = torch.einsum("bic,bjc->bij", q, latent) / math.sqrt(WIDTH)
    w = s.masked_fill(later(x.shape[1]), INF).softmax(-1)
    return m.v(torch.einsum("bij,bjc->bic", w, latent))


@UNSEEN.add(causal=False, batch=True)
def latent_normalized_over_tokens(m: Parts, x: Tensor) -> Tensor:
    latent = m.k(x)
    latent = latent * torch.rsqrt(latent.pow(2).mean(1, keepdim=True) + 1e-6)
    s = (m.q(x) @ latent.mT).masked_fill(later(x.shape[1]), INF)
    return m.v(s.softmax(-1) @ latent)


@UNSEEN.add(causal=True, batch=True)
def differential_attention(m: Parts, x: Tensor) -> Tensor:
    q1, q2 = m.q(x).chunk(2, -1)
    k1, k2 = m.k(x).chunk(2, -1)
    mask = torch.triu(torch.full((x.shape[1], x.shape[1]), INF), 1)
    lam = torch.exp((m.decay * m.scale).sum()) - torch.exp((m.decay[:4] * m.scale[4:]).sum()) + 0.2
    w = (q1 @ k1.mT / 2 + mask).softmax(-1) - lam * (q2 @ k2.mT / 2 + mask).softmax(-1)
    return m.norm(w @ m.v(x)) * 0.8


@UNSEEN.add(causal=False, batch=True)
def differential_attention_half_masked(m: Parts, x: Tensor) -> Tensor:
    q1, q2 = m.q(x).chunk(2, -1)
    k1, k2 = m.k(x).chunk(2, -1)
    w = (q1 @ k1.mT).masked_fill(later(x.shape[1]), INF).softmax(-1) - 0.3 * (q2 @ k2.mT).softmax(-1)
    return m.norm(w @ m.v(x))


@UNSEEN.add(causal=True, batch=True)
def sigmoid_attention_with_bias(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    s = m.scores(x) - math.log(t)
    return torch.sigmoid(s.masked_fill(later(t), INF)) @ m.v(x)


@UNSEEN.add(causal=False, permutation=True, batch=True)
def sigmoid_attention_unmasked(m: Parts, x: Tensor) -> Tensor:
    return torch.sigmoid(m.scores(x) - math.log(x.shape[1])) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def output_gated_for_each_head(m: Parts, x: Tensor) -> Tensor:
    y = F.scaled_dot_product_attention(*m.heads(x), is_causal=True)
    g = torch.sigmoid(m.gate(x)).view(*x.shape[:2], HEADS, -1).transpose(1, 2)
    return x + m.join(y * g)


@UNSEEN.add(causal=True, batch=True)
def sink_logits(m: Parts, x: Tensor) -> Tensor:
    q, k, v = m.heads(x)
    s = (q @ k.mT / 2).masked_fill(later(x.shape[1]), INF)
    sink = m.slopes.view(1, -1, 1, 1).expand(x.shape[0], -1, x.shape[1], 1)
    s = torch.cat([s, sink], -1)
    s = s - s.max(dim=-1, keepdim=True).values
    return m.join(s.softmax(-1)[..., :-1] @ v)


@UNSEEN.add(causal=True, batch=True)
def one_added_to_the_denominator(m: Parts, x: Tensor) -> Tensor:
    s = m.scores(x).masked_fill(later(x.shape[1]), INF)
    top = s.amax(-1, keepdim=True).clamp(min=0)
    e = (s - top).exp()
    return e @ m.v(x) / (e.sum(-1, keepdim=True) + (-top).exp())


@UNSEEN.add(causal=True, batch=True)
def cosines_with_learned_temperature(m: Parts, x: Tensor) -> Tensor:
    q, k, v = m.heads(x)
    q, k = q / q.norm(dim=-1, keepdim=True).clamp(min=1e-6), k / k.norm(dim=-1, keepdim=True).clamp(min=1e-6)
    scale = m.slopes.log().clamp(max=math.log(100)).exp()[:, None, None]
    bias = torch.zeros(x.shape[1], x.shape[1]).masked_fill_(later(x.shape[1]), torch.finfo(x.dtype).min)
    return m.join((scale * (q @ k.mT) + bias).softmax(-1) @ v)


@UNSEEN.add(causal=True, batch=True)
def grouped_queries_by_reshape(m: Parts, x: Tensor) -> Tensor:
    b, t, _ = x.shape
    q = m.q(x).view(b, t, 2, 2, 2)
    k, v = m.k(x)[..., :4].view(b, t, 2, 2), m.v(x)[..., :4].view(b, t, 2, 2)
    s = torch.einsum("bqgrd,bkgd->bgrqk", q, k).masked_fill(later(t), -1e4)
    y = torch.einsum("bgrqk,bkgd->bqgrd", s.softmax(-1), v)
    return m.o(y.reshape(b, t, WIDTH))


@UNSEEN.add(causal=False, permutation=True, batch=True)
def pairs_of_tokens_as_queries(m: Parts, x: Tensor) -> Tensor:
    pair = m.q(x)[:, :, None] * m.k(x)[:, None]
    return x + m.o(pair.tanh()).mean(2)


@UNSEEN.add(causal=False, permutation=True, batch=True)
def induced_set_attention(m: Parts, x: Tensor) -> Tensor:
    seeds = m.latents.unsqueeze(0).expand(x.size(0), -1, -1)
    h = F.scaled_dot_product_attention(m.q(seeds), m.k(x), m.v(x))
    return m.norm(x + F.scaled_dot_product_attention(x, h, h))


@UNSEEN.add(permutation=True, batch=True)
def latents_read_twice(m: Parts, x: Tensor) -> Tensor:
    z = m.latents.repeat(x.shape[0], 1, 1)
    for _ in range(2):
        s = torch.einsum("bld,btd->blt", m.q(z), m.k(x))
        z = z + m.o(torch.einsum("blt,btd->bld", s.softmax(dim=2), m.v(x)))
    return z.mean(1)


@UNSEEN.add(permutation=False, batch=True)
def latents_read_with_positions(m: Parts, x: Tensor) -> Tensor:
    y = x + m.table.weight[: x.shape[1]]
    s = m.latents @ m.k(y).transpose(1, 2)
    return (s.softmax(-1) @ m.v(y)).flatten(1)


@UNSEEN.add(causal=True, batch=True)
def two_streams_of_talking_heads(m: Parts, x: Tensor) -> Tensor:
    q, k, v = m.heads(x)
    s = torch.einsum("bhij,hg->bgij", q @ k.mT, m.square[:2, :2])
    w = s.masked_fill(later(x.shape[1]), -1e9).softmax(-1)
    w = (w.permute(0, 2, 3, 1) @ m.square[:2, 2:4]).permute(0, 3, 1, 2)
    return m.join(w @ v)


@UNSEEN.add(causal=True, batch=True)
def softmax_in_float_then_back(m: Parts, x: Tensor) -> Tensor:
    q, k, v = m.heads(x)
    s = torch.matmul(q, k.transpose(2, 3)) * (WIDTH // HEADS) ** -0.5
    mask = torch.full((x.shape[1], x.shape[1]), torch.finfo(s.dtype).min).triu(diagonal=1)
    s = s + mask[None, None]
    s = torch.max(s, torch.tensor(torch.finfo(s.dtype).min))
    w = F.softmax(s, dim=-1, dtype=torch.float64).to(q.dtype)
    return m.join(torch.matmul(w, v))


@UNSEEN.add(causal=True, batch=True)
def decay_between_tokens_as_bias(m: Parts, x: Tensor) -> Tensor:
    q, k, v = m.heads(x)
    f = F.logsigmoid(m.router(x)[..., :HEADS]).mT.cumsum(-1)
    bias = (f.unsqueeze(-1) - f.unsqueeze(-2)).masked_fill(later(x.shape[1]), INF)
    return m.join(F.scaled_dot_product_attention(q, k, v, attn_mask=bias))


@UNSEEN.add(causal=True, batch=True)
def values_of_the_first_layer(m: Parts, x: Tensor) -> Tensor:
    first = m.v(x)
    h = x
    for _ in range(2):
        v = 0.5 * m.v(h) + 0.5 * first
        h = h + (m.scores(m.norm(h)).masked_fill(later(x.shape[1]), INF)).softmax(-1) @ v
    return h


@UNSEEN.add(causal=True, batch=True)
def keys_centred_over_tokens(m: Parts, x: Tensor) -> Tensor:
    q, k, v = m.heads(x)
    k = F.layer_norm(k, k.shape[-1:]) - 0.1 * k.std(dim=2, keepdim=True)
    return m.join((q @ k.mT).masked_fill(later(x.shape[1]), INF).softmax(-1) @ v)
