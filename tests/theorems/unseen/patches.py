"""Patches of images as tokens: grids, windows, axes and merged tokens."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.unseen.claims import WIDTH, Corpus, Parts, later

UNSEEN = Corpus()
INF = float("-inf")


def _grid(x: Tensor) -> Tensor:
    b, t, d = x.shape
    return F.pad(x, (0, 0, 0, -t % 4)).reshape(b, -1, 4, d)


def _flat(y: Tensor, t: int) -> Tensor:
    return y.flatten(1, 2)[:, :t]


@UNSEEN.add(causal=False, batch=True)
def convnext_block_over_patches(m: Parts, x: Tensor) -> Tensor:
    y = _grid(x).permute(0, 3, 1, 2)
    weight = m.square[: 3 * WIDTH, :3].reshape(WIDTH, 1, 3, 3)
    y = F.conv2d(y, weight, padding=1, groups=WIDTH).permute(0, 2, 3, 1)
    y = m.down(F.gelu(m.up(m.norm(y))))
    return x + m.decay * _flat(y, x.shape[1])


@UNSEEN.add(causal=True, batch=True)
def masked_convolution_of_pixels(m: Parts, x: Tensor) -> Tensor:
    y = _grid(x).permute(0, 3, 1, 2)
    weight = m.square[: 3 * WIDTH, :3].reshape(WIDTH, 1, 3, 3).clone()
    weight[:, :, 1, 2:] = 0
    weight[:, :, 2:] = 0
    y = F.conv2d(y, weight, padding=1, groups=WIDTH)
    return _flat(y.permute(0, 2, 3, 1), x.shape[1])


@UNSEEN.add(causal=False, batch=True)
def convolution_of_pixels_masked_by_rows(m: Parts, x: Tensor) -> Tensor:
    y = _grid(x).permute(0, 3, 1, 2)
    weight = m.square[: 3 * WIDTH, :3].reshape(WIDTH, 1, 3, 3).clone()
    weight[:, :, 2] = 0
    return _flat(F.conv2d(y, weight, padding=1, groups=WIDTH).permute(0, 2, 3, 1), x.shape[1])


def _axis(m: Parts, y: Tensor, causal: bool) -> Tensor:
    s = m.q(y) @ m.k(y).mT
    if causal:
        s = s.masked_fill(later(y.shape[-2]), INF)
    return s.softmax(-1) @ m.v(y)


@UNSEEN.add(causal=True, batch=True)
def axes_with_triangles(m: Parts, x: Tensor) -> Tensor:
    y = _grid(x)
    y = y + _axis(m, y, True)
    y = y + _axis(m, y.transpose(1, 2), True).transpose(1, 2)
    return _flat(y, x.shape[1])


@UNSEEN.add(causal=False, batch=True)
def axes_with_one_triangle(m: Parts, x: Tensor) -> Tensor:
    y = _grid(x)
    y = y + _axis(m, y, True)
    y = y + _axis(m, y.transpose(1, 2), False).transpose(1, 2)
    return _flat(y, x.shape[1])


@UNSEEN.add(causal=False, batch=True)
def patches_merged_by_four(m: Parts, x: Tensor) -> Tensor:
    y = _grid(x)
    merged = torch.cat([y[:, :, 0::2], y[:, :, 1::2]], -1)
    merged = m.down(merged).repeat_interleave(2, 2)
    return x + _flat(merged, x.shape[1])


@UNSEEN.add(causal=False, batch=True)
def windows_of_patches(m: Parts, x: Tensor) -> Tensor:
    y = _grid(x)
    w = y.reshape(-1, 4, WIDTH)
    return _flat(_axis(m, w, False).view_as(y), x.shape[1])


@UNSEEN.add(causal=True, batch=True)
def windows_of_patches_with_a_triangle(m: Parts, x: Tensor) -> Tensor:
    y = _grid(x)
    w = y.reshape(-1, 4, WIDTH)
    return _flat(_axis(m, w, True).view_as(y), x.shape[1])


@UNSEEN.add(causal=True, batch=False)
def windows_cut_from_columns(m: Parts, x: Tensor) -> Tensor:
    y = _grid(x)
    w = y.transpose(0, 1).reshape(y.shape[1], -1, WIDTH)
    seen = torch.arange(w.shape[1])
    s = m.scores(w).masked_fill(seen[None] % 4 > seen[:, None] % 4, INF)
    out = (s.softmax(-1) @ m.v(w)).view(y.shape[1], y.shape[0], 4, WIDTH).transpose(0, 1)
    return _flat(out, x.shape[1])


@UNSEEN.add(causal=False, batch=True)
def windows_shifted_by_a_roll(m: Parts, x: Tensor) -> Tensor:
    y = _grid(torch.roll(x, -2, 1))
    return torch.roll(_flat(_axis(m, y, True), x.shape[1]), 2, 1)


@UNSEEN.add(causal=True, batch=True)
def patches_attend_to_a_strip_before(m: Parts, x: Tensor) -> Tensor:
    k = F.pad(m.k(x), (0, 0, 2, 0)).unfold(1, 3, 1)
    v = F.pad(m.v(x), (0, 0, 2, 0)).unfold(1, 3, 1)
    i = torch.arange(x.shape[1])[:, None] - 2 + torch.arange(3)
    s = torch.einsum("btd,btdw->btw", m.q(x), k).masked_fill(i < 0, INF)
    return torch.einsum("btw,btdw->btd", s.softmax(-1), v)


@UNSEEN.add(causal=False, batch=True)
def patches_attend_around_themselves(m: Parts, x: Tensor) -> Tensor:
    k = F.pad(m.k(x), (0, 0, 1, 1)).unfold(1, 3, 1)
    v = F.pad(m.v(x), (0, 0, 1, 1)).unfold(1, 3, 1)
    s = torch.einsum("btd,btdw->btw", m.q(x), k)
    return torch.einsum("btw,btdw->btd", s.softmax(-1), v)


@UNSEEN.add(causal=False, permutation=True, batch=True)
def patches_with_registers(m: Parts, x: Tensor) -> Tensor:
    y = torch.cat([m.latents.expand(x.shape[0], -1, -1), x], dim=1)
    q, k, v = m.heads(m.norm(y))
    y = y + m.join(F.scaled_dot_product_attention(q, k, v))
    return (y + m.down(F.gelu(m.up(y))))[:, m.latents.shape[0] :]


@UNSEEN.add(causal=True, batch=True)
def tokens_mixed_by_a_lower_triangle(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    w = torch.tril(m.square[:t, :t])
    u, v = m.up(m.norm(x)).chunk(2, -1)
    return x + m.o(u * (w @ m.norm(v) + 1))


@UNSEEN.add(causal=False, batch=True)
def tokens_mixed_by_a_full_matrix(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    return x + (m.norm(x).mT @ m.square[:t, :t]).mT


@UNSEEN.add(causal=False, batch=True)
def tokens_mixed_by_a_transposed_triangle(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    return x + (m.norm(x).mT @ torch.tril(m.square[:t, :t])).mT


@UNSEEN.add(causal=False, permutation=True, batch=True)
def patches_kept_by_their_norm(m: Parts, x: Tensor) -> Tensor:
    size = x.norm(dim=-1)
    kept = size >= size.median(dim=1, keepdim=True).values
    return _attend_to(m, x, kept[:, None])


def _attend_to(m: Parts, x: Tensor, seen: Tensor) -> Tensor:
    return m.scores(x).masked_fill(~seen, -1e9).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def places_on_a_grid_by_sines(m: Parts, x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1])
    row, column = i // 4, i % 4
    place = torch.cat([torch.sin(row[:, None] * m.decay[:4]), torch.cos(column[:, None] * m.decay[4:])], -1)
    return _attend_to(m, x + place, ~later(x.shape[1]))


@UNSEEN.add(causal=True, batch=True)
def biases_of_rows_and_columns(m: Parts, x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1])
    down, across = i[:, None] // 4 - i[None] // 4, i[:, None] % 4 - i[None] % 4
    q, k, v = m.heads(x)
    s = q @ k.mT + m.bias(down.clamp(0, 3) * 7 + across + 3).permute(2, 0, 1)
    return m.join((s + torch.full_like(s, INF).triu(1)).softmax(-1) @ v)


@UNSEEN.add(causal=False, batch=True)
def patches_in_raster_order_by_columns(m: Parts, x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1])
    order = (i % 4) * 100 + i // 4
    return _attend_to(m, x, order[None] <= order[:, None])


@UNSEEN.add(causal=False, batch=True)
def tokens_mixed_by_fourier(m: Parts, x: Tensor) -> Tensor:
    return m.norm(x + torch.fft.fft(torch.fft.fft(x, dim=-1), dim=1).real)


@UNSEEN.add(causal=False, batch=True)
def tokens_mixed_by_pooling(m: Parts, x: Tensor) -> Tensor:
    y = F.avg_pool1d(x.mT, 3, stride=1, padding=1, count_include_pad=False).mT
    return m.down(F.relu(m.up(y - x)))


@UNSEEN.add(masked=True, padding=True, batch=True)
def similar_patches_averaged(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    y = F.normalize(x, dim=-1)
    s = (y @ y.mT).masked_fill(mask[:, None] == 0, -2.0)
    w = (s > 0.3).to(x.dtype)
    return m.o((w @ x) / w.sum(-1, keepdim=True))


@UNSEEN.add(masked=True, padding=True, batch=True)
def images_pooled_by_a_query(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    s = torch.einsum("d,btd->bt", m.latents[0], m.k(x))
    s = s + (1.0 - mask) * -1e9
    return m.o(torch.einsum("bt,btd->bd", s.softmax(1), m.v(x)))


@UNSEEN.add(masked=True, padding=False, batch=True)
def images_pooled_by_their_mean(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    return m.o((m.v(x) * mask[..., None]).sum(1) / mask.sum(1, keepdim=True) + x.mean(1))
