"""Heads, biases, rotations, and attention between parts of a text."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.unseen.claims import HEADS, WIDTH, Corpus, Parts, later

UNSEEN = Corpus()
INF = float("-inf")


def _softmax(s: Tensor) -> Tensor:
    return s.masked_fill(later(s.shape[-1]), INF).softmax(-1)


@UNSEEN.add(causal=True, batch=True)
def share_of_the_second_map_by_each_query(m: Parts, x: Tensor) -> Tensor:
    q, k, _ = m.heads(x)
    w = _softmax(q @ k.mT)
    share = m.gate(x)[..., :1].sigmoid()
    return m.norm((w[:, 0] - share * w[:, 1]) @ m.v(x))


@UNSEEN.add(causal=False, batch=True)
def share_of_the_second_map_by_the_mean_token(m: Parts, x: Tensor) -> Tensor:
    w1, w2 = _softmax(m.q(x) @ m.k(x).mT), _softmax(m.q(x) @ m.gate(x).mT)
    share = torch.exp((m.decay * x.mean(1)).sum(-1))[:, None, None]
    return (w1 - share * w2) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def heads_weighted_by_a_router(m: Parts, x: Tensor) -> Tensor:
    q, k, v = m.heads(x)
    share = m.router(x)[..., :HEADS].softmax(-1).mT
    return m.join((_softmax(q @ k.mT) @ v) * share[..., None])


@UNSEEN.add(causal=True, batch=True)
def visible_scores_convolved(m: Parts, x: Tensor) -> Tensor:
    s = m.scores(x).tril()
    near = F.pad(s, (1, 1, 2, 0))[:, None]
    s = F.conv2d(near, m.square[None, None, :3, :3])[:, 0]
    return _softmax(s) @ m.v(x)


@UNSEEN.add(causal=False, batch=True)
def scores_convolved_before_the_mask(m: Parts, x: Tensor) -> Tensor:
    s = F.conv2d(m.scores(x)[:, None], m.square[None, None, :3, :3], padding=1)[:, 0]
    return _softmax(s) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def places_of_queries_read_by_keys(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    i = torch.arange(t)
    index = (i[:, None] - i + 8).clamp(0, 15)
    p2c = m.k(x) @ m.q(m.table(torch.arange(16))).mT
    p2c = p2c.gather(-1, index.mT.expand(x.shape[0], t, t)).mT
    return _softmax((m.scores(x) + p2c) / math.sqrt(2)) @ m.v(x)


@UNSEEN.add(causal=True, permutation=False, batch=True)
def distances_put_into_buckets_by_bounds(m: Parts, x: Tensor) -> Tensor:
    i, (q, k, v) = torch.arange(x.shape[1]), m.heads(x)
    bucket = torch.bucketize((i[:, None] - i).clamp(min=0), torch.tensor([0, 1, 2, 4, 8, 16]))
    return m.join(_softmax(q @ k.mT + m.bias(bucket).permute(2, 0, 1)) @ v)


@UNSEEN.add(causal=True, batch=True)
def gaussian_of_distances_around_each_query(m: Parts, x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1], dtype=x.dtype)
    width = F.softplus(m.gate(x)[..., :1]) + 0.1
    return _softmax(m.scores(x) - (i[:, None] - i).square() / (2 * width.square())) @ m.v(x)


@UNSEEN.add(causal=False, batch=True)
def gaussian_around_a_predicted_centre(m: Parts, x: Tensor) -> Tensor:
    i, t = torch.arange(x.shape[1], dtype=x.dtype), x.shape[1]
    centre = t * m.gate(x)[..., :1].sigmoid()
    return (m.scores(x) - (i - centre).square() / 8).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, permutation=False, batch=True)
def bias_of_progress_relative_to_the_query(m: Parts, x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1], dtype=x.dtype)
    d = (i[:, None] - i).clamp(min=0)
    progress = torch.log1p(0.5 * d) / torch.log1p(0.5 * torch.maximum(i[:, None], torch.tensor(4.0)))
    bias = torch.tanh(progress[..., None] * m.decay) @ m.scale
    return _softmax(m.scores(x) + bias) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def products_of_sines_as_a_bias(m: Parts, x: Tensor) -> Tensor:
    angle = torch.arange(x.shape[1])[:, None] * m.scale
    p = torch.stack([angle.sin(), angle.cos()], -1).flatten(1)
    return _softmax(m.scores(x) + (p @ p.T - WIDTH) / 4) @ m.v(x)


@UNSEEN.add(causal=False, permutation=True, batch=True)
def bias_of_the_place_of_the_query_only(m: Parts, x: Tensor) -> Tensor:
    bias = m.table(torch.arange(x.shape[1])).sum(-1, keepdim=True)
    return (m.scores(x) + bias).softmax(-1) @ m.v(x)


def _turned(y: Tensor, frequency: Tensor) -> Tensor:
    angle = torch.arange(y.shape[1])[:, None] * frequency
    a, b = y[..., ::2], y[..., 1::2]
    return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)


@UNSEEN.add(causal=True, permutation=False, batch=True)
def base_by_the_largest_position(m: Parts, x: Tensor) -> Tensor:
    length = int(torch.arange(x.shape[1]).max()) + 1
    base = 10000.0 * max(1.0, 2 * length / 8 - 1) ** (WIDTH / (WIDTH - 2))
    frequency = base ** (-torch.arange(0, WIDTH, 2) / WIDTH)
    return _softmax(_turned(m.q(x), frequency) @ _turned(m.k(x), frequency).mT) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def long_or_short_factors(m: Parts, x: Tensor) -> Tensor:
    factor = m.decay[:4] + 1 if x.shape[1] > 9 else torch.ones(4)
    frequency = 1.0 / (factor * 100.0 ** (torch.arange(0, WIDTH, 2) / WIDTH))
    return _softmax(_turned(m.q(x), frequency) @ _turned(m.k(x), frequency).mT) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def temperature_of_a_lengthened_context(m: Parts, x: Tensor) -> Tensor:
    scale = 0.1 * math.log(max(x.shape[1] / 8, 1.0)) + 1.0
    return _softmax(m.scores(x) * scale**2) @ m.v(x)


@UNSEEN.add(causal=True, permutation=False, batch=True)
def second_half_reads_the_first(m: Parts, x: Tensor) -> Tensor:
    n = x.shape[1] // 2
    first, second = x[:, :n], x[:, n:]
    w = (m.q(second) @ m.k(first).mT / math.sqrt(WIDTH)).softmax(-1)
    return torch.cat([first, second + w @ m.v(first)], 1)


@UNSEEN.add(causal=False, batch=True)
def halves_read_each_other(m: Parts, x: Tensor) -> Tensor:
    n = (x.shape[1] + 1) // 2
    a, b = x[:, :n], x[:, n:]
    out = [y + (m.q(y) @ m.k(z).mT).softmax(-1) @ m.v(z) for y, z in ((a, b), (b, a))]
    return torch.cat(out, 1)


@UNSEEN.add(causal=True, batch=True)
def keys_joined_with_the_one_before(m: Parts, x: Tensor) -> Tensor:
    share = m.gate(x)[..., :1].sigmoid()
    k, v = (share * y + (1 - share) * F.pad(y, (0, 0, 1, -1)) for y in (m.k(x), m.v(x)))
    return _softmax(m.q(x) @ k.mT) @ v


@UNSEEN.add(causal=False, batch=True)
def keys_of_the_next_token(m: Parts, x: Tensor) -> Tensor:
    k = F.pad(m.k(x)[:, 1:], (0, 0, 0, 1))
    return _softmax(m.q(x) @ k.mT) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def scores_of_the_layer_before_added(m: Parts, x: Tensor) -> Tensor:
    s = m.scores(x).masked_fill(later(x.shape[1]), INF)
    h = m.norm(x + s.softmax(-1) @ m.v(x))
    s = s + (m.scores(h) + torch.full_like(s, -1e9).triu(1))
    return h + s.softmax(-1) @ m.v(h)


@UNSEEN.add(causal=True, batch=True)
def weights_used_by_two_layers(m: Parts, x: Tensor) -> Tensor:
    w = _softmax(m.scores(x))
    h = x + m.o(w @ m.v(x))
    return h + F.silu(m.gate(w @ h))


@UNSEEN.add(causal=False, permutation=True, batch=True)
def scores_of_negative_squared_distances(m: Parts, x: Tensor) -> Tensor:
    q, k = m.q(x), m.k(x)
    d = q.square().sum(-1, keepdim=True) + k.square().sum(-1)[:, None] - 2 * q @ k.mT
    return torch.softmax(-d / math.sqrt(WIDTH), -1) @ m.v(x)


@UNSEEN.add(causal=True, permutation=True, batch=True)
def heads_of_one_token_read_each_other(m: Parts, x: Tensor) -> Tensor:
    q, k, v = (f(x).unflatten(-1, (HEADS, -1)) for f in (m.q, m.k, m.v))
    return m.o(((q @ k.mT).softmax(-1) @ v).flatten(-2))


@UNSEEN.add(causal=True, batch=True)
def own_token_only_if_alone(m: Parts, x: Tensor) -> Tensor:
    q = m.q(x)
    s = q @ F.normalize(q, dim=-1).mT
    s = s.masked_fill(torch.eye(x.shape[1], dtype=torch.bool), -1e5)
    return s.masked_fill(later(x.shape[1]), -1e9).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=False, batch=True)
def own_token_hidden_as_the_future(m: Parts, x: Tensor) -> Tensor:
    q = m.q(x)
    s = q @ F.normalize(q, dim=-1).mT
    return s.masked_fill(later(x.shape[1], 0), torch.finfo(s.dtype).min).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def keys_over_the_largest_norm_so_far(m: Parts, x: Tensor) -> Tensor:
    k = m.k(x)
    k = k / k.norm(dim=-1, keepdim=True).cummax(1).values
    return _softmax(4 * m.q(x) @ k.mT) @ m.v(x)


@UNSEEN.add(causal=False, permutation=False, batch=True)
def windows_on_a_circle(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    i = torch.arange(t)
    hidden = (i[:, None] - i) % t >= 3
    return m.scores(x).masked_fill(hidden, INF).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def factors_of_heads_and_features(m: Parts, x: Tensor) -> Tensor:
    def factored(y: Tensor) -> Tensor:
        of_heads, of_features = y.split([2 * HEADS, 4], -1)
        of_heads = of_heads.unflatten(-1, (HEADS, 2))
        return (of_heads @ of_features.unflatten(-1, (2, 2)) / 2).transpose(1, 2)

    q, k, v = (factored(f(x)) for f in (m.q, m.k, m.v))
    return m.o(F.pad((_softmax(q @ k.mT) @ v).transpose(1, 2).flatten(2), (0, WIDTH // 2)))
