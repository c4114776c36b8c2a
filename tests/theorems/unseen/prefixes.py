"""Attention of low rank, in shifted windows, and with registers and prefixes."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.unseen.claims import HEADS, LONGEST, WIDTH, Corpus, Parts, later

UNSEEN = Corpus()
INF = float("-inf")
BLOCK = 3


def _block_means(y: Tensor) -> Tensor:
    """Means of whole blocks of tokens [row, block, feature]; the last tokens may belong to none."""
    b, t, d = y.shape
    return y[:, : t // BLOCK * BLOCK].reshape(b, t // BLOCK, BLOCK, d).mean(2)


@UNSEEN.add(causal=True, batch=True)
def random_features_of_exponentials(m: Parts, x: Tensor) -> Tensor:
    def features(y: Tensor) -> Tensor:
        y = y / WIDTH**0.25
        return torch.exp(y @ m.square[:WIDTH, :6] - y.square().sum(-1, keepdim=True) / 2) + 1e-4

    q, k, v = features(m.q(x)), features(m.k(x)), m.v(x)
    state = (k.unsqueeze(-1) * v.unsqueeze(-2)).cumsum(1)
    return torch.einsum("btf,btfd->btd", q, state) / (q * k.cumsum(1)).sum(-1, keepdim=True)


@UNSEEN.add(causal=False, batch=True)
def random_features_with_a_shared_maximum(m: Parts, x: Tensor) -> Tensor:
    k = m.k(x) @ m.square[:WIDTH, :6]
    k = torch.exp(k - k.amax((1, 2), keepdim=True)) + 1e-2
    q = torch.exp((m.q(x) @ m.square[:WIDTH, :6]).softmax(-1))
    state = (k.unsqueeze(-1) * m.v(x).unsqueeze(-2)).cumsum(1)
    return torch.einsum("btf,btfd->btd", q, state) / (q * k.cumsum(1)).sum(-1, keepdim=True)


@UNSEEN.add(causal=True, batch=True, permutation=False)
def weights_of_cosines_of_places(m: Parts, x: Tensor) -> Tensor:
    angle = math.pi / 2 * torch.arange(x.shape[1]).to(x.dtype)[:, None] / LONGEST
    q, k = F.relu(m.q(x)), F.relu(m.k(x))
    q, k = (torch.cat([y * angle.sin(), y * angle.cos()], -1) for y in (q, k))
    kv = torch.cumsum(torch.einsum("bti,btj->btij", k, m.v(x)), 1)
    z = torch.clamp(torch.einsum("bti,bti->bt", q, k.cumsum(1)), min=1e-6)
    return torch.einsum("bti,btij->btj", q, kv) / z[..., None]


@UNSEEN.add(causal=False, batch=True, permutation=False)
def keys_projected_over_tokens(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    k, v = (m.square[:5, :t] @ f(x) for f in (m.k, m.v))
    return (m.q(x) @ k.mT / math.sqrt(WIDTH)).softmax(-1) @ v


@UNSEEN.add(causal=False, batch=True)
def landmarks_of_segments(m: Parts, x: Tensor) -> Tensor:
    q, k, v = m.q(x), m.k(x), m.v(x)
    small_q, small_k = _block_means(q), _block_means(k)
    return (q @ small_k.mT).softmax(-1) @ ((small_q @ k.mT).softmax(-1) @ v)


def _windows(y: Tensor, size: int = 4) -> Tensor:
    return F.pad(y, (0, 0, 0, -y.shape[1] % size)).view(-1, size, y.shape[-1])


@UNSEEN.add(causal=False, batch=True)
def cyclic_shift_of_windows(m: Parts, x: Tensor) -> Tensor:
    b, t, d = x.shape
    h = torch.roll(F.pad(x, (0, 0, 0, -t % 4)), -2, 1)
    region = torch.zeros(h.shape[1])
    region[-4:-2] = 1
    region[-2:] = 2
    region = region.view(-1, 4)
    y = h.view(-1, 4, d)
    s = (m.q(y) @ m.k(y).mT).view(b, -1, 4, 4)
    s = s.masked_fill(region[:, None] != region[:, :, None], -100.0)
    y = s.softmax(-1).view(-1, 4, 4) @ m.v(y)
    return torch.roll(y.view(b, -1, d), 2, 1)[:, :t]


@UNSEEN.add(causal=False, batch=True)
def windows_without_a_shift(m: Parts, x: Tensor) -> Tensor:
    b, t, d = x.shape
    y = _windows(x)
    y = F.scaled_dot_product_attention(m.q(y), m.k(y), m.v(y))
    return x + y.view(b, -1, d)[:, :t]


@UNSEEN.add(causal=True, batch=True)
def windows_with_a_triangle(m: Parts, x: Tensor) -> Tensor:
    b, t, d = x.shape
    y = _windows(m.norm(x))
    y = F.scaled_dot_product_attention(m.q(y), m.k(y), m.v(y), is_causal=True)
    return x + m.o(y).view(b, -1, d)[:, :t]


@UNSEEN.add(batch=False)
def windows_joined_across_rows(m: Parts, x: Tensor) -> Tensor:
    b, t, d = x.shape
    y = x.transpose(0, 1).reshape(-1, b, d)
    y = F.scaled_dot_product_attention(m.q(y), m.k(y), m.v(y))
    return x + y.view(t, b, d).transpose(0, 1)


@UNSEEN.add(causal=False, batch=True)
def registers_read_all_tokens_and_are_read(m: Parts, x: Tensor) -> Tensor:
    b, t, _ = x.shape
    n = m.latents.shape[0]
    h = torch.cat([m.latents.expand(b, -1, -1), x], 1)
    hidden = later(n + t)
    hidden[:n] = False
    for _ in range(2):
        h = h + m.scores(h).masked_fill(hidden, INF).softmax(-1) @ m.v(h)
    return h[:, n:]


@UNSEEN.add(causal=True, batch=True)
def registers_that_see_themselves(m: Parts, x: Tensor) -> Tensor:
    b, t, _ = x.shape
    n = m.latents.shape[0]
    h = torch.cat([m.latents.expand(b, -1, -1), x], 1)
    hidden = later(n + t)
    hidden[:n, :n] = False
    for _ in range(2):
        h = h + m.scores(h).masked_fill(hidden, INF).softmax(-1) @ m.v(h)
    return h[:, n:]


@UNSEEN.add(causal=True, batch=True)
def prefix_keys_with_the_flag_of_the_fused_call(m: Parts, x: Tensor) -> Tensor:
    q, k, v = m.heads(x)
    prefix = m.latents.view(1, -1, HEADS, WIDTH // HEADS).transpose(1, 2).expand(x.shape[0], -1, -1, -1)
    y = F.scaled_dot_product_attention(q, torch.cat([prefix, k], 2), torch.cat([prefix, v], 2), is_causal=True)
    return m.join(y)


@UNSEEN.add(causal=True, batch=True)
def prefix_keys_with_an_offset_triangle(m: Parts, x: Tensor) -> Tensor:
    b, t, _ = x.shape
    k, v = (torch.cat([m.latents.expand(b, -1, -1), f(x)], 1) for f in (m.k, m.v))
    seen = torch.tril(torch.ones(t, k.shape[1]), diagonal=k.shape[1] - t)
    return (m.q(x) @ k.mT).masked_fill(seen == 0, INF).softmax(-1) @ v


@UNSEEN.add(causal=False, batch=True)
def prefix_keys_with_an_offset_one_too_far(m: Parts, x: Tensor) -> Tensor:
    b, t, _ = x.shape
    k, v = (torch.cat([m.latents.expand(b, -1, -1), f(x)], 1) for f in (m.k, m.v))
    seen = torch.tril(torch.ones(t, k.shape[1]), diagonal=m.latents.shape[0] + 1)
    return (m.q(x) @ k.mT).masked_fill(seen == 0, INF).softmax(-1) @ v
