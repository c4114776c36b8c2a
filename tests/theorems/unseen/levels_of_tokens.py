"""Windows, patches, grids and levels of tokens; decompositions and norms of series."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.unseen.claims import WIDTH, Corpus, Parts, later

UNSEEN = Corpus()
INF = float("-inf")


def _padded(x: Tensor, size: int, front: int = 0) -> Tensor:
    """Tokens after `front` zeros, and zeros at the end up to a multiple of the size."""
    return F.pad(x, (0, 0, front, -(x.shape[1] + front) % size))


def _attend(m: Parts, x: Tensor, *, hidden: Tensor | None = None) -> Tensor:
    """Attention along the last axis but one."""
    s = m.q(x) @ m.k(x).mT / WIDTH**0.5
    return (s if hidden is None else s.masked_fill(hidden, INF)).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def hourglass_shifted_before_it_is_shortened(m: Parts, x: Tensor) -> Tensor:
    b, t, d = x.shape
    short = _padded(F.pad(x, (0, 0, 2, 0))[:, :t], 3).view(b, -1, 3, d).mean(2)
    short = short + _attend(m, short, hidden=later(short.shape[1]))
    return x + short.repeat_interleave(3, dim=1)[:, :t]


@UNSEEN.add(causal=False, batch=True)
def hourglass_shifted_by_one_too_few(m: Parts, x: Tensor) -> Tensor:
    b, t, d = x.shape
    short = _padded(F.pad(x, (0, 0, 1, 0))[:, :t], 3).view(b, -1, 3, d).mean(2)
    short = short + _attend(m, short, hidden=later(short.shape[1]))
    return x + short.repeat_interleave(3, dim=1)[:, :t]


@UNSEEN.add(causal=True, batch=True)
def tokens_in_patches_after_patches(m: Parts, x: Tensor) -> Tensor:
    b, t, d = x.shape
    local = _padded(x, 4).view(b, -1, 4, d)
    patches = F.pad(m.down(torch.cat([local.mean(2), local.amax(2)], -1)), (0, 0, 1, 0))[:, :-1]
    patches = _attend(m, patches, hidden=later(patches.shape[1]))
    return _attend(m, local + patches[:, :, None], hidden=later(4)).reshape(b, -1, d)[:, :t]


@UNSEEN.add(causal=False, batch=True)
def networks_of_three_levels(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    y = _padded(x, 4).mT
    middle = F.gelu(F.avg_pool1d(y, 2))
    low = F.gelu(F.max_pool1d(middle, 2))
    middle = middle + F.interpolate(low, scale_factor=2.0, mode="nearest")
    return m.o((y + F.interpolate(middle, scale_factor=2.0, mode="nearest")).mT[:, :t])


@UNSEEN.add(causal=False, batch=True)
def windows_shifted_with_a_mask_of_regions(m: Parts, x: Tensor) -> Tensor:
    b, t, d = x.shape
    y = _padded(x, 4).roll(-2, 1)
    n = y.shape[1]
    region = torch.zeros(n, dtype=torch.long)
    region[n - 4 : n - 2], region[n - 2 :] = 1, 2
    region = region.view(-1, 4)
    y = _attend(m, y.view(b, -1, 4, d), hidden=region[:, :, None] != region[:, None])
    return y.reshape(b, n, d).roll(2, 1)[:, :t]


@UNSEEN.add(causal=False, batch=True)
def blocks_then_a_grid(m: Parts, x: Tensor) -> Tensor:
    b, t, d = x.shape
    y = _padded(x, 4).view(b, -1, 4, d)
    y = y + _attend(m, y)
    y = y + _attend(m, y.transpose(1, 2)).transpose(1, 2)
    return m.norm(y.flatten(1, 2)[:, :t])


@UNSEEN.add(causal=True, batch=True)
def columns_over_time_only(m: Parts, x: Tensor) -> Tensor:
    b, t, d = x.shape
    frames = _padded(x, 3).view(b, -1, 3, d).transpose(1, 2).reshape(b * 3, -1, d)
    y = frames + _attend(m, frames, hidden=later(frames.shape[1]))
    return y.view(b, 3, -1, d).transpose(1, 2).reshape(b, -1, d)[:, :t]


@UNSEEN.add(causal=False, batch=True)
def space_after_time(m: Parts, x: Tensor) -> Tensor:
    b, t, d = x.shape
    y = _padded(x, 3).view(b, -1, 3, d)
    y = y + _attend(m, y.transpose(1, 2), hidden=later(y.shape[1])).transpose(1, 2)
    return (y + _attend(m, y)).reshape(b, -1, d)[:, :t]


@UNSEEN.add(causal=False, batch=True)
def rows_of_a_grid_not_transposed_back(m: Parts, x: Tensor) -> Tensor:
    b, t, d = x.shape
    y = _padded(x, 3).view(b, -1, 3, d)
    y = _attend(m, y.transpose(1, 2), hidden=later(y.shape[1]))
    return y.reshape(b, -1, d)[:, :t]


@UNSEEN.add(causal=True, batch=True)
def patches_mixed_by_a_triangle(m: Parts, x: Tensor) -> Tensor:
    b, t, d = x.shape
    y = _padded(x, 4).view(b, -1, 4, d)
    y = y + torch.einsum("ij,bpjd->bpid", m.square[:4, :4].tril(), m.norm(y))
    return (y + m.down(F.gelu(m.up(y)))).view(b, -1, d)[:, :t]


@UNSEEN.add(causal=False, batch=True)
def patches_mixed_within_and_across(m: Parts, x: Tensor) -> Tensor:
    b, t, d = x.shape
    y = _padded(x, 4).view(b, -1, 4, d)
    n = y.shape[1]
    y = y + torch.einsum("ij,bpjd->bpid", m.square[:4, :4], y)
    y = y + torch.einsum("pq,bqjd->bpjd", m.square[:n, :n].tril(), y)
    return y.reshape(b, -1, d)[:, :t]


@UNSEEN.add(batch=True, permutation=False)
def overlapping_patches_of_each_channel(m: Parts, x: Tensor) -> Tensor:
    patches = x.mT.unfold(-1, 4, 2)
    y = F.linear(patches, m.square[:WIDTH, :4])
    return _attend(m, y).mean(2).flatten(1)


@UNSEEN.add(causal=False, batch=True)
def variates_as_tokens(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    y = F.linear(x.mT, m.square[:WIDTH, :t])
    y = y + _attend(m, y)
    return F.linear(y, m.square[:t, :WIDTH]).mT


@UNSEEN.add(causal=False, batch=True)
def blocks_of_pooled_backcasts(m: Parts, x: Tensor) -> Tensor:
    rest, total = x.mT, torch.zeros_like(x.mT)
    for size in (4, 2):
        pooled = F.max_pool1d(rest, size, ceil_mode=True)
        back = F.interpolate(m.v(pooled.mT).mT, size=x.shape[1], mode="linear")
        rest, total = rest - back, total + back
    return m.o(total.mT)


@UNSEEN.add(causal=False, batch=True)
def series_folded_by_a_period(m: Parts, x: Tensor) -> Tensor:
    b, t, d = x.shape
    grid = _padded(x, 3).view(b, -1, 3, d).permute(0, 3, 1, 2)
    y = F.conv2d(grid, m.conv.weight[..., None] * torch.ones(3, dtype=x.dtype), padding=1)
    return x + F.gelu(y).permute(0, 2, 3, 1).reshape(b, -1, d)[:, :t]


@UNSEEN.add(masked=True, padding=True, batch=True)
def reversible_norm_of_real_tokens(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    w = mask[..., None].to(x.dtype)
    n = w.sum(1, keepdim=True).clamp(min=1)
    mean = (x * w).sum(1, keepdim=True) / n
    deviation = (((x - mean) * w).square().sum(1, keepdim=True) / n + 1e-5).sqrt()
    return m.o(F.gelu(m.v((x - mean) / deviation))) * deviation + mean


@UNSEEN.add(masked=True, padding=False, batch=True)
def reversible_norm_with_a_variance_of_all(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    w = mask[..., None].to(x.dtype)
    mean = (x * w).sum(1, keepdim=True) / w.sum(1, keepdim=True).clamp(min=1)
    deviation = ((x - mean).square().mean(1, keepdim=True) + 1e-5).sqrt()
    return m.o(m.v((x - mean) / deviation)) * deviation + mean


@UNSEEN.add(causal=False, batch=True)
def norm_by_the_first_tokens(m: Parts, x: Tensor) -> Tensor:
    start = x[:, :3]
    return m.v((x - start.mean(1, keepdim=True)) / (start.std(1, keepdim=True) + 1e-4))


@UNSEEN.add(causal=True, batch=True)
def norm_by_the_window_before(m: Parts, x: Tensor) -> Tensor:
    before = F.pad(x, (0, 0, 4, 0))[:, :-1].unfold(1, 4, 1)
    scale = before.abs().mean(-1) + 1e-2
    return m.down(m.up(x / scale).relu()) * scale


@UNSEEN.add(causal=True, batch=True)
def means_of_chunks_before_at_two_levels(m: Parts, x: Tensor) -> Tensor:
    b, t, d = x.shape
    y = m.o(x)
    for size in (2, 4):
        means = _padded(x, size).view(b, -1, size, d).mean(2)
        y = y + F.pad(means, (0, 0, 1, 0)).repeat_interleave(size, 1)[:, :t]
    return m.norm(y)


@UNSEEN.add(causal=False, batch=True)
def neighbourhoods_kept_inside(m: Parts, x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1])
    start = (i - 1).clamp(0, x.shape[1] - 3)
    near = start[:, None] + torch.arange(3)
    k, v = m.k(x)[:, near], m.v(x)[:, near]
    w = torch.einsum("btd,btnd->btn", m.q(x), k).softmax(-1)
    return torch.einsum("btn,btnd->btd", w, v)


@UNSEEN.add(causal=True, batch=True)
def neighbourhoods_before(m: Parts, x: Tensor) -> Tensor:
    near = torch.arange(x.shape[1])[:, None] - torch.arange(3)
    k, v = m.k(x)[:, near.clamp(min=0)], m.v(x)[:, near.clamp(min=0)]
    w = (m.q(x)[:, :, None] * k).sum(-1).masked_fill(near < 0, INF).softmax(-1)
    return (w[..., None] * v).sum(2)


@UNSEEN.add(causal=True, batch=True)
def strided_tokens_of_long_segments(m: Parts, x: Tensor) -> Tensor:
    b, t, d = x.shape
    y, out = _padded(x, 8).view(b, -1, 8, d), torch.zeros_like(_padded(x, 8)).view(b, -1, 8, d)
    for offset in range(2):
        out[:, :, offset::2] = _attend(m, y[:, :, offset::2], hidden=later(4))
    return m.o(out.view(b, -1, d)[:, :t])


@UNSEEN.add(causal=False, batch=True, permutation=False)
def keys_shortened_by_a_strided_filter(m: Parts, x: Tensor) -> Tensor:
    short = m.norm(F.conv1d(_padded(x, 2).mT, m.conv.weight[..., :2], m.conv.bias, stride=2).mT)
    return (m.q(x) @ m.k(short).mT).softmax(-1) @ m.v(short)


@UNSEEN.add(causal=True, batch=True)
def segment_before_as_a_memory(m: Parts, x: Tensor) -> Tensor:
    b, t, d = x.shape
    now = _padded(x, 4).view(b, -1, 4, d)
    both = torch.cat([F.pad(now, (0, 0, 0, 0, 1, 0))[:, :-1], now], dim=2)
    s = m.q(now) @ m.k(both).mT
    s = s.masked_fill(torch.ones(4, 8, dtype=torch.bool).triu(5), INF)
    return (s.softmax(-1) @ m.v(both)).reshape(b, -1, d)[:, :t]


@UNSEEN.add(causal=True, batch=True)
def last_states_of_sentences_before(m: Parts, x: Tensor) -> Tensor:
    b, t, d = x.shape
    words, last = m.gru(_padded(x, 4).reshape(-1, 4, d))
    context = m.gru(last[0].view(b, -1, d))[0]
    context = torch.cat([torch.zeros_like(context[:, :1]), context[:, :-1]], 1)
    return (words.view(b, -1, 4, d) + context[:, :, None]).reshape(b, -1, d)[:, :t]


@UNSEEN.add(causal=False, batch=True)
def last_states_of_own_sentences(m: Parts, x: Tensor) -> Tensor:
    b, t, d = x.shape
    words, last = m.gru(_padded(x, 4).reshape(-1, 4, d))
    context = m.gru(last[0].view(b, -1, d))[0]
    return (words.view(b, -1, 4, d) + context[:, :, None]).reshape(b, -1, d)[:, :t]


@UNSEEN.add(causal=True, batch=True)
def mean_of_the_own_chunk_so_far(m: Parts, x: Tensor) -> Tensor:
    starts = m.gate(x)[..., 0].sigmoid() > 0.5
    chunk = starts.long().cumsum(1)
    own = (chunk[:, :, None] == chunk[:, None]).to(x.dtype).tril()
    return m.o(own @ x / own.sum(-1, keepdim=True))


@UNSEEN.add(causal=False, batch=True)
def grid_shifted_in_four_directions(m: Parts, x: Tensor) -> Tensor:
    b, t, d = x.shape
    y = _padded(x, 3).view(b, -1, 3, d)
    a, c, e, f = y.chunk(4, -1)
    y = torch.cat([a.roll(1, 1), c.roll(-1, 1), e.roll(1, 2), f.roll(-1, 2)], -1)
    return x + m.o(y.reshape(b, -1, d)[:, :t])
