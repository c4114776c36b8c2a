"""Frames of speech and patches of images as tokens."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.unseen.claims import WIDTH, Corpus, Parts, later

UNSEEN = Corpus()
INF = float("-inf")


def _attend(m: Parts, x: Tensor, seen: Tensor) -> Tensor:
    return m.scores(x).masked_fill(~seen, INF).softmax(-1) @ m.v(x)


def _glu(m: Parts, x: Tensor) -> Tensor:
    return F.glu(m.up(m.norm(x)).mT, dim=1)


@UNSEEN.add(causal=False, batch=True)
def conformer_convolution(m: Parts, x: Tensor) -> Tensor:
    y = F.conv1d(F.pad(_glu(m, x), (1, 2)), m.depthwise.weight, m.depthwise.bias, groups=WIDTH)
    return x + m.o(F.silu(y).mT)


@UNSEEN.add(causal=True, batch=True)
def conformer_convolution_for_streams(m: Parts, x: Tensor) -> Tensor:
    y = F.pad(_glu(m, x), (m.depthwise.kernel_size[0] - 1, 0), "constant", 0.0)
    y = F.conv1d(y, m.depthwise.weight, m.depthwise.bias, groups=WIDTH)
    return x + m.o(F.silu(m.norm(y.mT)))


@UNSEEN.add(masked=True, padding=True, causal=False, batch=True)
def conformer_convolution_of_real_frames(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    y = _glu(m, x).masked_fill(~mask.bool().unsqueeze(1), 0.0)
    y = F.conv1d(F.pad(y, (1, 2)), m.depthwise.weight, m.depthwise.bias, groups=WIDTH)
    return x + m.o(F.silu(y).mT)


@UNSEEN.add(masked=True, padding=False, causal=False, batch=True)
def conformer_convolution_masked_at_the_end(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    y = F.conv1d(F.pad(_glu(m, x), (1, 2)), m.depthwise.weight, m.depthwise.bias, groups=WIDTH)
    y = F.silu(y).masked_fill(~mask.bool().unsqueeze(1), 0.0)
    return x + m.o(y.mT)


def _chunk_mask(size: int, chunk: int, left: int = -1) -> Tensor:
    seen = torch.zeros(size, size, dtype=torch.bool)
    for i in range(size):
        start = 0 if left < 0 else max((i // chunk - left) * chunk, 0)
        seen[i, start : min((i // chunk + 1) * chunk, size)] = True
    return seen


@UNSEEN.add(causal=False, batch=True)
def chunks_of_a_stream(m: Parts, x: Tensor) -> Tensor:
    return _attend(m, x, _chunk_mask(x.size(1), 3))


@UNSEEN.add(causal=True, batch=True)
def chunks_of_a_stream_and_a_triangle(m: Parts, x: Tensor) -> Tensor:
    t = x.size(1)
    return _attend(m, x, _chunk_mask(t, 3, 1) & torch.ones(t, t, dtype=torch.bool).tril())


@UNSEEN.add(causal=True, batch=True)
def chunks_before_the_own_one(m: Parts, x: Tensor) -> Tensor:
    chunk = torch.div(torch.arange(x.size(1)), 3, rounding_mode="floor")
    seen = (chunk[None] < chunk[:, None]) & (chunk[None] >= chunk[:, None] - 2)
    return _attend(m, x, seen | torch.eye(x.size(1), dtype=torch.bool))


@UNSEEN.add(causal=False, batch=True)
def frames_with_one_frame_ahead(m: Parts, x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1])
    d = i[:, None] - i[None]
    return _attend(m, x, (d >= -1) & (d < 6))


@UNSEEN.add(masked=True, padding=True, causal=True, batch=True)
def frames_of_a_stream_with_pads(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    d = torch.arange(x.shape[1])[:, None] - torch.arange(x.shape[1])[None]
    seen = (d >= 0) & (d <= 4) & mask.bool().unsqueeze(1)
    s = m.scores(x).masked_fill(~seen, torch.finfo(x.dtype).min)
    return s.softmax(-1).masked_fill(~seen, 0.0) @ m.v(x)


@UNSEEN.add(causal=False, batch=True)
def relative_shift_of_both_directions(m: Parts, x: Tensor) -> Tensor:
    b, t, _ = x.shape
    place = torch.arange(t - 1, -t, -1, dtype=x.dtype)[:, None] * m.decay
    bd = m.q(x) @ m.k(torch.sin(place)).T
    bd = F.pad(bd, (1, 0)).view(b, 2 * t, t)[:, 1:].reshape(b, t, 2 * t - 1)[..., :t]
    return (m.scores(x) + bd).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def relative_shift_under_a_triangle(m: Parts, x: Tensor) -> Tensor:
    b, t, _ = x.shape
    bd = m.q(x) @ m.k(torch.cos(torch.arange(t - 1, -1, -1)[:, None] * m.decay)).T
    bd = torch.cat([torch.zeros(b, t, 1, dtype=x.dtype), bd], dim=-1).view(b, t + 1, t)[:, 1:].view_as(bd)
    return (m.scores(x) + bd).masked_fill(later(t), INF).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=False, batch=True)
def frames_stacked_in_pairs(m: Parts, x: Tensor) -> Tensor:
    b, t, d = x.shape
    y = m.down(F.pad(x, (0, 0, 0, t % 2)).reshape(b, -1, 2 * d))
    return y.repeat_interleave(2, 1)[:, :t] + x


@UNSEEN.add(causal=True, batch=True)
def frames_stacked_in_pairs_and_delayed(m: Parts, x: Tensor) -> Tensor:
    b, t, d = x.shape
    y = m.down(F.pad(x, (0, 0, 0, t % 2)).reshape(b, -1, 2 * d))
    y = F.pad(y, (0, 0, 1, 0))[:, :-1]
    return y.repeat_interleave(2, 1)[:, :t] + x


@UNSEEN.add(causal=True, batch=True)
def frames_joined_with_those_before(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    padded = F.pad(x, (0, 0, 3, 0))
    context = torch.cat([padded[:, 3:], padded[:, :t]], -1)
    return F.relu(m.down(context))


@UNSEEN.add(causal=False, batch=True)
def frames_joined_with_those_around(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    padded = F.pad(x, (0, 0, 1, 1), mode="replicate")
    return F.relu(m.down(torch.cat([padded[:, :t], padded[:, 2:]], -1)))


@UNSEEN.add(causal=True, batch=True)
def cumulative_layer_norm(m: Parts, x: Tensor) -> Tensor:
    count = torch.arange(1, x.shape[1] + 1, dtype=x.dtype)[:, None] * WIDTH
    total, squares = x.sum(-1, keepdim=True).cumsum(1), x.pow(2).sum(-1, keepdim=True).cumsum(1)
    mean = total / count
    variance = squares / count - mean.pow(2)
    return m.decay * (x - mean) / (variance + 1e-5).sqrt()


@UNSEEN.add(causal=False, batch=True)
def global_layer_norm(m: Parts, x: Tensor) -> Tensor:
    mean = x.mean((1, 2), keepdim=True)
    return m.decay * (x - mean) / ((x - mean).pow(2).mean((1, 2), keepdim=True) + 1e-8).sqrt()


@UNSEEN.add(masked=True, padding=True, causal=False, batch=True)
def global_norm_of_real_frames(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    real, count = mask[..., None], mask.sum(1)[:, None, None] * WIDTH
    mean = (x * real).sum((1, 2), keepdim=True) / count
    variance = (((x - mean) * real) ** 2).sum((1, 2), keepdim=True) / count
    return (x - mean) * torch.rsqrt(variance + 1e-8) * m.decay


@UNSEEN.add(masked=True, padding=False, causal=False, batch=True)
def global_norm_of_frames_times_mask(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    real, count = mask[..., None], mask.sum(1)[:, None, None] * WIDTH
    mean = (x * real).sum((1, 2), keepdim=True) / count
    variance = ((x - mean) ** 2).sum((1, 2), keepdim=True) / count
    return (x - mean) * torch.rsqrt(variance + 1e-8) * m.decay


@UNSEEN.add(causal=True, batch=True)
def sliding_mean_removed(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    total = F.pad(x.cumsum(1), (0, 0, 1, 0))
    i = torch.arange(t)
    start = (i - 4).clamp(min=0)
    mean = (total[:, i + 1] - total[:, start]) / (i + 1 - start)[:, None]
    return m.v(x - mean)


@UNSEEN.add(causal=True, batch=True)
def energy_by_channel(m: Parts, x: Tensor) -> Tensor:
    e = F.softplus(m.v(x))
    smooth = e[:, 0]
    out = []
    for frame in e.unbind(1):
        smooth = 0.96 * smooth + 0.04 * frame
        out.append((frame / (1e-6 + smooth) ** 0.8 + 2.0).sqrt() - 2.0**0.5)
    return torch.stack(out, 1)


@UNSEEN.add(causal=False, permutation=True, batch=True)
def squeezed_and_excited(m: Parts, x: Tensor) -> Tensor:
    return x * m.k(F.relu(m.q(x.mean(1)))).sigmoid().unsqueeze(1)


@UNSEEN.add(causal=True, batch=True)
def squeezed_up_to_now(m: Parts, x: Tensor) -> Tensor:
    mean = x.cumsum(1) / torch.arange(1, x.shape[1] + 1).unsqueeze(-1)
    return x * m.k(F.relu(m.q(mean))).sigmoid()


@UNSEEN.add(causal=False, batch=True)
def row_convolution_ahead(m: Parts, x: Tensor) -> Tensor:
    y = F.pad(x.mT, (0, 3))
    return F.hardtanh(F.conv1d(y, m.depthwise.weight, groups=WIDTH), 0, 20).mT


@UNSEEN.add(causal=False, batch=True)
def pooled_and_interpolated(m: Parts, x: Tensor) -> Tensor:
    y = F.avg_pool1d(m.v(x).mT, 2, ceil_mode=True)
    return x + F.interpolate(y, size=x.shape[1], mode="nearest").mT


@UNSEEN.add(causal=True, batch=True)
def frames_that_change_the_label(m: Parts, x: Tensor) -> Tensor:
    label = m.router(x).argmax(-1)
    new = F.pad(label[:, 1:] != label[:, :-1], (1, 0), value=True)
    seen = new[:, None] & ~later(x.shape[1])
    return _attend(m, x, seen)


@UNSEEN.add(causal=False, batch=True)
def voiced_frames_by_the_loudest(m: Parts, x: Tensor) -> Tensor:
    energy = x.square().mean(-1)
    voiced = energy > 0.3 * energy.amax(1, keepdim=True)
    return _attend(m, x, (voiced[:, None] & ~later(x.shape[1])) | torch.eye(x.shape[1], dtype=torch.bool))


@UNSEEN.add(causal=True, batch=True)
def voiced_frames_by_the_loudest_so_far(m: Parts, x: Tensor) -> Tensor:
    energy = x.square().mean(-1)
    voiced = energy > 0.3 * energy.cummax(1).values
    return _attend(m, x, (voiced[:, None] & ~later(x.shape[1])) | torch.eye(x.shape[1], dtype=torch.bool))


@UNSEEN.add(causal=False, batch=True)
def centred_differences_of_frames(m: Parts, x: Tensor) -> Tensor:
    y = torch.cat([x[:, :1], x, x[:, -1:]], dim=1)
    return m.o(torch.cat([x[..., :4], ((y[:, 2:] - y[:, :-2]) / 2)[..., :4]], -1))


@UNSEEN.add(causal=True, batch=True)
def differences_to_frames_before(m: Parts, x: Tensor) -> Tensor:
    delta = torch.diff(x, dim=1, prepend=x[:, :1])
    return m.o(torch.cat([x[..., :4], delta[..., :4]], -1))
