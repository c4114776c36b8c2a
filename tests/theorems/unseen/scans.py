"""Recurrences and state spaces, by loops, scans and chunks."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.unseen.claims import WIDTH, Corpus, Parts

UNSEEN = Corpus()


def _lstm(m: Parts, steps: list[Tensor]) -> list[Tensor]:
    h = c = torch.zeros_like(steps[0])
    out = []
    for x in steps:
        i, f = (m.up(x) + m.up(h)).sigmoid().chunk(2, -1)
        c = f * c + i * torch.tanh(m.k(x) + m.v(h))
        h = torch.sigmoid(m.gate(x + h)) * c.tanh()
        out.append(h)
    return out


@UNSEEN.add(causal=True, batch=True)
def lstm_written_out(m: Parts, x: Tensor) -> Tensor:
    return torch.stack(_lstm(m, list(x.unbind(1))), dim=1)


@UNSEEN.add(causal=False, batch=True)
def lstm_in_both_directions(m: Parts, x: Tensor) -> Tensor:
    forward = torch.stack(_lstm(m, list(x.unbind(1))), dim=1)
    backward = torch.stack(_lstm(m, list(x.flip(1).unbind(1))), dim=1).flip(1)
    return m.down(torch.cat([forward, backward], -1))


@UNSEEN.add(causal=True, batch=True)
def lstm_with_peepholes(m: Parts, x: Tensor) -> Tensor:
    b, t, d = x.shape
    h, c = x.new_zeros(b, d), x.new_zeros(b, d)
    out = x.new_zeros(b, t, d)
    for s in range(t):
        i = torch.sigmoid(m.q(x[:, s]) + m.k(h) + m.decay * c)
        c = (1 - i) * c + i * torch.tanh(m.v(x[:, s]))
        h = torch.sigmoid(m.gate(h) + m.decay * c) * torch.tanh(c)
        out[:, s] = h
    return x + m.norm(out)


@UNSEEN.add(causal=True, batch=False)
def state_centred_over_rows(m: Parts, x: Tensor) -> Tensor:
    h, out = x.new_zeros(x.shape[0], WIDTH), []
    for step in x.unbind(1):
        h = torch.tanh(m.q(step) + m.k(h))
        h = h - h.mean(0)
        out.append(h)
    return torch.stack(out, 1)


@UNSEEN.add(causal=True, batch=False)
def first_state_of_the_mean_row(m: Parts, x: Tensor) -> Tensor:
    h, out = x[:, :1].mean(0), []
    h = h.expand(x.shape[0], -1)
    for i in range(x.shape[1]):
        h = m.cell(x[:, i], h)
        out.append(h)
    return torch.stack(out, 1)


@UNSEEN.add(causal=True, batch=True)
def two_layers_of_cells(m: Parts, x: Tensor) -> Tensor:
    low, high = torch.zeros(x.size(0), WIDTH, dtype=x.dtype), torch.zeros(x.size(0), WIDTH, dtype=x.dtype)
    out = []
    for t in range(x.size(1)):
        low = m.cell(x[:, t], low)
        high = torch.tanh(m.q(low) + m.k(high))
        out.append(m.o(high))
    return torch.stack(out, dim=1)


@UNSEEN.add(causal=True, batch=True)
def minimal_gru_in_logs(m: Parts, x: Tensor) -> Tensor:
    k, h = m.gate(x), m.v(x)
    log_z, log_coefficients = -F.softplus(-k), -F.softplus(k)
    log_h = torch.where(h >= 0, (F.relu(h) + 0.5).log(), -F.softplus(-h))
    a_star = log_coefficients.cumsum(dim=1)
    return (a_star + (log_z + log_h - a_star).logcumsumexp(dim=1)).exp()


@UNSEEN.add(causal=False, batch=True)
def minimal_gru_scaled_by_its_largest(m: Parts, x: Tensor) -> Tensor:
    k, h = m.gate(x), m.v(x)
    a_star = (-F.softplus(k)).cumsum(dim=1)
    log_h = a_star + (-F.softplus(-k) - F.softplus(-h) - a_star).logcumsumexp(dim=1)
    return (log_h - log_h.amax(dim=1, keepdim=True)).exp()


@UNSEEN.add(causal=True, batch=True)
def minimal_lstm_with_a_first_state(m: Parts, x: Tensor) -> Tensor:
    difference = F.softplus(-m.q(x)) - F.softplus(-m.k(x))
    log_f, log_i = -F.softplus(difference), -F.softplus(-difference)
    log_first = F.logsigmoid(m.decay).expand(x.shape[0], 1, -1)
    log_values = torch.cat([log_first, log_i + F.logsigmoid(m.v(x))], dim=1)
    a_star = F.pad(torch.cumsum(log_f, dim=1), (0, 0, 1, 0))
    return torch.exp(a_star + torch.logcumsumexp(log_values - a_star, dim=1))[:, 1:]


@UNSEEN.add(causal=True, batch=True)
def weighted_keys_with_a_running_maximum(m: Parts, x: Tensor) -> Tensor:
    k, v, r = m.k(x), m.v(x), m.q(x).sigmoid()
    w = -torch.exp(m.decay)
    aa, bb, pp = torch.zeros_like(k[:, 0]), torch.zeros_like(k[:, 0]), torch.full_like(k[:, 0], -1e38)
    out = []
    for i in range(x.shape[1]):
        ww = m.decay + k[:, i]
        p = torch.maximum(pp, ww)
        e1, e2 = torch.exp(pp - p), torch.exp(ww - p)
        out.append((e1 * aa + e2 * v[:, i]) / (e1 * bb + e2))
        ww = w + pp
        p = torch.maximum(ww, k[:, i])
        e1, e2 = torch.exp(ww - p), torch.exp(k[:, i] - p)
        aa, bb, pp = e1 * aa + e2 * v[:, i], e1 * bb + e2, p
    return m.o(r * torch.stack(out, 1))


@UNSEEN.add(causal=True, batch=True)
def weighted_keys_as_a_matrix(m: Parts, x: Tensor) -> Tensor:
    k, v, t = m.k(x), m.v(x), x.shape[1]
    i = torch.arange(t)
    distance = (i[:, None] - i[None, :])[..., None]
    logits = k[:, None] - torch.exp(m.decay) * distance.clamp(min=0)
    logits = logits.masked_fill(distance < 0, float("-inf"))
    return m.q(x).sigmoid() * (logits.softmax(2) * v[:, None]).sum(2)


@UNSEEN.add(causal=False, batch=True)
def weighted_keys_with_one_denominator(m: Parts, x: Tensor) -> Tensor:
    e = torch.exp(m.k(x))
    return m.q(x).sigmoid() * (e * m.v(x)).cumsum(1) / e.sum(1, keepdim=True)


@UNSEEN.add(causal=True, batch=True)
def retention_by_chunks(m: Parts, x: Tensor) -> Tensor:
    b, t, d = x.shape
    size, gamma = 4, 0.9
    q, k, v = (F.pad(f(x), (0, 0, 0, -t % size)).view(b, -1, size, d) for f in (m.q, m.k, m.v))
    i = torch.arange(size)
    inner = torch.where(i[:, None] >= i, gamma ** (i[:, None] - i).clamp(min=0), 0.0).to(x.dtype)
    state, out = x.new_zeros(b, d, d), []
    for c in range(q.shape[1]):
        across = (q[:, c] * gamma ** (i[:, None] + 1.0)) @ state
        out.append((q[:, c] @ k[:, c].mT * inner) @ v[:, c] + across)
        state = gamma**size * state + (k[:, c] * gamma ** (size - 1.0 - i[:, None])).mT @ v[:, c]
    return torch.cat(out, 1)[:, :t]


@UNSEEN.add(causal=False, batch=True)
def retention_by_chunks_updated_first(m: Parts, x: Tensor) -> Tensor:
    b, t, d = x.shape
    q, k, v = (F.pad(f(x), (0, 0, 0, -t % 4)).view(b, -1, 4, d) for f in (m.q, m.k, m.v))
    state, out = x.new_zeros(b, d, d), []
    for c in range(q.shape[1]):
        state = 0.9 * state + k[:, c].mT @ v[:, c]
        out.append((q[:, c] @ k[:, c].mT).tril() @ v[:, c] + q[:, c] @ state)
    return torch.cat(out, 1)[:, :t]


@UNSEEN.add(causal=True, batch=True)
def gated_linear_attention(m: Parts, x: Tensor) -> Tensor:
    q, k, v, g = m.q(x), m.k(x), m.v(x), F.logsigmoid(m.gate(x)) / 16
    s = torch.zeros(x.shape[0], WIDTH, WIDTH, dtype=x.dtype)
    out = torch.zeros_like(v)
    for i in range(x.shape[1]):
        s = s * g[:, i, :, None].exp() + k[:, i, :, None] * v[:, i, None, :]
        out[:, i] = (q[:, i, :, None] * s).sum(-2)
    return out


@UNSEEN.add(causal=True, batch=True)
def gated_linear_attention_at_once(m: Parts, x: Tensor) -> Tensor:
    g = (F.logsigmoid(m.gate(x)) / 16).cumsum(1)
    a = (m.q(x) * g.exp()) @ (m.k(x) * (-g).exp()).transpose(-1, -2)
    return torch.tril(a) @ m.v(x)


@UNSEEN.add(causal=False, batch=True)
def gated_linear_attention_from_the_end(m: Parts, x: Tensor) -> Tensor:
    g = F.logsigmoid(m.gate(x)).cumsum(1)
    g = g - g[:, -1:]
    a = (m.q(x) * g.exp()) @ m.k(x).transpose(-1, -2)
    return torch.tril(a) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def gated_delta_rule(m: Parts, x: Tensor) -> Tensor:
    q, k, v = F.normalize(m.q(x), dim=-1), F.normalize(m.k(x), dim=-1), m.v(x)
    beta, alpha = m.router(x)[..., 0].sigmoid(), m.router(x)[..., 1].sigmoid()
    state, out = x.new_zeros(x.shape[0], WIDTH, WIDTH), []
    for i in range(x.shape[1]):
        state = state * alpha[:, i, None, None]
        error = v[:, i] - torch.einsum("bkv,bk->bv", state, k[:, i])
        state = state + torch.einsum("bk,bv->bkv", k[:, i], error * beta[:, i, None])
        out.append(torch.einsum("bkv,bk->bv", state, q[:, i]))
    return m.o(torch.stack(out, dim=1))


@UNSEEN.add(causal=True, batch=True)
def delta_rule_by_a_triangle(m: Parts, x: Tensor) -> Tensor:
    q, k, v = m.q(x), F.normalize(m.k(x), dim=-1), m.v(x)
    beta = torch.sigmoid(m.gate(x)[..., :1])
    t = x.shape[1]
    a = -((k * beta) @ k.mT).masked_fill(torch.triu(torch.ones(t, t, dtype=torch.bool)), 0)
    for i in range(1, t):
        a[:, i, :i] = a[:, i, :i] + (a[:, i, :, None] * a[:, :, :i]).sum(-2)
    a = a + torch.eye(t, dtype=x.dtype)
    u = a @ (v * beta)
    return (q @ k.mT).masked_fill(torch.triu(torch.ones(t, t, dtype=torch.bool), 1), 0) @ u


@UNSEEN.add(causal=False, batch=True)
def delta_rule_with_keys_of_unit_columns(m: Parts, x: Tensor) -> Tensor:
    q, k, v = m.q(x), F.normalize(m.k(x), dim=1), m.v(x)
    state, out = x.new_zeros(x.shape[0], WIDTH, WIDTH), []
    for i in range(x.shape[1]):
        key = k[:, i, :, None]
        state = state + key @ (v[:, i, None] - key.mT @ state)
        out.append((q[:, i, None] @ state)[:, 0])
    return torch.stack(out, 1)


@UNSEEN.add(causal=True, batch=True)
def scan_by_doubling(m: Parts, x: Tensor) -> Tensor:
    a, h, step = torch.sigmoid(m.gate(x)), m.v(x), 1
    while step < x.shape[1]:
        h = h + a * F.pad(h, (0, 0, step, 0))[:, :-step]
        a = a * F.pad(a, (0, 0, step, 0), value=1.0)[:, :-step]
        step *= 2
    return h


@UNSEEN.add(causal=True, batch=True)
def pooled_by_forget_gates(m: Parts, x: Tensor) -> Tensor:
    y = F.pad(x.transpose(1, 2), (2, 0))
    z, f = torch.tanh(m.conv(y)), torch.sigmoid(F.conv1d(y, m.conv.weight.flip(0), m.conv.bias))
    c, out = torch.zeros_like(z[..., 0]), []
    for i in range(x.shape[1]):
        c = f[..., i] * c + (1 - f[..., i]) * z[..., i]
        out.append(torch.sigmoid(m.o(x[:, i])) * c)
    return torch.stack(out, dim=1)


@UNSEEN.add(masked=True, padding=True, causal=True, batch=True)
def states_held_where_tokens_are_pads(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    h, out = x.new_zeros(x.shape[0], WIDTH), []
    for t in range(x.shape[1]):
        h = torch.where(mask[:, t, None].bool(), m.cell(x[:, t], h), h)
        out.append(h)
    return torch.stack(out, 1)


@UNSEEN.add(masked=True, padding=False, causal=True, batch=True)
def states_blanked_after_the_scan(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    h, out = x.new_zeros(x.shape[0], WIDTH), []
    for t in range(x.shape[1]):
        h = m.cell(x[:, t], h)
        out.append(h * mask[:, t, None])
    return torch.stack(out, 1)


@UNSEEN.add(masked=True, padding=True, causal=True, batch=True)
def steps_of_no_time_at_pads(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    dt = F.softplus(m.gate(x)) * mask[..., None]
    log_a = (-dt * torch.exp(m.decay)).cumsum(1)
    return torch.exp(log_a) * (torch.exp(-log_a) * dt * m.v(x)).cumsum(1)
