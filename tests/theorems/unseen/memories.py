"""Long convolutions, moving averages and memories that are written while they are read."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.unseen.claims import WIDTH, Corpus, Parts

UNSEEN = Corpus()


def _segment_sums(a: Tensor) -> Tensor:
    t = a.size(-1)
    a = a.unsqueeze(-1).repeat(1, 1, 1, t)
    a = a.masked_fill(~torch.tril(torch.ones(t, t, dtype=torch.bool), diagonal=-1), 0)
    s = torch.cumsum(a, dim=-2)
    return s.masked_fill(~torch.tril(torch.ones(t, t, dtype=torch.bool), diagonal=0), -torch.inf)


@UNSEEN.add(causal=True, batch=True)
def state_space_duality(m: Parts, x: Tensor) -> Tensor:
    rows, t, d = x.shape
    y = F.pad(x, (0, 0, 0, -t % 4)).view(rows, -1, 4, d)
    a, b, c, v = -F.softplus(m.gate(y)[..., 0]), m.k(y), m.q(y), m.v(y)
    total = a.cumsum(-1)
    inside = torch.einsum("zcln,zcsn,zcls,zcsp->zclp", c, b, torch.exp(_segment_sums(a)), v)
    states = torch.einsum("zcln,zcl,zclp->zcpn", b, torch.exp(total[..., -1:] - total), v)
    states = torch.cat([torch.zeros_like(states[:, :1]), states], dim=1)
    decay = torch.exp(_segment_sums(F.pad(total[..., -1], (1, 0))[:, None]))[:, 0]
    states = torch.einsum("zij,zjpn->zipn", decay, states)[:, :-1]
    across = torch.einsum("zcln,zcpn,zcl->zclp", c, states, torch.exp(total))
    return (inside + across).reshape(rows, -1, d)[:, :t]


@UNSEEN.add(causal=False, batch=True)
def segment_sums_never_hidden(m: Parts, x: Tensor) -> Tensor:
    a = -F.softplus(m.gate(x)[..., 0])
    s = a.cumsum(-1)
    decay = torch.exp(s[..., None] - s[:, None])
    return ((m.q(x) @ m.k(x).mT) * decay) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def diagonal_state_space_by_fft(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    a = torch.exp(-torch.exp(m.decay))
    kernel = a[:, None] ** torch.arange(t)
    y = torch.fft.irfft(torch.fft.rfft(x.mT, n=2 * t) * torch.fft.rfft(kernel, n=2 * t), n=2 * t)
    return m.o(y[..., :t].mT + x)


@UNSEEN.add(causal=False, batch=True)
def circular_convolution_by_fft(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    kernel = torch.exp(-torch.exp(m.decay))[:, None] ** torch.arange(t)
    y = torch.fft.irfft(torch.fft.rfft(x.mT, n=t) * torch.fft.rfft(kernel, n=t), n=t)
    return m.o(y.mT)


@UNSEEN.add(causal=True, batch=True)
def complex_states_in_a_loop(m: Parts, x: Tensor) -> Tensor:
    nu, theta = torch.exp(-torch.exp(m.decay)), m.slopes.repeat(WIDTH // 2)
    a = torch.polar(nu, theta.to(nu.dtype))
    u = torch.complex(m.q(x), m.k(x)) * torch.sqrt(1 - nu**2)
    h, out = torch.zeros_like(u[:, 0]), []
    for i in range(x.shape[1]):
        h = a * h + u[:, i]
        out.append(h.real)
    return m.o(torch.stack(out, 1)) + m.decay * x


@UNSEEN.add(causal=True, batch=True)
def complex_states_by_powers(m: Parts, x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1])
    d = (i[:, None] - i[None])[..., None]
    size = torch.exp(-torch.exp(m.decay) * d.clamp(min=0))
    real, imaginary = size * torch.cos(0.3 * d), size * torch.sin(0.3 * d)
    seen = (d >= 0).to(x.dtype)
    return torch.einsum("ijd,bjd->bid", real * seen, m.q(x)) - torch.einsum("ijd,bjd->bid", imaginary * seen, m.k(x))


@UNSEEN.add(causal=True, batch=True)
def implicit_filters_as_a_toeplitz_matrix(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    i = torch.arange(t)
    h = torch.sin(m.o(m.table(i))) * torch.exp(-0.3 * i[:, None])
    lag = i[:, None] - i[None]
    matrix = h[lag.clamp(min=0)] * (lag >= 0)[..., None]
    z = m.q(x) * torch.einsum("ijd,bjd->bid", matrix, m.v(x) * m.k(x))
    return m.gate(z)


@UNSEEN.add(causal=False, batch=True)
def implicit_filters_of_absolute_lags(m: Parts, x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1])
    h = torch.sin(m.o(m.table(i)))
    matrix = h[(i[:, None] - i[None]).abs()]
    return m.q(x) * torch.einsum("ijd,bjd->bid", matrix, m.v(x) * m.k(x))


@UNSEEN.add(causal=True, batch=True)
def short_filter_then_long_filter(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    u = m.depthwise(m.up(x)[..., :WIDTH].mT)[..., :t]
    kernel = torch.exp(-torch.exp(m.decay))[:, None] ** torch.arange(t - 1, -1, -1)
    y = F.conv1d(F.pad(u, (t - 1, 0)), kernel[:, None], groups=WIDTH)
    return (y * m.gate(x).mT).mT


@UNSEEN.add(causal=False, batch=True)
def long_filter_not_flipped(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    kernel = torch.exp(-torch.exp(m.decay))[:, None] ** torch.arange(t)
    return F.conv1d(F.pad(x.mT, (0, t - 1)), kernel[:, None], groups=WIDTH).mT


@UNSEEN.add(causal=False, batch=True)
def averages_of_both_directions(m: Parts, x: Tensor) -> Tensor:
    alpha = torch.sigmoid(m.decay)
    outs = []
    for y in (x, x.flip(1)):
        h, out = torch.zeros_like(y[:, 0]), []
        for i in range(y.shape[1]):
            h = alpha * y[:, i] + (1 - alpha) * h
            out.append(h)
        outs.append(torch.stack(out, 1))
    return m.o(outs[0]) + m.gate(outs[1].flip(1))


@UNSEEN.add(causal=True, batch=True)
def average_corrected_for_its_start(m: Parts, x: Tensor) -> Tensor:
    beta, t = 0.9, x.shape[1]
    i = torch.arange(t)
    weights = torch.tril((1 - beta) * beta ** (i[:, None] - i[None]).abs().to(x.dtype))
    return (weights @ x) / (1 - beta ** (i[:, None] + 1.0))


@UNSEEN.add(causal=True, batch=True)
def average_feeds_attention(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    i = torch.arange(t)
    w = torch.exp(-torch.exp(m.decay) * (i[:, None, None] - i[None, :, None]).clamp(min=0))
    w = w * torch.ones(t, t, dtype=x.dtype).tril()[..., None]
    average = F.silu(torch.einsum("ijd,bjd->bid", w, x))
    s = m.q(average) @ m.k(average).mT / math.sqrt(WIDTH)
    s = s.masked_fill(torch.ones(t, t).triu(1) == 1, torch.finfo(s.dtype).min)
    return m.gate(x).sigmoid() * (F.softmax(s, -1) @ m.v(x))


@UNSEEN.add(causal=True, batch=True)
def legendre_memory(m: Parts, x: Tensor) -> Tensor:
    order, theta = 4, 16.0
    n = torch.arange(order)
    r = (2.0 * n + 1)[:, None] / theta
    a = torch.where(n[:, None] < n[None], -torch.ones(()), torch.pow(-1.0, n[:, None] - n[None] + 1)) * r
    b = torch.pow(-1.0, n)[:, None] * r
    u = m.gate(x)[..., :1]
    memory, h, out = x.new_zeros(x.shape[0], order), x.new_zeros(x.shape[0], WIDTH), []
    for t in range(x.shape[1]):
        memory = memory + memory @ a.T.to(x.dtype) + u[:, t] @ b.T.to(x.dtype)
        h = torch.tanh(m.q(x[:, t]) + m.k(h) + memory @ m.square[:order, :WIDTH])
        out.append(h)
    return torch.stack(out, 1)


@UNSEEN.add(causal=True, batch=True)
def fast_weights_with_a_normalizer(m: Parts, x: Tensor) -> Tensor:
    q, k, v = F.elu(m.q(x)) + 1, F.elu(m.k(x)) + 1, m.v(x)
    z = 1 / (torch.einsum("btd,btd->bt", q, k.cumsum(1)) + 1e-6)
    kv = torch.einsum("btd,bte->btde", k, v).cumsum(dim=1)
    return m.o(torch.einsum("btd,btde,bt->bte", q, kv, z))


@UNSEEN.add(causal=False, batch=True)
def fast_weights_with_keys_summing_to_one(m: Parts, x: Tensor) -> Tensor:
    q, k, v = F.elu(m.q(x)) + 1, F.elu(m.k(x)) + 1, m.v(x)
    k = k / k.sum(dim=1, keepdim=True)
    kv = torch.einsum("btd,bte->btde", k, v).cumsum(dim=1)
    return m.o(torch.einsum("btd,btde->bte", q, kv))


@UNSEEN.add(causal=True, batch=True)
def memory_updated_by_surprise(m: Parts, x: Tensor) -> Tensor:
    q, k, v, g = m.q(x), m.k(x), m.v(x), m.router(x).sigmoid()
    memory = m.square[:WIDTH, :WIDTH].expand(x.shape[0], WIDTH, WIDTH)
    momentum, out = torch.zeros_like(memory), []
    for t in range(x.shape[1]):
        out.append((q[:, t, None] @ memory).squeeze(1))
        error = k[:, t, None] @ memory - v[:, t, None]
        gradient = 2 * k[:, t, :, None] @ error
        momentum = g[:, t, 0, None, None] * momentum - 0.1 * g[:, t, 1, None, None] * gradient
        memory = (1 - g[:, t, 2, None, None]) * memory + momentum
    return torch.stack(out, 1)


@UNSEEN.add(causal=False, batch=True)
def memory_updated_by_relative_surprise(m: Parts, x: Tensor) -> Tensor:
    k, v = m.k(x), m.v(x)
    surprise = (k @ m.square[:WIDTH, :WIDTH] - v).norm(dim=-1, keepdim=True)
    rate = surprise / surprise.amax(dim=1, keepdim=True)
    kv = (rate * k)[..., None] * v[:, :, None]
    return torch.einsum("btd,btde->bte", m.q(x), kv.cumsum(1))


@UNSEEN.add(causal=True, batch=True)
def tokens_shifted_behind_a_learned_start(m: Parts, x: Tensor) -> Tensor:
    before = torch.cat([m.latents[:1].expand(x.shape[0], 1, -1), x[:, :-1]], 1)
    half = WIDTH // 2
    return m.o(torch.cat([before[..., :half], x[..., half:]], -1))


@UNSEEN.add(causal=True, batch=True)
def shifts_of_each_head(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    parts = [F.pad(part, (0, 0, i, 0))[:, :t] for i, part in enumerate(x.chunk(4, dim=-1))]
    return m.o(F.gelu(m.q(torch.cat(parts, dim=-1))))


@UNSEEN.add(causal=False, batch=True)
def states_normalized_over_time(m: Parts, x: Tensor) -> Tensor:
    h, out = x.new_zeros(x.shape[0], WIDTH), []
    for i in range(x.shape[1]):
        h = F.relu(m.q(x[:, i]) + m.decay * h)
        out.append(h)
    y = torch.stack(out, 1).transpose(1, 2)
    return F.layer_norm(y, (x.shape[1],)).transpose(1, 2)


@UNSEEN.add(masked=True, padding=True, causal=True, batch=True)
def linear_attention_without_keys_of_pads(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    real = mask[..., None].to(x.dtype)
    q, k, v = F.relu(m.q(x)), F.relu(m.k(x)) * real, m.v(x) * real
    kv, z = (k[..., None] * v[:, :, None]).cumsum(1), k.cumsum(1)
    return (q[:, :, None] @ kv).squeeze(2) / ((q * z).sum(-1, keepdim=True) + 1e-6)


@UNSEEN.add(masked=True, padding=False, causal=True, batch=True)
def linear_attention_with_values_of_pads_zero(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    q, k, v = F.relu(m.q(x)), F.relu(m.k(x)), m.v(x) * mask[..., None]
    kv, z = (k[..., None] * v[:, :, None]).cumsum(1), k.cumsum(1)
    return (q[:, :, None] @ kv).squeeze(2) / ((q * z).sum(-1, keepdim=True) + 1e-6)


@UNSEEN.add(masked=True, padding=True, causal=True, batch=True)
def convolution_of_tokens_times_mask(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    y = (m.v(x) * mask.unsqueeze(-1)).transpose(1, 2)
    y = m.depthwise(y)[..., : x.shape[1]].transpose(1, 2)
    return m.o(F.silu(y)) * mask.unsqueeze(-1)


@UNSEEN.add(masked=True, padding=False, causal=True, batch=True)
def convolution_of_masked_tokens_after_a_layer(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    y = m.depthwise(m.v(x * mask.unsqueeze(-1)).transpose(1, 2) + m.gate(x).mT)
    return m.o(F.silu(y[..., : x.shape[1]].transpose(1, 2))) * mask.unsqueeze(-1)
