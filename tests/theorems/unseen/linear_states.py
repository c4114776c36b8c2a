"""Linear recurrences and linear attention: step by step, by chunks, and by triangular systems."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.unseen.claims import HEADS, WIDTH, Corpus, Parts, later

UNSEEN = Corpus()


def _chunks(y: Tensor, size: int = 4) -> Tensor:
    """Tokens in chunks of one size [row, chunk, token, feature], with zeros at the end."""
    b, t, d = y.shape
    return F.pad(y, (0, 0, 0, -t % size)).view(b, -1, size, d)


@UNSEEN.add(causal=True, batch=True)
def states_of_a_bilinear_step(m: Parts, x: Tensor) -> Tensor:
    a, eye = -m.square[:WIDTH, :WIDTH] @ m.square[:WIDTH, :WIDTH].T, torch.eye(WIDTH, dtype=x.dtype)
    left = torch.linalg.inv(eye - 0.05 * a)
    a, b = left @ (eye + 0.05 * a), left * 0.1
    h, out = torch.zeros_like(x[:, 0]), []
    for u in x.unbind(1):
        h = h @ a.T + m.v(u) @ b.T
        out.append(h)
    return m.o(torch.stack(out, 1)) + m.decay * x


def _scan(a: Tensor, u: Tensor) -> Tensor:
    h, out = torch.zeros_like(u[:, 0]), []
    for t in range(u.shape[1]):
        h = a[:, t] * h + u[:, t]
        out.append(h)
    return torch.stack(out, dim=1)


@UNSEEN.add(causal=False, batch=True)
def selective_scan_of_both_directions(m: Parts, x: Tensor) -> Tensor:
    dt = F.softplus(m.gate(x))
    a, u = torch.exp(-dt * m.decay), dt * m.v(x)
    return _scan(a, u) + _scan(a.flip(1), u.flip(1)).flip(1)


@UNSEEN.add(causal=False, batch=True)
def step_sizes_that_sum_to_one(m: Parts, x: Tensor) -> Tensor:
    dt = m.gate(x).softmax(dim=1)
    return _scan(torch.exp(-dt), dt * m.v(x)) * F.silu(m.q(x))


@UNSEEN.add(causal=True, batch=True)
def states_with_a_bonus_of_the_own_token(m: Parts, x: Tensor) -> Tensor:
    r, k, v = m.q(x), m.k(x), m.v(x)
    w = torch.exp(-torch.exp(m.gate(x).clamp(max=4)))
    state, out = x.new_zeros(x.shape[0], WIDTH, WIDTH), []
    for t in range(x.shape[1]):
        kv = k[:, t, :, None] @ v[:, t, None, :]
        out.append((r[:, t, None, :] @ (state + m.decay[:, None] * kv)).squeeze(1))
        state = w[:, t, :, None] * state + kv
    return m.o(torch.stack(out, dim=1) * F.silu(m.gate(x)))


@UNSEEN.add(causal=True, batch=True)
def delta_rule_with_a_decay_of_each_feature(m: Parts, x: Tensor) -> Tensor:
    r, v, k = m.q(x), m.v(x), F.normalize(m.k(x), dim=-1)
    w, a = torch.exp(-0.6 * torch.sigmoid(m.gate(x))), torch.sigmoid(m.o(x))
    s, y = x.new_zeros(x.shape[0], WIDTH, WIDTH), torch.zeros_like(x)
    for t in range(x.shape[1]):
        removed = torch.einsum("bij,bj->bi", s, -k[:, t])
        s = s * w[:, t, None] + removed[..., None] * (k[:, t] * a[:, t])[:, None] + v[:, t, :, None] * k[:, t, None]
        y[:, t] = torch.einsum("bij,bj->bi", s, r[:, t])
    return y


@UNSEEN.add(causal=True, batch=True)
def retention_of_heads_in_a_loop(m: Parts, x: Tensor) -> Tensor:
    q, k, v = m.heads(x)
    gamma = 1 - 2.0 ** (-5 - torch.arange(HEADS, dtype=x.dtype))
    s, out = 0, []
    for n in range(x.shape[1]):
        s = gamma[:, None, None] * s + k[:, :, n, :, None] * v[:, :, n, None, :]
        out.append((q[:, :, n, None] @ s).squeeze(2))
    return m.join(F.layer_norm(torch.stack(out, 2), (WIDTH // HEADS,)))


@UNSEEN.add(causal=True, batch=True)
def retention_divided_by_its_sums(m: Parts, x: Tensor) -> Tensor:
    n = torch.arange(x.shape[1])
    d = torch.exp((n[:, None] - n) * math.log(0.9)).to(x.dtype).masked_fill(n[:, None] < n, 0)
    w = m.scores(x) * (d / d.sum(-1, keepdim=True).sqrt())
    return (w / w.detach().sum(-1, keepdim=True).abs().clamp(min=1)) @ m.v(x)


@UNSEEN.add(causal=False, batch=True)
def retention_divided_by_sums_of_columns(m: Parts, x: Tensor) -> Tensor:
    w = m.scores(x).masked_fill(later(x.shape[1]), 0)
    return (w / w.sum(1, keepdim=True).abs().clamp(min=1)) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def forget_gates_with_a_lower_bound(m: Parts, x: Tensor) -> Tensor:
    lower = m.decay.softmax(0).cumsum(0)
    f = lower + (1 - lower) * m.gate(x).sigmoid()
    return m.o(m.norm(_scan(f, (1 - f) * F.silu(m.v(x))))) * m.q(x).sigmoid()


@UNSEEN.add(causal=True, batch=True)
def keys_of_what_is_forgotten(m: Parts, x: Tensor) -> Tensor:
    f = 0.5 + 0.5 * m.gate(x).sigmoid()
    s, out = x.new_zeros(len(x), WIDTH, WIDTH), []
    for t in range(x.shape[1]):
        s = torch.diag_embed(f[:, t]) @ s + torch.einsum("bi,bj->bij", 1 - f[:, t], m.v(x)[:, t])
        out.append(torch.einsum("bi,bij->bj", m.q(x)[:, t], s))
    return torch.stack(out, 1)


@UNSEEN.add(causal=True, batch=True)
def chunk_sums_less_the_own_chunk(m: Parts, x: Tensor) -> Tensor:
    q, k, v = (_chunks(f(x)) for f in (m.q, m.k, m.v))
    kv = k.mT @ v
    before = kv.cumsum(1) - kv
    inside = (q @ k.mT).tril() @ v
    return (inside + q @ before).flatten(1, 2)[:, : x.shape[1]]


@UNSEEN.add(causal=False, batch=True)
def chunk_sums_with_the_own_chunk(m: Parts, x: Tensor) -> Tensor:
    q, k, v = (_chunks(f(x)) for f in (m.q, m.k, m.v))
    before = (k.mT @ v).cumsum(1)
    return ((q @ k.mT).tril() @ v + q @ before).flatten(1, 2)[:, : x.shape[1]]


@UNSEEN.add(causal=True, batch=True)
def chunk_states_shifted_by_a_pad(m: Parts, x: Tensor) -> Tensor:
    q, k, v = (_chunks(f(x), 3) for f in (m.q, m.k, m.v))
    states = torch.einsum("bcti,bctj->bcij", k, v).cumsum(1)
    states = F.pad(states, (0, 0, 0, 0, 1, 0))[:, :-1]
    y = torch.einsum("bcti,bcij->bctj", q, states) + torch.einsum("bcti,bcsi->bcts", q, k).tril() @ v
    return y.reshape(x.shape[0], -1, WIDTH)[:, : x.shape[1]]


@UNSEEN.add(causal=True, batch=True)
def delta_rule_by_a_triangular_system(m: Parts, x: Tensor) -> Tensor:
    q, k, v, beta = m.q(x), F.normalize(m.k(x), dim=-1), m.v(x), m.gate(x)[..., :1].sigmoid()
    a = torch.eye(x.shape[1], dtype=x.dtype) + (beta * (k @ k.mT)).tril(-1)
    u = torch.linalg.solve_triangular(a, beta * v, upper=False)
    return (q @ k.mT).tril() @ u


@UNSEEN.add(causal=False, batch=True)
def delta_rule_by_the_transposed_system(m: Parts, x: Tensor) -> Tensor:
    q, k, v, beta = m.q(x), F.normalize(m.k(x), dim=-1), m.v(x), m.gate(x)[..., :1].sigmoid()
    a = torch.eye(x.shape[1], dtype=x.dtype) + (beta * (k @ k.mT)).tril(-1)
    u = torch.linalg.solve_triangular(a.mT, beta * v, upper=True)
    return (q @ k.mT).tril() @ u


@UNSEEN.add(causal=True, batch=True)
def delta_rule_by_systems_of_chunks(m: Parts, x: Tensor) -> Tensor:
    q, k, v = (_chunks(f(x)) for f in (m.q, lambda y: F.normalize(m.k(y), dim=-1), m.v))
    a = torch.eye(4, dtype=x.dtype) + (k @ k.mT).tril(-1)
    w, u = torch.linalg.solve_triangular(a, torch.cat([k, v], -1), upper=False, unitriangular=True).chunk(2, -1)
    s, out = x.new_zeros(x.shape[0], WIDTH, WIDTH), []
    for c in range(q.shape[1]):
        fresh = u[:, c] - w[:, c] @ s
        out.append(q[:, c] @ s + (q[:, c] @ k[:, c].mT).tril() @ fresh)
        s = s + k[:, c].mT @ fresh
    return torch.cat(out, 1)[:, : x.shape[1]]


@UNSEEN.add(causal=True, batch=True)
def gates_that_conserve_the_variance(m: Parts, x: Tensor) -> Tensor:
    log_a = -8.0 * F.softplus(m.decay) * m.gate(x).sigmoid()
    u = (1 - torch.exp(2 * log_a)).clamp(min=1e-6).sqrt() * m.k(x).sigmoid() * m.v(x)
    return m.o(_scan(log_a.exp(), u)) * F.gelu(m.q(x))


@UNSEEN.add(causal=True, batch=True)
def matrix_memory_with_exponential_gates(m: Parts, x: Tensor) -> Tensor:
    q, k, v, gate = m.q(x), m.k(x) / math.sqrt(WIDTH), m.v(x), m.router(x)
    c, n, top, out = x.new_zeros(len(x), WIDTH, WIDTH), x.new_zeros(len(x), WIDTH), x.new_zeros(len(x), 1), []
    for t in range(x.shape[1]):
        i, f = gate[:, t, :1], F.logsigmoid(gate[:, t, 1:2])
        new = torch.maximum(f + top, i)
        i, f, top = (i - new).exp(), (f + top - new).exp(), new
        c = f[..., None] * c + i[..., None] * (v[:, t, :, None] * k[:, t, None])
        n = f * n + i * k[:, t]
        scale = (n * q[:, t]).sum(-1, keepdim=True).abs().clamp(min=1.0)
        out.append((c @ q[:, t, :, None]).squeeze(-1) / scale)
    return torch.stack(out, 1)


@UNSEEN.add(causal=True, batch=True)
def prefix_sums_of_outer_products(m: Parts, x: Tensor) -> Tensor:
    q, k = F.elu(m.q(x)) + 1, F.elu(m.k(x)) + 1
    s = torch.einsum("bti,btj->btij", k, m.v(x)).cumsum(dim=1)
    z = 1 / (torch.einsum("bti,bti->bt", q, k.cumsum(1)) + 1e-6)
    return torch.einsum("bti,btij,bt->btj", q, s, z)


@UNSEEN.add(causal=True, batch=True)
def prefix_sums_of_a_window(m: Parts, x: Tensor) -> Tensor:
    s = torch.einsum("bti,btj->btij", m.k(x), m.v(x)).cumsum(dim=1)
    s = s - F.pad(s, (0, 0, 0, 0, 3, 0))[:, : x.shape[1]]
    return torch.einsum("bti,btij->btj", m.q(x), s)


@UNSEEN.add(causal=True, batch=True)
def taylor_series_of_exponentials(m: Parts, x: Tensor) -> Tensor:
    s = m.scores(x)
    w = (1 + s + s.square() / 2).tril()
    return w @ m.v(x) / w.sum(-1, keepdim=True)


@UNSEEN.add(causal=True, batch=True)
def slots_written_by_gates(m: Parts, x: Tensor) -> Tensor:
    f, k, v = m.router(x).sigmoid(), m.k(x), m.v(x)
    keys, values, out = x.new_zeros(len(x), 4, WIDTH), x.new_zeros(len(x), 4, WIDTH), []
    for t in range(x.shape[1]):
        a = f[:, t, :, None]
        keys, values = a * keys + (1 - a) * k[:, t, None], a * values + (1 - a) * v[:, t, None]
        w = torch.softmax(keys @ m.q(x[:, t])[..., None], dim=1)
        out.append((w * values).sum(1))
    return torch.stack(out, dim=1)


@UNSEEN.add(causal=True, batch=True)
def largest_value_with_a_leak(m: Parts, x: Tensor) -> Tensor:
    v, out = m.v(x), []
    h = v[:, 0]
    for t in range(x.shape[1]):
        h = torch.maximum(h - m.decay, v[:, t])
        out.append(h)
    return torch.stack(out, 1)


@UNSEEN.add(causal=True, batch=True)
def cosines_of_places_in_linear_attention(m: Parts, x: Tensor) -> Tensor:
    q, k, t = F.relu(m.q(x)), F.relu(m.k(x)), x.shape[1]
    angle = math.pi / 2 * torch.arange(1, t + 1, dtype=x.dtype)[:, None] / t
    q, k = torch.cat([q * angle.sin(), q * angle.cos()], -1), torch.cat([k * angle.sin(), k * angle.cos()], -1)
    w = (q @ k.mT).tril()
    return w @ m.v(x) / w.sum(-1, keepdim=True).clamp(min=1e-6)


@UNSEEN.add(causal=True, batch=True)
def weights_updated_by_the_closed_form(m: Parts, x: Tensor) -> Tensor:
    q, k, v, beta = m.q(x), m.k(x), m.v(x), m.gate(x).sigmoid()
    s, out = x.new_zeros(len(x), WIDTH, WIDTH), []
    for t in range(x.shape[1]):
        squares = k[:, t].square()
        step = beta[:, t] / (1 + beta[:, t] * squares.sum(-1, keepdim=True))
        s = (1 - step[..., None] * squares[:, None]) * s + (step * v[:, t])[..., None] * k[:, t, None]
        out.append((s * q[:, t, None]).sum(-1))
    return torch.stack(out, 1)


def _pairs(a: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
    """The associative scan of h -> a h + u along the tokens, by halves."""
    if a.shape[1] == 1:
        return a, u
    n = a.shape[1] // 2
    (a0, u0), (a1, u1) = _pairs(a[:, :n], u[:, :n]), _pairs(a[:, n:], u[:, n:])
    return torch.cat([a0, a1 * a0[:, -1:]], 1), torch.cat([u0, u1 + a1 * u0[:, -1:]], 1)


@UNSEEN.add(causal=True, batch=True)
def associative_scan_by_halves(m: Parts, x: Tensor) -> Tensor:
    return m.o(_pairs(m.gate(x).sigmoid(), m.v(x))[1])


@UNSEEN.add(masked=True, padding=True, causal=True, batch=True)
def keys_of_pads_zero_in_chunks(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    real = mask[..., None].to(x.dtype)
    q, k, v = _chunks(m.q(x)), _chunks(m.k(x) * real), _chunks(m.v(x))
    kv = k.mT @ v
    y = q @ (torch.cumsum(kv, 1) - kv) + torch.tril(q @ k.mT) @ v
    return y.reshape(x.shape[0], -1, WIDTH)[:, : x.shape[1]]
