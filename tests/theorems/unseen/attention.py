"""Variants of attention."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.unseen.claims import HEADS, WIDTH, Corpus, Parts, later

UNSEEN = Corpus()
INF = float("-inf")


@UNSEEN.add(causal=True, batch=True)
def flag_of_the_fused_call(m: Parts, x: Tensor) -> Tensor:
    return x + m.join(F.scaled_dot_product_attention(*m.heads(m.norm(x)), is_causal=True))


@UNSEEN.add(causal=False, permutation=True, batch=True)
def flag_forgotten(m: Parts, x: Tensor) -> Tensor:
    return x + m.join(F.scaled_dot_product_attention(*m.heads(m.norm(x))))


@UNSEEN.add(causal=True, batch=True)
def one_key_head_for_all(m: Parts, x: Tensor) -> Tensor:
    q, k, v = m.heads(x)
    k, v = (y[:, :1].repeat_interleave(HEADS, dim=1) for y in (k, v))
    s = (q @ k.transpose(-2, -1)).masked_fill(later(x.shape[1]), INF)
    return m.join(s.softmax(-1) @ v)


@UNSEEN.add(causal=False, batch=True)
def heads_viewed_without_transpose(m: Parts, x: Tensor) -> Tensor:
    b, t, _ = x.shape
    q, k, v = (f(x).reshape(b, HEADS, t, WIDTH // HEADS) for f in (m.q, m.k, m.v))
    s = (q @ k.transpose(-2, -1)).masked_fill(later(t), INF)
    return m.join(s.softmax(-1) @ v)


@UNSEEN.add(causal=True, batch=True)
def scores_capped_then_masked(m: Parts, x: Tensor) -> Tensor:
    q, k, v = m.heads(x)
    s = 5 * torch.tanh(q @ k.mT / 5)
    return m.join(s.masked_fill(later(x.shape[1]), INF).softmax(-1) @ v)


@UNSEEN.add(causal=False, batch=True)
def scores_masked_then_capped(m: Parts, x: Tensor) -> Tensor:
    q, k, v = m.heads(x)
    s = (q @ k.mT).masked_fill(later(x.shape[1]), INF)
    return m.join((5 * torch.tanh(s / 5)).softmax(-1) @ v)


@UNSEEN.add(causal=True, batch=True)
def sigmoid_attention(m: Parts, x: Tensor) -> Tensor:
    w = m.scores(x).sigmoid().tril()
    return x + m.o(w @ m.v(x)) / x.shape[1]


@UNSEEN.add(causal=True, batch=True)
def normalized_queries_and_keys(m: Parts, x: Tensor) -> Tensor:
    q, k, v = m.heads(x)
    s = 10.0 * F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).mT
    return m.join(s.masked_fill(later(x.shape[1]), INF).softmax(-1) @ v)


@UNSEEN.add(causal=False, batch=True, permutation=True)
def keys_normalized_over_tokens(m: Parts, x: Tensor) -> Tensor:
    s = F.normalize(m.q(x), dim=1) @ F.normalize(m.k(x), dim=1).mT
    return s.softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True, permutation=False)
def distances_times_slopes(m: Parts, x: Tensor) -> Tensor:
    q, k, v = m.heads(x)
    i = torch.arange(x.shape[1])
    bias = m.slopes[:, None, None] * (i[None] - i[:, None])
    return m.join((q @ k.mT + bias).masked_fill(later(x.shape[1]), INF).softmax(-1) @ v)


@UNSEEN.add(causal=False, batch=True)
def distances_of_both_sides(m: Parts, x: Tensor) -> Tensor:
    q, k, v = m.heads(x)
    i = torch.arange(x.shape[1])
    bias = -m.slopes[:, None, None] * (i[None] - i[:, None]).abs()
    return m.join((q @ k.mT + bias).softmax(-1) @ v)


@UNSEEN.add(causal=True, batch=True)
def window_of_three(m: Parts, x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1])
    d = i[:, None] - i[None]
    return m.scores(x).masked_fill(~((d >= 0) & (d < 3)), INF).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=False, batch=True)
def window_of_both_sides(m: Parts, x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1])
    d = i[:, None] - i[None]
    return m.scores(x).masked_fill(d.abs() >= 3, INF).softmax(-1) @ m.v(x)


def _bucket(d: Tensor, half: int = 8, far: int = 32) -> Tensor:
    d = d.clamp(min=0)
    large = half + (torch.log(d.float().clamp(min=1) / half) / torch.log(torch.tensor(far / half)) * half).long()
    return torch.where(d < half, d, large.clamp(max=2 * half - 1))


@UNSEEN.add(causal=True, batch=True)
def buckets_of_distances(m: Parts, x: Tensor) -> Tensor:
    q, k, v = m.heads(x)
    i = torch.arange(x.shape[1])
    bias = m.bias(_bucket(i[:, None] - i[None])).permute(2, 0, 1)
    return m.join((q @ k.mT + bias).masked_fill(later(x.shape[1]), INF).softmax(-1) @ v)


@UNSEEN.add(causal=False, batch=True, permutation=False)
def buckets_without_mask(m: Parts, x: Tensor) -> Tensor:
    q, k, v = m.heads(x)
    i = torch.arange(x.shape[1])
    bias = m.bias(_bucket(i[:, None] - i[None])).permute(2, 0, 1)
    return m.join((q @ k.mT + bias).softmax(-1) @ v)


@UNSEEN.add(causal=True, batch=True)
def linear_attention(m: Parts, x: Tensor) -> Tensor:
    q, k, v = F.elu(m.q(x)) + 1, F.elu(m.k(x)) + 1, m.v(x)
    kv = torch.einsum("btd,bte->btde", k, v).cumsum(1)
    z = 1 / (torch.einsum("btd,btd->bt", q, k.cumsum(1)) + 1e-6)
    return torch.einsum("btd,btde,bt->bte", q, kv, z)


@UNSEEN.add(causal=False, batch=True)
def linear_attention_normalized_over_all(m: Parts, x: Tensor) -> Tensor:
    q, k, v = F.elu(m.q(x)) + 1, F.elu(m.k(x)) + 1, m.v(x)
    kv = torch.einsum("btd,bte->btde", k, v).cumsum(1)
    z = 1 / (torch.einsum("btd,bd->bt", q, k.sum(1)) + 1e-6)
    return torch.einsum("btd,btde,bt->bte", q, kv, z)


@UNSEEN.add(causal=True, batch=True)
def retention(m: Parts, x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1])
    d = (i[:, None] - i[None]).float()
    decay = torch.where(d >= 0, 0.9**d, torch.zeros_like(d))
    return m.norm((m.scores(x) * decay) @ m.v(x)) * F.silu(m.gate(x))


@UNSEEN.add(causal=False, batch=True)
def retention_of_both_sides(m: Parts, x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1])
    decay = 0.9 ** (i[:, None] - i[None]).abs().float()
    return m.norm((m.scores(x) * decay) @ m.v(x)) * F.silu(m.gate(x))


@UNSEEN.add(causal=True, batch=True)
def score_of_nothing(m: Parts, x: Tensor) -> Tensor:
    q, k, v = m.heads(x)
    s = (q @ k.mT).masked_fill(later(x.shape[1]), INF)
    s = torch.cat([s, torch.zeros_like(s[..., :1])], dim=-1)
    return m.join(s.softmax(-1)[..., :-1] @ v)


@UNSEEN.add(causal=True, batch=True)
def difference_of_two_softmaxes(m: Parts, x: Tensor) -> Tensor:
    q, k, _ = m.heads(x)
    s = (q @ k.mT).masked_fill(later(x.shape[1]), INF).softmax(-1)
    return m.norm((s[:, 0] - 0.5 * s[:, 1]) @ m.v(x))


@UNSEEN.add(causal=False, permutation=True, batch=True)
def latents_between(m: Parts, x: Tensor) -> Tensor:
    read = (m.latents @ m.k(x).mT).softmax(-1) @ m.v(x)
    return x + (m.q(x) @ read.mT).softmax(-1) @ read


def _blocks(y: Tensor, size: int) -> Tensor:
    b, t, d = y.shape
    y = F.pad(y, (0, 0, 0, -t % size))
    return y.view(b, -1, size, d)


@UNSEEN.add(causal=True, batch=True)
def blocks_that_look_back(m: Parts, x: Tensor) -> Tensor:
    size, t = 4, x.shape[1]
    q, k, v = (_blocks(f(x), size) for f in (m.q, m.k, m.v))
    k, v = (torch.cat([F.pad(y, (0, 0, 0, 0, 1, 0))[:, :-1], y], 2) for y in (k, v))
    s = q @ k.mT
    i, j = torch.arange(size) + size, torch.arange(2 * size)
    s = s.masked_fill(j[None] > i[:, None], -1e9)
    return (s.softmax(-1) @ v).flatten(1, 2)[:, :t]


@UNSEEN.add(causal=False, batch=True)
def blocks_that_look_ahead(m: Parts, x: Tensor) -> Tensor:
    size, t = 4, x.shape[1]
    q, k, v = (_blocks(f(x), size) for f in (m.q, m.k, m.v))
    k, v = (torch.cat([y, F.pad(y, (0, 0, 0, 0, 0, 1))[:, 1:]], 2) for y in (k, v))
    return ((q @ k.mT).softmax(-1) @ v).flatten(1, 2)[:, :t]


@UNSEEN.add(causal=True, batch=True)
def forget_gates(m: Parts, x: Tensor) -> Tensor:
    c = F.logsigmoid(m.gate(x).mean(-1)).cumsum(1)
    s = m.scores(x) + c[:, :, None] - c[:, None, :]
    return s.masked_fill(later(x.shape[1]), INF).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def long_convolution_by_fft(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    kernel = torch.exp(-m.decay.abs()[None] * torch.arange(t)[:, None])
    y = torch.fft.irfft(torch.fft.rfft(x, n=2 * t, dim=1) * torch.fft.rfft(kernel, n=2 * t, dim=0), n=2 * t, dim=1)
    return y[:, :t]


@UNSEEN.add(causal=False, batch=True)
def circular_convolution_by_fft(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    kernel = torch.exp(-m.decay.abs()[None] * torch.arange(t)[:, None])
    return torch.fft.irfft(torch.fft.rfft(x, dim=1) * torch.fft.rfft(kernel, dim=0), n=t, dim=1)


@UNSEEN.add(causal=True, batch=True)
def attention_free(m: Parts, x: Tensor) -> Tensor:
    k = m.k(x)
    w = torch.exp(k - k.amax(1, keepdim=True))
    return m.q(x).sigmoid() * (w * m.v(x)).cumsum(1) / w.cumsum(1)


@UNSEEN.add(causal=True, batch=True, permutation=False)
def scores_of_a_table(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    return m.square[:t, :t].masked_fill(later(t), INF).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def every_other_key(m: Parts, x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1])
    d = i[:, None] - i[None]
    return m.scores(x).masked_fill((d % 2 != 0) | (d < 0), INF).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=False, batch=True)
def every_other_key_of_both_sides(m: Parts, x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1])
    return m.scores(x).masked_fill((i[:, None] - i[None]) % 2 != 0, INF).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=False, batch=True)
def prefix_sees_itself(m: Parts, x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1])
    seen = (i[None] <= i[:, None]) | (i[None] < 3)
    return m.scores(x).masked_fill(~seen, INF).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def strided_sparse_keys(m: Parts, x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1])
    d = i[:, None] - i[None]
    seen = (d >= 0) & ((d < 2) | (i % 3 == 0)[None])
    return m.scores(x).masked_fill(~seen, torch.finfo(x.dtype).min).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def rectified_scores(m: Parts, x: Tensor) -> Tensor:
    w = F.relu(m.scores(x)).masked_fill(later(x.shape[1]), 0)
    return m.norm(w @ m.v(x))


@UNSEEN.add(causal=False, batch=True, permutation=True)
def rectified_scores_of_all(m: Parts, x: Tensor) -> Tensor:
    return m.norm(F.relu(m.scores(x)) @ m.v(x))


@UNSEEN.add(causal=True, batch=True)
def heads_mixed_after_softmax(m: Parts, x: Tensor) -> Tensor:
    q, k, v = m.heads(x)
    w = (q @ k.mT).masked_fill(later(x.shape[1]), INF).softmax(-1)
    w = torch.einsum("bhij,hg->bgij", w, m.square[:HEADS, :HEADS])
    return m.join(w @ v)


@UNSEEN.add(causal=True, batch=True)
def relative_keys_by_shift(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    q, k = m.q(x), m.k(x)
    r = m.table(torch.arange(t).flip(0))
    pos = q @ r.T
    pos = F.pad(pos, (1, 0)).view(x.shape[0], t + 1, t)[:, 1:]
    return (q @ k.mT + pos).masked_fill(later(t), INF).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=False, batch=False)
def softmax_over_rows(m: Parts, x: Tensor) -> Tensor:
    return m.scores(x).softmax(0) @ m.v(x)
