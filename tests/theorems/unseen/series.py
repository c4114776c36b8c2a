"""Time series: norms, trends, smoothing, lags and windows."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.unseen.claims import WIDTH, Corpus, Parts, later

UNSEEN = Corpus()
INF = float("-inf")


def _before(x: Tensor, n: int = 1) -> Tensor:
    """Each token replaced by the one `n` before, and zeros at the start."""
    return F.pad(x, (0, 0, n, 0))[:, : x.shape[1]]


def _network(m: Parts, x: Tensor) -> Tensor:
    return m.down(F.gelu(m.up(x)))


@UNSEEN.add(causal=False, permutation=True, batch=True)
def reversible_instance_norm(m: Parts, x: Tensor) -> Tensor:
    mean = x.mean(1, keepdim=True).detach()
    deviation = torch.sqrt(x.var(1, keepdim=True, unbiased=False) + 1e-5).detach()
    y = _network(m, (x - mean) / deviation * m.scale + m.decay)
    return (y - m.decay) / (m.scale + 1e-8) * deviation + mean


@UNSEEN.add(causal=True, batch=True)
def reversible_norm_of_the_past(m: Parts, x: Tensor) -> Tensor:
    n = torch.arange(1, x.shape[1] + 1, dtype=x.dtype)[None, :, None]
    mean = x.cumsum(1) / n
    deviation = ((x.square().cumsum(1) / n - mean.square()).clamp(min=0) + 1e-5).sqrt()
    return _network(m, (x - mean) / deviation) * deviation + mean


@UNSEEN.add(causal=False, batch=True)
def last_value_subtracted(m: Parts, x: Tensor) -> Tensor:
    last = x[:, -1:].detach()
    return _network(m, x - last) + last


@UNSEEN.add(causal=True, batch=True, permutation=False)
def first_value_subtracted(m: Parts, x: Tensor) -> Tensor:
    first = x[:, :1]
    return _network(m, x - first) + first


def _moving_average(x: Tensor, front: int, end: int) -> Tensor:
    padded = torch.cat([x[:, :1].repeat(1, front, 1), x, x[:, -1:].repeat(1, end, 1)], 1)
    return F.avg_pool1d(padded.transpose(1, 2), front + end + 1, stride=1).transpose(1, 2)


@UNSEEN.add(causal=False, batch=True)
def trend_by_a_centred_average(m: Parts, x: Tensor) -> Tensor:
    trend = _moving_average(x, 2, 2)
    return m.o(x - trend) + m.v(trend)


@UNSEEN.add(causal=True, batch=True)
def trend_by_an_average_of_the_past(m: Parts, x: Tensor) -> Tensor:
    trend = _moving_average(x, 4, 0)
    return m.o(x - trend) + m.v(trend)


@UNSEEN.add(causal=False, batch=True)
def trend_with_the_padding_of_the_pool(m: Parts, x: Tensor) -> Tensor:
    trend = F.avg_pool1d(x.mT, 3, stride=1, padding=1, count_include_pad=False).mT
    return m.o(x - trend) + m.v(trend)


@UNSEEN.add(causal=True, batch=True)
def trends_of_several_widths(m: Parts, x: Tensor) -> Tensor:
    trends = torch.stack([_moving_average(x, n, 0) for n in (1, 3, 5)], -1)
    trend = (trends * F.softmax(m.router(x)[..., None, :3], -1)).sum(-1)
    return m.o(x - trend) + trend


@UNSEEN.add(causal=True, batch=True)
def smoothing_in_a_loop(m: Parts, x: Tensor) -> Tensor:
    share = torch.sigmoid(m.decay)
    level, out = x[:, 0], []
    for i in range(x.shape[1]):
        level = share * x[:, i] + (1 - share) * level
        out.append(level)
    return m.o(torch.stack(out, dim=1))


@UNSEEN.add(causal=True, batch=True)
def smoothing_by_a_matrix(m: Parts, x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1])
    d = (i[:, None] - i[None]).to(x.dtype)
    share = m.decay.sigmoid().mean()
    w = torch.where(d >= 0, share * (1 - share) ** d.clamp(min=0), torch.zeros_like(d))
    return m.o(w @ x)


@UNSEEN.add(causal=False, batch=True)
def smoothing_forwards_and_backwards(m: Parts, x: Tensor) -> Tensor:
    level, out = x[:, 0], []
    for i in range(x.shape[1]):
        level = 0.3 * x[:, i] + 0.7 * level
        out.append(level)
    for i in reversed(range(x.shape[1])):
        level = 0.3 * out[i] + 0.7 * level
        out[i] = level
    return torch.stack(out, 1)


@UNSEEN.add(causal=True, batch=True)
def level_and_trend_in_a_loop(m: Parts, x: Tensor) -> Tensor:
    level, trend, out = x[:, 0], torch.zeros_like(x[:, 0]), []
    for i in range(x.shape[1]):
        before = level
        level = 0.4 * x[:, i] + 0.6 * (level + trend)
        trend = 0.2 * (level - before) + 0.8 * trend
        out.append(level + trend)
    return torch.stack(out, 1)


@UNSEEN.add(causal=True, batch=True)
def level_and_season_in_a_loop(m: Parts, x: Tensor) -> Tensor:
    season = [torch.zeros_like(x[:, 0]) for _ in range(4)]
    level, out = x[:, 0], []
    for i in range(x.shape[1]):
        level = 0.4 * (x[:, i] - season[i % 4]) + 0.6 * level
        season[i % 4] = 0.3 * (x[:, i] - level) + 0.7 * season[i % 4]
        out.append(level + season[(i + 1) % 4])
    return torch.stack(out, 1)


@UNSEEN.add(causal=True, batch=True)
def errors_fed_back_in_a_loop(m: Parts, x: Tensor) -> Tensor:
    forecast, error, out = torch.zeros_like(x[:, 0]), torch.zeros_like(x[:, 0]), []
    for i in range(x.shape[1]):
        error = x[:, i] - forecast
        forecast = m.o(x[:, i]) + 0.5 * error
        out.append(forecast)
    return torch.stack(out, 1)


@UNSEEN.add(causal=True, batch=True)
def cumulative_layer_norm(m: Parts, x: Tensor) -> Tensor:
    n = WIDTH * torch.arange(1, x.shape[1] + 1).to(x.dtype).view(1, -1, 1)
    total = x.sum(2, keepdim=True).cumsum(1)
    squares = x.pow(2).sum(2, keepdim=True).cumsum(1)
    mean = total / n
    variance = (squares - 2 * mean * total) / n + mean.pow(2)
    return (x - mean) / (variance + 1e-6).sqrt() * m.scale


@UNSEEN.add(causal=False, permutation=True, batch=True)
def global_layer_norm(m: Parts, x: Tensor) -> Tensor:
    mean = x.mean(1, keepdim=True).mean(2, keepdim=True)
    variance = (x - mean).pow(2).mean(1, keepdim=True).mean(2, keepdim=True)
    return m.scale * (x - mean) / (variance + 1e-6).sqrt()


@UNSEEN.add(causal=True, batch=True, permutation=True)
def groups_of_features_of_each_step(m: Parts, x: Tensor) -> Tensor:
    b, t, d = x.shape
    return F.group_norm(x.reshape(b * t, d), 2).view(b, t, d)


@UNSEEN.add(causal=False, batch=True)
def groups_of_features_of_the_whole_row(m: Parts, x: Tensor) -> Tensor:
    return F.group_norm(m.depthwise(x.mT)[..., : x.shape[1]], 2).mT


@UNSEEN.add(causal=True, batch=True)
def differences_then_running_sum(m: Parts, x: Tensor) -> Tensor:
    step = torch.cat([x[:, :1], torch.diff(x, dim=1)], 1)
    return torch.cumsum(_network(m, step), 1)


@UNSEEN.add(causal=False, batch=True)
def differences_padded_at_the_end(m: Parts, x: Tensor) -> Tensor:
    step = F.pad(x[:, 1:] - x[:, :-1], (0, 0, 0, 1))
    return _network(m, step)


@UNSEEN.add(causal=True, batch=True)
def difference_to_the_season_before(m: Parts, x: Tensor) -> Tensor:
    return _network(m, x - _before(x, 4)) + _before(x, 4)


@UNSEEN.add(causal=True, batch=True)
def lags_as_features(m: Parts, x: Tensor) -> Tensor:
    lags = torch.cat([_before(x, n) for n in (0, 1, 2, 4)], -1)
    return F.linear(lags, m.square[:WIDTH, : 4 * WIDTH])


@UNSEEN.add(causal=False, batch=True)
def lags_by_roll(m: Parts, x: Tensor) -> Tensor:
    lags = torch.stack([x.roll(n, 1) for n in range(3)], -1)
    return m.o(lags.mean(-1))


@UNSEEN.add(causal=True, batch=True, permutation=False)
def time_as_waves(m: Parts, x: Tensor) -> Tensor:
    tau = torch.arange(x.shape[1], dtype=x.dtype)[:, None] * m.decay
    wave = torch.cat([tau[:, :1], torch.sin(tau[:, 1:])], -1)
    return x + m.o(wave)


@UNSEEN.add(causal=True, batch=True)
def scaled_between_extremes_so_far(m: Parts, x: Tensor) -> Tensor:
    low, high = torch.cummin(x, 1)[0], torch.cummax(x, 1)[0]
    return m.o((x - low) / (high - low + 1e-3))


@UNSEEN.add(causal=False, batch=True, permutation=True)
def scaled_between_extremes(m: Parts, x: Tensor) -> Tensor:
    low, high = x.amin(1, keepdim=True), x.amax(1, keepdim=True)
    return m.o((x - low) / (high - low + 1e-3))


@UNSEEN.add(causal=False, batch=True, permutation=True)
def scaled_by_quartiles(m: Parts, x: Tensor) -> Tensor:
    middle = x.median(1, keepdim=True).values
    q = torch.quantile(x, torch.tensor([0.25, 0.75], dtype=x.dtype), dim=1)
    return m.o((x - middle) / (q[1] - q[0] + 1e-3)[:, None])


@UNSEEN.add(causal=True, batch=True)
def deviation_of_windows(m: Parts, x: Tensor) -> Tensor:
    windows = F.pad(x, (0, 0, 3, 0)).unfold(1, 4, 1)
    return m.o((x - windows.mean(-1)) / (windows.std(-1) + 1e-3))


@UNSEEN.add(causal=True, batch=True)
def averages_by_differences_of_sums(m: Parts, x: Tensor) -> Tensor:
    total = x.cumsum(1)
    n = torch.arange(1, x.shape[1] + 1).clamp(max=3)[:, None]
    return m.o((total - _before(total, 3)) / n)


@UNSEEN.add(causal=True, batch=True)
def rank_among_the_past(m: Parts, x: Tensor) -> Tensor:
    below = (x[:, :, None] > x[:, None]) & ~later(x.shape[1])[..., None]
    n = torch.arange(1, x.shape[1] + 1)[:, None]
    return m.o(below.sum(2) / n.to(x.dtype))


@UNSEEN.add(causal=False, batch=True, permutation=True)
def deviation_from_the_others(m: Parts, x: Tensor) -> Tensor:
    others = (x.sum(1, keepdim=True) - x) / (x.shape[1] - 1)
    return m.o(x - others)


@UNSEEN.add(causal=True, batch=True)
def last_valid_value_filled_forward(m: Parts, x: Tensor) -> Tensor:
    valid = x[..., 0] > 0
    index = torch.where(valid, torch.arange(x.shape[1]), 0).cummax(1).values
    return m.o(x.gather(1, index[..., None].expand(-1, -1, WIDTH)))


@UNSEEN.add(causal=False, batch=True)
def next_valid_value_filled_backward(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    index = torch.where(x[..., 0] > 0, torch.arange(t), t - 1).flip(1).cummin(1).values.flip(1)
    return m.o(x.gather(1, index[..., None].expand(-1, -1, WIDTH)))


@UNSEEN.add(causal=True, batch=True)
def steps_since_the_last_event(m: Parts, x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1])
    event = x[..., 0] > 0.5
    last = torch.where(event, i, -1).cummax(1).values
    since = torch.where(last < 0, 0, i - last)
    return x * torch.exp(-0.1 * since.to(x.dtype))[..., None]
