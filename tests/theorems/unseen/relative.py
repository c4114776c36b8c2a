"""Relative positions inside attention."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.unseen.claims import HEADS, LONGEST, WIDTH, Corpus, Parts, later

UNSEEN = Corpus()
INF = float("-inf")
HEAD = WIDTH // HEADS


def _attend(m: Parts, x: Tensor, bias: Tensor, *, causal: bool = True) -> Tensor:
    q, k, v = m.heads(x)
    s = q @ k.mT / math.sqrt(HEAD) + bias
    if causal:
        s = s.masked_fill(later(x.shape[1]), INF)
    return x + m.join(s.softmax(-1) @ v)


def _distance(x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1])
    return i[None] - i[:, None]


@UNSEEN.add(causal=True, batch=True, permutation=False)
def slopes_with_learned_scale(m: Parts, x: Tensor) -> Tensor:
    slopes = torch.exp(m.decay[:HEADS]).clamp(max=4.0)
    return _attend(m, x, slopes[:, None, None] * _distance(x))


def _slopes(heads: int) -> list[float]:
    nearest = 2 ** math.floor(math.log2(heads))
    start = 2.0 ** (-(2.0 ** -(math.log2(nearest) - 3)))
    slopes = [start * start**i for i in range(nearest)]
    return slopes if nearest == heads else slopes + _slopes(2 * nearest)[0::2][: heads - nearest]


@UNSEEN.add(causal=True, batch=True)
def slopes_of_the_last_row(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    slopes = torch.tensor(_slopes(HEADS), dtype=x.dtype)
    bias = slopes[:, None, None] * torch.arange(1 - t, 1).to(x.dtype)[None, None]
    return _attend(m, x, bias)


@UNSEEN.add(causal=False, batch=True)
def slopes_of_signed_distances(m: Parts, x: Tensor) -> Tensor:
    bias = torch.stack([-_distance(x).clamp(min=0), _distance(x).clamp(max=0)]).to(x.dtype)
    return _attend(m, x, bias, causal=False)


@UNSEEN.add(causal=True, batch=True)
def slopes_hide_the_future_by_a_large_number(m: Parts, x: Tensor) -> Tensor:
    d = _distance(x)
    bias = torch.where(d > 0, -1e9, d.to(x.dtype) * 0.5)
    return _attend(m, x, bias, causal=False)


@UNSEEN.add(causal=False, batch=True)
def slopes_hide_the_future_by_a_small_number(m: Parts, x: Tensor) -> Tensor:
    d = _distance(x)
    bias = torch.where(d > 0, -1e1, d.to(x.dtype) * 0.5)
    return _attend(m, x, bias, causal=False)


def _bucket(relative: Tensor, *, both: bool, count: int = 32, far: int = 40) -> Tensor:
    found = torch.zeros_like(relative)
    if both:
        count //= 2
        found = found + (relative > 0).long() * count
        relative = relative.abs()
    else:
        relative = -torch.min(relative, torch.zeros_like(relative))
    exact = count // 2
    large = exact + (torch.log(relative.clamp(min=1).float() / exact) / math.log(far / exact) * (count - exact)).to(
        torch.long
    )
    large = torch.min(large, torch.full_like(large, count - 1))
    return found + torch.where(relative < exact, relative, large)


@UNSEEN.add(causal=True, batch=True)
def buckets_of_both_sides_in_a_decoder(m: Parts, x: Tensor) -> Tensor:
    return _attend(m, x, m.bias(_bucket(_distance(x), both=True)).permute(2, 0, 1).unsqueeze(0))


@UNSEEN.add(causal=True, batch=True, permutation=False)
def buckets_shared_by_two_layers(m: Parts, x: Tensor) -> Tensor:
    bias = m.bias(_bucket(_distance(x), both=False)).permute(2, 0, 1)
    bias = bias + torch.triu(torch.full((x.shape[1], x.shape[1]), torch.finfo(x.dtype).min), 1)
    return _attend(m, _attend(m, x, bias, causal=False), bias, causal=False)


@UNSEEN.add(causal=False, batch=True, permutation=False)
def buckets_of_one_side_as_the_only_mask(m: Parts, x: Tensor) -> Tensor:
    return _attend(m, x, m.bias(_bucket(_distance(x), both=False)).permute(2, 0, 1), causal=False)


@UNSEEN.add(causal=True, batch=True)
def relative_keys_in_transposed_batches(m: Parts, x: Tensor) -> Tensor:
    b, t, _ = x.shape
    q, k, v = m.heads(x)
    keys = m.table(_distance(x).clamp(-4, 4) + 4)[..., :HEAD]
    flat = q.permute(2, 0, 1, 3).reshape(t, b * HEADS, HEAD)
    extra = torch.matmul(flat, keys.transpose(1, 2)).view(t, b, HEADS, t).permute(1, 2, 0, 3)
    s = (q @ k.mT + extra) / math.sqrt(HEAD)
    w = s.masked_fill(later(t), -1e9).softmax(-1)
    values = m.table(_distance(x).clamp(-4, 4) + 20)[..., :HEAD]
    return m.join(w @ v + torch.einsum("bhij,ijd->bhid", w, values))


@UNSEEN.add(causal=True, batch=True)
def content_to_position_gathered(m: Parts, x: Tensor) -> Tensor:
    b, t, _ = x.shape
    span = 5
    index = (-_distance(x) + span).clamp(0, 2 * span - 1)
    q, k = m.q(x), m.k(x)
    table = m.table.weight[: 2 * span]
    to_position = torch.gather(q @ m.k(table).mT, -1, index.expand(b, t, t))
    from_position = torch.gather(k @ m.q(table).mT, -1, index.expand(b, t, t)).mT
    s = (q @ k.mT + to_position + from_position) / math.sqrt(3 * WIDTH)
    return s.masked_fill(later(t), torch.finfo(s.dtype).min).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=False, batch=True, permutation=False)
def content_to_position_without_a_mask(m: Parts, x: Tensor) -> Tensor:
    b, t, _ = x.shape
    index = (_distance(x) + 5).clamp(0, 9)
    table = m.table.weight[:10]
    s = m.scores(x) + torch.gather(m.q(x) @ table.mT, -1, index.expand(b, t, t))
    return s.softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def distances_by_a_padded_shift(m: Parts, x: Tensor) -> Tensor:
    b, t, _ = x.shape
    q, k, v = m.heads(x)
    r = m.table(torch.arange(t - 1, -1, -1)).view(t, HEADS, HEAD).transpose(0, 1)
    s = (q + m.latents[0].view(HEADS, 1, HEAD)) @ k.mT
    p = (q + m.latents[1].view(HEADS, 1, HEAD)) @ r.mT
    p = torch.cat([torch.zeros(b, HEADS, t, 1, dtype=x.dtype), p], -1).view(b, HEADS, t + 1, t)[:, :, 1:]
    return m.join(((s + p.view_as(s)) / math.sqrt(HEAD)).masked_fill(later(t), INF).softmax(-1) @ v)


@UNSEEN.add(causal=True, batch=True)
def bias_of_a_table_by_index(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    i = torch.arange(t)
    index = (i[:, None] - i[None] + 31).clamp(0, 31)
    bias = m.bias.weight[index.view(-1)].view(t, t, HEADS).permute(2, 0, 1).contiguous()
    return _attend(m, x, bias.unsqueeze(0))


@UNSEEN.add(causal=True, batch=True)
def bias_of_rotated_tables(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    row = m.decay.new_zeros(2 * t - 1).scatter(0, torch.arange(t), m.square[0, :t])
    bias = torch.stack([row[t - 1 - i : 2 * t - 1 - i] for i in range(t)])
    return _attend(m, x, bias)


@UNSEEN.add(causal=True, batch=True)
def toeplitz_bias_by_stride(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    row = F.pad(m.square[0, :t].flip(0), (0, t), value=INF)
    return _attend(m, x, row.unfold(0, t, 1)[:t].flip(0), causal=False)


@UNSEEN.add(causal=True, batch=True)
def kernel_of_powers(m: Parts, x: Tensor) -> Tensor:
    d = _distance(x).abs().to(x.dtype)
    a, b = F.softplus(m.decay[:HEADS, None, None]), F.softplus(m.decay[2 : 2 + HEADS, None, None])
    return _attend(m, x, -a * torch.log1p(b * d))


@UNSEEN.add(causal=True, batch=True)
def rotations_cached_and_read_by_position(m: Parts, x: Tensor) -> Tensor:
    positions = torch.arange(x.shape[1]).unsqueeze(0).expand(x.shape[0], -1)
    angle = torch.outer(torch.arange(LONGEST).to(x.dtype), 1.0 / 10000.0 ** (torch.arange(0, HEAD, 2) / HEAD))
    angle = torch.cat([angle, angle], -1)
    cos, sin = angle.cos()[positions].unsqueeze(1), angle.sin()[positions].unsqueeze(1)
    q, k, v = m.heads(x)
    q, k = (y * cos + torch.cat([-y[..., HEAD // 2 :], y[..., : HEAD // 2]], -1) * sin for y in (q, k))
    return m.join(F.scaled_dot_product_attention(q, k, v, is_causal=True))


@UNSEEN.add(causal=False, batch=True)
def rotation_that_moves_tokens(m: Parts, x: Tensor) -> Tensor:
    half = x.shape[1] // 2
    q = m.q(x)
    turned = torch.cat([-q[:, half:], q[:, :half]], 1)
    s = (q + turned) @ m.k(x).mT
    return s.masked_fill(later(x.shape[1]), INF).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def decayed_rotations_of_both(m: Parts, x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1]).to(x.dtype)[:, None]
    rate = ((torch.arange(0, WIDTH).to(x.dtype) + 0.4 * WIDTH) / (1.4 * WIDTH)) ** (i / 512)
    s = (m.q(x) * rate) @ (m.k(x) / rate).mT
    return s.masked_fill(later(x.shape[1]), INF).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def positions_counted_by_gates(m: Parts, x: Tensor) -> Tensor:
    q, k, v = m.heads(x)
    s = (q @ k.mT).masked_fill(later(x.shape[1]), INF)
    gates = torch.sigmoid(s)
    place = gates.flip(-1).cumsum(-1).flip(-1).clamp(max=31.0)
    low, high = place.floor().long(), place.ceil().long()
    table = q @ m.bias.weight.view(32, HEADS)[:, :1].expand(32, HEAD).mT
    near, far = table.gather(-1, low), table.gather(-1, high)
    w = place - low
    return m.join((s + far * w + near * (1 - w)).softmax(-1) @ v)


@UNSEEN.add(causal=True, batch=True)
def positions_counted_before_the_mask(m: Parts, x: Tensor) -> Tensor:
    s = m.scores(x)
    place = torch.sigmoid(s).flip(-1).cumsum(-1).flip(-1)
    return (s - 0.1 * place).masked_fill(later(x.shape[1]), INF).softmax(-1) @ m.v(x)
