"""Positions: rotations, biases of distances, and tables."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.unseen.claims import HEADS, WIDTH, Corpus, Parts, later

UNSEEN = Corpus()
INF = float("-inf")


def _attend(m: Parts, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | float = 0.0) -> Tensor:
    s = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) + bias
    return s.masked_fill(later(q.shape[-2]), INF).softmax(-1) @ v


@UNSEEN.add(causal=True, permutation=False, batch=True)
def rotation_by_complex_numbers(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    freqs = 1.0 / 10000 ** (torch.arange(0, WIDTH, 2).float() / WIDTH)
    turn = torch.polar(torch.ones(t, WIDTH // 2).float(), torch.outer(torch.arange(t).float(), freqs))
    turn = turn.to(torch.complex128)

    def rotate(y: Tensor) -> Tensor:
        z = torch.view_as_complex(y.double().reshape(*y.shape[:-1], -1, 2))
        return torch.view_as_real(z * turn).flatten(-2).to(y.dtype)

    return _attend(m, rotate(m.q(x)), rotate(m.k(x)), m.v(x))


@UNSEEN.add(causal=True, batch=True)
def rotation_of_pairs(m: Parts, x: Tensor) -> Tensor:
    t = torch.arange(x.shape[1], dtype=x.dtype)
    angle = torch.einsum("i,j->ij", t, m.scale[:4])
    sin, cos = angle.sin().repeat_interleave(2, -1), angle.cos().repeat_interleave(2, -1)

    def rotate(y: Tensor) -> Tensor:
        half = torch.stack((-y[..., 1::2], y[..., ::2]), dim=-1).reshape_as(y)
        return y * cos + half * sin

    return _attend(m, rotate(m.q(x)), rotate(m.k(x)), m.v(x))


@UNSEEN.add(causal=True, batch=True)
def rotation_of_a_part(m: Parts, x: Tensor) -> Tensor:
    angle = torch.arange(x.shape[1])[:, None] * torch.tensor([1.0, 0.1])

    def rotate(y: Tensor) -> Tensor:
        turned, kept = y[..., :4], y[..., 4:]
        a, b = turned[..., :2], turned[..., 2:]
        turned = torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)
        return torch.cat([turned, kept], -1)

    return _attend(m, rotate(m.q(x)), rotate(m.k(x)), m.v(x))


@UNSEEN.add(causal=True, batch=True)
def wavelengths_by_parts(m: Parts, x: Tensor) -> Tensor:
    freqs = 1.0 / 100 ** (torch.arange(0, WIDTH, 2).to(x.dtype) / WIDTH)
    ramp = ((torch.arange(4).to(x.dtype) - 1) / 2).clamp(0, 1)
    inverse = freqs / 4 * ramp + freqs * (1 - ramp)
    angle = torch.arange(x.shape[1])[:, None] * inverse[None]
    cos, sin = (torch.cat([f, f], -1) * (0.1 * math.log(4) + 1) for f in (angle.cos(), angle.sin()))
    q, k = (y * cos + torch.cat([-y[..., 4:], y[..., :4]], -1) * sin for y in (m.q(x), m.k(x)))
    return _attend(m, q, k, m.v(x))


@UNSEEN.add(causal=True, batch=True)
def base_by_the_number_of_tokens(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    base = 100.0 * max(1.0, t / 16) ** 2
    angle = torch.arange(t)[:, None] / base ** (torch.arange(4) / 4)
    q, k = (torch.cat([y[..., :4] * angle.cos() - y[..., 4:] * angle.sin(), y[..., 4:]], -1) for y in (m.q(x), m.k(x)))
    return _attend(m, q, k, m.v(x))


@UNSEEN.add(causal=False, batch=True)
def rotation_centred_by_content(m: Parts, x: Tensor) -> Tensor:
    p = m.gate(x)[..., 0].sigmoid().cumsum(1)
    p = p - p.mean(1, keepdim=True) ** 2
    angle = p[..., None] * m.scale[:4]
    k = torch.cat([m.k(x)[..., :4] * angle.cos(), m.k(x)[..., 4:] * angle.sin()], -1)
    return _attend(m, m.q(x), k, m.v(x))


@UNSEEN.add(causal=True, batch=True)
def positions_counted_by_content(m: Parts, x: Tensor) -> Tensor:
    s = m.scores(x)
    gates = torch.sigmoid(s).tril()
    p = gates.flip(-1).cumsum(-1).flip(-1).clamp(max=15)
    low, high = p.floor().long(), p.ceil().long()
    e = m.q(x) @ m.table.weight[:16].T
    w = p - low
    bias = e.gather(-1, low) * (1 - w) + e.gather(-1, high) * w
    return (s + bias).masked_fill(later(x.shape[1]), INF).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def slopes_as_powers(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    slopes = torch.tensor([2 ** (-8 * (h + 1) / HEADS) for h in range(HEADS)])
    distance = torch.arange(t).view(1, 1, -1) - torch.arange(t).view(1, -1, 1)
    return m.join(_attend(m, *m.heads(x), slopes.view(-1, 1, 1) * distance))


@UNSEEN.add(causal=True, batch=True)
def slopes_times_the_place_of_the_key(m: Parts, x: Tensor) -> Tensor:
    bias = m.slopes[None, :, None, None] * torch.arange(x.shape[1])[None, None, None]
    return m.join(_attend(m, *m.heads(x), bias))


@UNSEEN.add(causal=True, batch=True)
def slopes_from_the_end(m: Parts, x: Tensor) -> Tensor:
    bias = m.slopes[None, :, None, None] * torch.arange(1 - x.shape[1], 1)
    return m.join(_attend(m, *m.heads(x), bias))


@UNSEEN.add(causal=True, batch=True)
def slopes_by_running_sums(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    distance = torch.ones(t, t).tril(-1).cumsum(0).mul(-1)
    distance = distance.masked_fill(later(t), INF)
    return m.join(F.scaled_dot_product_attention(*m.heads(x), attn_mask=m.slopes.view(-1, 1, 1) * distance))


@UNSEEN.add(causal=False, batch=True)
def slopes_of_the_text_behind(m: Parts, x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1])
    distance = (i[None] - i[:, None]).clamp(min=0)
    q, k, v = m.heads(x)
    return m.join((q @ k.mT - m.slopes[:, None, None] * distance).softmax(-1) @ v)


@UNSEEN.add(causal=True, batch=True)
def buckets_of_logarithms(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    n = -torch.min(torch.arange(t)[None] - torch.arange(t)[:, None], torch.zeros(t, t, dtype=torch.long))
    far = 16 + (torch.log(n.float() / 16) / math.log(128 / 16) * 16).to(torch.long)
    far = torch.min(far, torch.full_like(far, 31))
    bias = m.bias(torch.where(n < 16, n, far)).permute(2, 0, 1).unsqueeze(0)
    return m.join(_attend(m, *m.heads(x), bias))


@UNSEEN.add(causal=False, permutation=False, batch=True)
def buckets_of_signs(m: Parts, x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1])
    d = i[None] - i[:, None]
    bias = m.bias((d > 0).long() * 16 + d.abs().clamp(max=15)).movedim(-1, 0)
    q, k, v = m.heads(x)
    return m.join((q @ k.mT + bias).softmax(-1) @ v)


@UNSEEN.add(causal=True, batch=True)
def clipped_distances_in_keys(m: Parts, x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1])
    d = torch.clamp(i[None] - i[:, None], -4, 4) + 4
    r = m.table(d)
    q = m.q(x)
    bias = torch.einsum("bid,ijd->bij", q, r)
    return _attend(m, q, m.k(x), m.v(x), bias) + 0.0


@UNSEEN.add(causal=False, batch=True)
def clipped_distances_in_values(m: Parts, x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1])
    r = m.table(torch.clamp(i[None] - i[:, None], -2, 2) + 2)
    w = m.scores(x).softmax(-1)
    return w @ m.v(x) + torch.einsum("bij,ijd->bid", w, r)


@UNSEEN.add(causal=True, batch=True)
def bias_of_a_small_network(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    d = torch.arange(t)[:, None] - torch.arange(t)
    d = torch.sign(d) * torch.log(d.abs() + 1.0)
    bias = F.linear(F.relu(d[..., None] * m.decay), m.bias.weight[:WIDTH].T)
    return m.join(_attend(m, *m.heads(x), bias.permute(2, 0, 1)))


@UNSEEN.add(causal=True, batch=True)
def kernel_of_logarithms(m: Parts, x: Tensor) -> Tensor:
    t = torch.arange(x.shape[1])
    d = (t[:, None] - t[None, :]).abs().to(x.dtype)
    bias = -m.slopes.view(-1, 1, 1) * torch.log1p(0.5 * d)
    return m.join(_attend(m, *m.heads(x), bias))


@UNSEEN.add(causal=True, permutation=False, batch=True)
def table_of_sines_made_in_the_call(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    table = torch.zeros(t, WIDTH)
    place = torch.arange(0, t).unsqueeze(1)
    divide = torch.exp(torch.arange(0, WIDTH, 2) * -(math.log(10000.0) / WIDTH))
    table[:, 0::2] = torch.sin(place * divide)
    table[:, 1::2] = torch.cos(place * divide)
    h = x * math.sqrt(WIDTH) + table.unsqueeze(0)
    return _attend(m, m.q(h), m.k(h), m.v(h))


@UNSEEN.add(permutation=False, batch=True)
def grid_of_rows_and_columns(m: Parts, x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1])
    h = x + torch.cat([m.table(i // 4)[..., :4], m.table(i % 4)[..., 4:]], -1)
    return m.o(F.gelu(m.v(h))).mean(1)


@UNSEEN.add(causal=True, batch=True)
def table_interpolated(m: Parts, x: Tensor) -> Tensor:
    table = F.interpolate(m.table.weight[:8].T[None], size=x.shape[1], mode="linear", align_corners=False)[0].T
    h = x + table
    return _attend(m, m.q(h), m.k(h), m.v(h))
