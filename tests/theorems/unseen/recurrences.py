"""Recurrences, convolutions and scans."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.unseen.claims import WIDTH, Corpus, Parts, later

UNSEEN = Corpus()
INF = float("-inf")


@UNSEEN.add(causal=True, batch=True)
def cell_in_a_loop(m: Parts, x: Tensor) -> Tensor:
    h, out = x.new_zeros(x.shape[0], WIDTH), []
    for t in range(x.shape[1]):
        h = m.cell(x[:, t], h)
        out.append(h)
    return torch.stack(out, 1)


@UNSEEN.add(causal=False, batch=True)
def cell_in_a_loop_backwards(m: Parts, x: Tensor) -> Tensor:
    h, out = x.new_zeros(x.shape[0], WIDTH), []
    for t in reversed(range(x.shape[1])):
        h = m.cell(x[:, t], h)
        out.insert(0, h)
    return torch.stack(out, 1)


@UNSEEN.add(causal=True, batch=True)
def layer_of_torch(m: Parts, x: Tensor) -> Tensor:
    return x + m.gru(m.norm(x))[0]


@UNSEEN.add(causal=False, batch=True)
def layer_of_torch_flipped(m: Parts, x: Tensor) -> Tensor:
    return x + m.gru(x.flip(1))[0].flip(1)


@UNSEEN.add(causal=True, batch=True)
def diagonal_states(m: Parts, x: Tensor) -> Tensor:
    a, h, out = torch.exp(-m.decay.exp()), torch.zeros_like(x[:, 0]), torch.empty_like(x)
    for t in range(x.size(1)):
        h = a * h + (1 - a) * m.v(x[:, t])
        out[:, t] = h
    return out


@UNSEEN.add(causal=True, batch=True)
def gates_in_log_space(m: Parts, x: Tensor) -> Tensor:
    log_f, log_v = F.logsigmoid(m.gate(x)), m.v(x)
    total = log_f.cumsum(1)
    return (total + torch.logcumsumexp(log_v - total, 1)).exp()


@UNSEEN.add(causal=True, batch=True)
def delta_rule(m: Parts, x: Tensor) -> Tensor:
    q, k, v, beta = m.q(x), F.normalize(m.k(x), dim=-1), m.v(x), m.gate(x).mean(-1).sigmoid()
    state, out = x.new_zeros(x.shape[0], WIDTH, WIDTH), []
    for t in range(x.shape[1]):
        old = torch.einsum("bd,bde->be", k[:, t], state)
        new = (v[:, t] - old) * beta[:, t, None]
        state = state + k[:, t, :, None] * new[:, None]
        out.append(torch.einsum("bd,bde->be", q[:, t], state))
    return torch.stack(out, 1)


@UNSEEN.add(causal=True, batch=True)
def weighted_keys_with_their_maximum(m: Parts, x: Tensor) -> Tensor:
    k, v, w = m.k(x), m.v(x), -m.decay.exp()
    top, num, den, out = k[:, 0] * 0 - 1e38, torch.zeros_like(k[:, 0]), torch.zeros_like(k[:, 0]), []
    for t in range(x.shape[1]):
        p = torch.maximum(top + w, k[:, t])
        old, new = torch.exp(top + w - p), torch.exp(k[:, t] - p)
        num, den, top = old * num + new * v[:, t], old * den + new, p
        out.append(num / den)
    return torch.stack(out, 1)


@UNSEEN.add(causal=True, batch=True)
def shift_of_tokens(m: Parts, x: Tensor) -> Tensor:
    before = torch.cat([torch.zeros_like(x[:, :1]), x[:, :-1]], 1)
    return m.k(torch.lerp(before, x, m.decay))


@UNSEEN.add(causal=False, batch=True)
def shift_by_roll(m: Parts, x: Tensor) -> Tensor:
    return m.k(x + m.decay * x.roll(1, 1))


@UNSEEN.add(causal=True, batch=True)
def shift_by_roll_and_zero(m: Parts, x: Tensor) -> Tensor:
    before = x.roll(1, dims=1)
    before[:, 0] = 0
    return m.k(x) + m.v(before)


@UNSEEN.add(causal=True, batch=True)
def shift_by_pad(m: Parts, x: Tensor) -> Tensor:
    return m.k(F.pad(x, (0, 0, 1, -1)) - x)


@UNSEEN.add(causal=False, batch=True)
def shift_the_other_way(m: Parts, x: Tensor) -> Tensor:
    return m.k(F.pad(x, (0, 0, -1, 1)) - x)


@UNSEEN.add(causal=True, batch=True)
def gates_by_convolution(m: Parts, x: Tensor) -> Tensor:
    y = m.conv(F.pad(x.mT, (2, 0))).mT
    f, h, out = y.sigmoid(), torch.zeros_like(x[:, 0]), []
    for z, g in zip(y.tanh().unbind(1), f.unbind(1), strict=True):
        h = g * h + (1 - g) * z
        out.append(h)
    return torch.stack(out, dim=1)


@UNSEEN.add(causal=False, batch=True)
def convolution_of_the_same_size(m: Parts, x: Tensor) -> Tensor:
    return F.gelu(m.conv(F.pad(x.transpose(1, 2), (1, 1)))).transpose(1, 2)


@UNSEEN.add(causal=True, batch=True)
def depthwise_cut_at_the_end(m: Parts, x: Tensor) -> Tensor:
    return F.silu(m.depthwise(x.transpose(1, 2))[..., : x.shape[1]]).transpose(1, 2)


@UNSEEN.add(causal=False, batch=True)
def depthwise_cut_at_the_start(m: Parts, x: Tensor) -> Tensor:
    return F.silu(m.depthwise(x.transpose(1, 2))[..., 3:]).transpose(1, 2)


@UNSEEN.add(causal=True, batch=True)
def average_by_a_matrix(m: Parts, x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1])
    powers = (0.8 ** (i[:, None] - i[None]).clamp(min=0)).tril()
    return torch.einsum("ij,bjd->bid", powers, m.v(x))


@UNSEEN.add(causal=True, batch=True)
def states_passed_between_chunks(m: Parts, x: Tensor) -> Tensor:
    state, out = x.new_zeros(x.shape[0], WIDTH, WIDTH), []
    for part in x.split(3, dim=1):
        q, k, v = m.q(part), m.k(part), m.v(part)
        out.append((q @ k.mT).tril() @ v + q @ state)
        state = state + k.mT @ v
    return torch.cat(out, 1)


@UNSEEN.add(causal=False, batch=True)
def states_updated_too_early(m: Parts, x: Tensor) -> Tensor:
    state, out = x.new_zeros(x.shape[0], WIDTH, WIDTH), []
    for part in x.split(3, dim=1):
        q, k, v = m.q(part), m.k(part), m.v(part)
        state = state + k.mT @ v
        out.append(q @ state)
    return torch.cat(out, 1)


@UNSEEN.add(causal=True, batch=True)
def steps_of_unbind(m: Parts, x: Tensor) -> Tensor:
    h, speed, out = torch.zeros_like(x[:, 0]), torch.zeros_like(x[:, 0]), []
    for x_t in x.unbind(1):
        speed = 0.9 * speed + m.k(x_t)
        h = torch.tanh(h + speed)
        out += [h]
    return torch.stack(out, 1)


@UNSEEN.add(causal=True, batch=True)
def doubled_shifts(m: Parts, x: Tensor) -> Tensor:
    y, d = m.v(x), 1
    while d < x.shape[1]:
        y = y + F.pad(y[:, :-d], (0, 0, d, 0))
        d *= 2
    return y


@UNSEEN.add(causal=False, batch=True)
def doubled_rolls(m: Parts, x: Tensor) -> Tensor:
    y = m.v(x)
    for d in (1, 2, 4):
        y = y + y.roll(d, 1)
    return y


@UNSEEN.add(causal=True, batch=True)
def gates_as_a_matrix(m: Parts, x: Tensor) -> Tensor:
    f = F.logsigmoid(m.gate(x)[..., 0]).cumsum(1)
    i = m.k(x)[..., 0]
    d = (f[:, :, None] - f[:, None] + i[:, None]).masked_fill(later(x.shape[1]), INF)
    d = torch.exp(d - d.amax(-1, keepdim=True))
    w = m.scores(x) * d
    return w @ m.v(x) / w.sum(-1, keepdim=True).abs().clamp(min=1.0)


@UNSEEN.add(causal=False, batch=True)
def two_directions(m: Parts, x: Tensor) -> Tensor:
    return m.gru(x)[0] + m.gru(x.flip([1]))[0].flip([1])


@UNSEEN.add(masked=True, padding=True, batch=True)
def state_kept_at_pads(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    h, out = torch.zeros_like(x[:, 0]), []
    for t in range(x.shape[1]):
        real = mask[:, t, None].to(x.dtype)
        h = real * m.cell(x[:, t], h) + (1 - real) * h
        out.append(h)
    return torch.stack(out, 1)


@UNSEEN.add(masked=True, padding=False, batch=True)
def state_moved_by_pads(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    h, out = torch.zeros_like(x[:, 0]), []
    for t in range(x.shape[1]):
        h = m.cell(x[:, t], h)
        out.append(h * mask[:, t, None])
    return torch.stack(out, 1)


@UNSEEN.add(batch=False)
def state_carried_between_rows(m: Parts, x: Tensor) -> Tensor:
    h, rows = x.new_zeros(WIDTH), []
    for row in range(x.shape[0]):
        h = torch.tanh(h + m.v(x[row]).mean(0))
        rows.append(x[row] + h)
    return torch.stack(rows)


@UNSEEN.add(causal=True, batch=True)
def dilated_convolutions(m: Parts, x: Tensor) -> Tensor:
    y = x.mT
    for dilation in (1, 2):
        y = y + F.conv1d(F.pad(y, (2 * dilation, 0)), m.conv.weight, m.conv.bias, dilation=dilation).relu()
    return y.mT


@UNSEEN.add(causal=True, batch=True)
def windows_by_unfold(m: Parts, x: Tensor) -> Tensor:
    y = F.pad(m.v(x), (0, 0, 2, 0)).unfold(1, 3, 1)
    return (y * m.square[:WIDTH, :3]).sum(-1)


@UNSEEN.add(causal=False, batch=True)
def windows_by_unfold_around(m: Parts, x: Tensor) -> Tensor:
    y = F.pad(m.v(x), (0, 0, 1, 1)).unfold(1, 3, 1)
    return (y * m.square[:WIDTH, :3]).sum(-1)


@UNSEEN.add(causal=True, batch=True)
def differences(m: Parts, x: Tensor) -> Tensor:
    return m.v(torch.diff(x, dim=1, prepend=torch.zeros_like(x[:, :1])))


@UNSEEN.add(causal=True, batch=True)
def products_so_far(m: Parts, x: Tensor) -> Tensor:
    a = m.gate(x).sigmoid()
    return torch.cumprod(a, 1) * (m.v(x) / torch.cumprod(a, 1).clamp(min=1e-6)).cumsum(1)
