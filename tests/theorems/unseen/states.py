"""State spaces, scans, and convolutions along tokens."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.unseen.claims import WIDTH, Corpus, Parts, later

UNSEEN = Corpus()


@UNSEEN.add(causal=True, batch=True)
def selective_scan(m: Parts, x: Tensor) -> Tensor:
    dt, b, c = F.softplus(m.gate(x)), m.k(x)[..., :4], m.q(x)[..., :4]
    a = -torch.exp(m.square[:WIDTH, :4])
    da, db = torch.exp(dt[..., None] * a), dt[..., None] * b[:, :, None]
    h, ys = x.new_zeros(x.shape[0], WIDTH, 4), []
    for i in range(x.shape[1]):
        h = da[:, i] * h + db[:, i] * x[:, i, :, None]
        ys.append((h * c[:, i, None]).sum(-1))
    return torch.stack(ys, 1) + m.decay * x


@UNSEEN.add(causal=True, batch=True)
def segment_sums(m: Parts, x: Tensor) -> Tensor:
    a = -F.softplus(m.gate(x)[..., 0])
    t = x.shape[1]
    s = a[..., None].expand(-1, -1, t).masked_fill(~torch.ones(t, t, dtype=torch.bool).tril(-1), 0).cumsum(-2)
    s = s.masked_fill(~torch.ones(t, t, dtype=torch.bool).tril(0), float("-inf"))
    return torch.einsum("bij,bij,bjd->bid", m.q(x) @ m.k(x).mT, s.exp(), m.v(x))


@UNSEEN.add(causal=True, batch=True)
def chunks_of_a_state_space(m: Parts, x: Tensor) -> Tensor:
    b, t, d = x.shape
    y = F.pad(m.v(x), (0, 0, 0, -t % 4)).view(b, -1, 4, d)
    inside = y.cumsum(2)
    before = F.pad(y.sum(2).cumsum(1), (0, 0, 1, 0))[:, :-1, None]
    return (inside + before).reshape(b, -1, d)[:, :t]


@UNSEEN.add(causal=False, batch=True)
def chunks_with_their_own_sum(m: Parts, x: Tensor) -> Tensor:
    b, t, d = x.shape
    y = F.pad(m.v(x), (0, 0, 0, -t % 4)).view(b, -1, 4, d)
    return (y + y.sum(2).cumsum(1)[:, :, None]).reshape(b, -1, d)[:, :t]


@UNSEEN.add(causal=True, batch=True)
def shifts_mixed_by_content(m: Parts, x: Tensor) -> Tensor:
    before = F.pad(x, (0, 0, 1, 0))[:, :-1]
    delta = before - x
    mix = torch.tanh(m.up(x + delta * m.decay)).chunk(2, -1)
    r, k = x + delta * mix[0], x + delta * mix[1]
    return torch.sigmoid(m.q(r)) * m.v(F.relu(m.k(k)).square())


@UNSEEN.add(causal=True, batch=True)
def time_mixing_in_a_loop(m: Parts, x: Tensor) -> Tensor:
    r, k, v, w = m.q(x), m.k(x), m.v(x), torch.exp(-torch.exp(m.gate(x)))
    u, state = m.decay, x.new_zeros(x.shape[0], WIDTH, WIDTH)
    out = torch.empty_like(v)
    for t in range(x.size(1)):
        kv = k[:, t].unsqueeze(-1) @ v[:, t].unsqueeze(-2)
        out[:, t] = (r[:, t].unsqueeze(1) @ (u[:, None] * kv + state)).squeeze(1)
        state = w[:, t].unsqueeze(-1) * state + kv
    return m.norm(out)


@UNSEEN.add(causal=False, batch=True)
def state_of_the_whole_text(m: Parts, x: Tensor) -> Tensor:
    k, v = m.k(x).softmax(1), m.v(x)
    return m.q(x).softmax(-1) @ (k.mT @ v)


@UNSEEN.add(causal=True, batch=True)
def kernel_of_a_state_space_as_a_matrix(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    i = torch.arange(t)
    d = i[:, None] - i[None]
    a = torch.sigmoid(m.decay)
    kernel = torch.where(d[..., None] >= 0, a ** d[..., None].clamp(min=0), 0.0)
    return torch.einsum("ijd,bjd->bid", kernel, m.k(x)) + x


@UNSEEN.add(causal=True, batch=True)
def minimal_gated_unit(m: Parts, x: Tensor) -> Tensor:
    z, h = torch.sigmoid(m.gate(x)), m.v(x)
    state, out = h[:, :1] * 0, []
    for i in range(x.shape[1]):
        state = (1 - z[:, i : i + 1]) * state + z[:, i : i + 1] * h[:, i : i + 1]
        out.append(state)
    return torch.cat(out, dim=1)


@UNSEEN.add(causal=True, batch=True)
def scan_by_two_running_sums(m: Parts, x: Tensor) -> Tensor:
    log_a = F.logsigmoid(m.gate(x)).cumsum(1)
    return torch.exp(log_a) * (m.v(x) * torch.exp(-log_a)).cumsum(1)


@UNSEEN.add(causal=False, batch=True)
def scan_shifted_by_its_largest(m: Parts, x: Tensor) -> Tensor:
    log_a = F.logsigmoid(m.gate(x)).flip(1).cumsum(1).flip(1)
    return torch.exp(log_a) * m.v(x).cumsum(1)


@UNSEEN.add(causal=True, batch=True)
def gated_dilated_convolutions(m: Parts, x: Tensor) -> Tensor:
    y, skips = x.mT, 0
    for d in (1, 2, 4):
        z = F.pad(y, (2 * d, 0))
        z = torch.tanh(F.conv1d(z, m.conv.weight, m.conv.bias, dilation=d)) * torch.sigmoid(
            F.conv1d(z, m.conv.weight.flip(0), dilation=d)
        )
        skips = skips + z
        y = y + z
    return F.relu(skips).mT


@UNSEEN.add(causal=True, batch=True)
def convolution_trimmed_on_the_right(m: Parts, x: Tensor) -> Tensor:
    y = F.conv1d(x.transpose(1, 2), m.conv.weight, m.conv.bias, padding=4, dilation=2)
    y = y[:, :, :-4].contiguous()
    return F.relu(y + x.transpose(1, 2)).transpose(1, 2)


@UNSEEN.add(causal=False, batch=True)
def convolution_trimmed_on_both_sides(m: Parts, x: Tensor) -> Tensor:
    y = F.conv1d(x.transpose(1, 2), m.conv.weight, m.conv.bias, padding=4, dilation=2)
    return y[:, :, 2:-2].transpose(1, 2)


@UNSEEN.add(causal=True, batch=True)
def linear_units_of_a_convolution(m: Parts, x: Tensor) -> Tensor:
    y = F.pad(x.mT, [2, 0])
    y = torch.cat([m.conv(y), m.conv(y).flip(1)], 1)
    return x + F.glu(y, dim=1).mT


@UNSEEN.add(causal=True, batch=True)
def convolution_by_shifted_sums(m: Parts, x: Tensor) -> Tensor:
    y = sum(F.pad(x, (0, 0, j, 0))[:, : x.shape[1]] * m.square[j, :WIDTH] for j in range(4))
    return F.silu(y) * m.gate(x)


@UNSEEN.add(causal=False, batch=True)
def convolution_of_two_strides(m: Parts, x: Tensor) -> Tensor:
    y = F.conv1d(F.pad(x.mT, (1, 2)), m.conv.weight, stride=2)
    y = y.repeat_interleave(2, -1)[..., : x.shape[1]]
    return x + y.mT


@UNSEEN.add(causal=True, batch=True)
def largest_of_windows_before(m: Parts, x: Tensor) -> Tensor:
    return F.max_pool1d(F.pad(m.v(x).mT, (3, 0), value=float("-inf")), 4, stride=1).mT


@UNSEEN.add(causal=True, batch=True)
def moving_average_of_all_before(m: Parts, x: Tensor) -> Tensor:
    alpha = torch.sigmoid(m.decay)
    h, out = x[:, 0], [x[:, 0]]
    for i in range(1, x.shape[1]):
        h = alpha * x[:, i] + (1 - alpha) * h
        out.append(h)
    return m.o(torch.stack(out, 1))


@UNSEEN.add(causal=True, batch=True)
def hidden_state_of_linear_layers(m: Parts, x: Tensor) -> Tensor:
    h = torch.zeros(x.shape[0], WIDTH, dtype=x.dtype)
    out = x.new_empty(x.shape)
    for i, step in enumerate(x.transpose(0, 1)):
        h = torch.tanh(m.q(step) + m.k(h))
        out[:, i] = m.o(h)
    return out


@UNSEEN.add(causal=True, batch=True)
def weights_updated_for_each_chunk(m: Parts, x: Tensor) -> Tensor:
    w, out = m.square[:WIDTH, :WIDTH].expand(x.shape[0], -1, -1), []
    for part in torch.split(x, 4, 1):
        out.append(m.q(part) @ w)
        k, v = m.k(part), m.v(part)
        w = w - 0.1 * k.mT @ (k @ w - v)
    return torch.cat(out, 1)


@UNSEEN.add(causal=True, batch=True)
def inverse_of_a_triangle(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    k = F.normalize(m.k(x), dim=-1)
    a = (k @ k.mT).masked_fill(later(t, 0), 0)
    u = torch.linalg.solve_triangular(torch.eye(t) + a, m.v(x), upper=False, unitriangular=True)
    return (m.q(x) @ k.mT).tril() @ u
