"""Softmax by hand, sparse weights, quantized scores and sums in logs."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.unseen.claims import WIDTH, Corpus, Parts, later

UNSEEN = Corpus()
INF = float("-inf")


@UNSEEN.add(causal=True, batch=True)
def exponentials_over_their_sum(m: Parts, x: Tensor) -> Tensor:
    s = m.scores(x).masked_fill(later(x.shape[1]), INF)
    e = torch.exp(s - s.max(dim=-1, keepdim=True).values)
    return e / e.sum(dim=-1, keepdim=True) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def exponentials_with_the_largest_of_all(m: Parts, x: Tensor) -> Tensor:
    s = m.scores(x)
    e = torch.exp(s - s.amax(-1, keepdim=True)) * torch.ones(x.shape[1], x.shape[1]).tril()
    return (e @ m.v(x)) / e.sum(-1, keepdim=True)


@UNSEEN.add(causal=True, batch=True)
def exponentials_with_a_small_constant(m: Parts, x: Tensor) -> Tensor:
    e = m.scores(x).exp().tril()
    return m.o(e / (e.sum(-1, keepdim=True) + 1e-6) @ m.v(x))


@UNSEEN.add(causal=False, batch=True)
def exponentials_over_the_sum_of_all(m: Parts, x: Tensor) -> Tensor:
    s = m.scores(x)
    e = torch.exp(s - s.amax(-1, keepdim=True))
    return (e / e.sum(-1, keepdim=True)).tril() @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def weights_by_logs(m: Parts, x: Tensor) -> Tensor:
    s = m.scores(x) + torch.full((x.shape[1], x.shape[1]), INF).triu(1)
    return torch.exp(s - s.logsumexp(-1, keepdim=True)) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def scores_centred_before_the_mask(m: Parts, x: Tensor) -> Tensor:
    s = m.scores(x)
    s = s - s.mean(-1, keepdim=True)
    return s.masked_fill(later(x.shape[1]), torch.finfo(s.dtype).min).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=False, batch=True)
def scores_standardized_before_the_mask(m: Parts, x: Tensor) -> Tensor:
    s = m.scores(x)
    s = (s - s.mean(-1, keepdim=True)) / (s.std(-1, keepdim=True) + 1e-5)
    return s.masked_fill(later(x.shape[1]), torch.finfo(s.dtype).min).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def power_one_and_a_half_by_sorting(m: Parts, x: Tensor) -> Tensor:
    z = m.scores(x).masked_fill(later(x.shape[1]), -1e4)
    z = (z - z.amax(-1, keepdim=True)) / 2
    s = z.sort(dim=-1, descending=True).values
    rho = torch.arange(1, x.shape[1] + 1, dtype=x.dtype)
    mean, square = s.cumsum(-1) / rho, (s**2).cumsum(-1) / rho
    tau = mean - ((1 - rho * (square - mean**2)) / rho).clamp(min=0).sqrt()
    support = (tau <= s).sum(-1, keepdim=True)
    return (z - tau.gather(-1, support - 1)).clamp(min=0) ** 2 @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def threshold_found_by_halving(m: Parts, x: Tensor) -> Tensor:
    z = m.scores(x).masked_fill(later(x.shape[1]), INF)
    low, step = z.amax(-1, keepdim=True) - 1, 1.0
    for _ in range(12):
        step = step / 2
        middle = low + step
        low = torch.where((z - middle).clamp(min=0).sum(-1, keepdim=True) >= 1, middle, low)
    p = (z - low).clamp(min=0)
    return p / p.sum(-1, keepdim=True) @ m.v(x)


@UNSEEN.add(causal=False, batch=True)
def threshold_of_all_scores(m: Parts, x: Tensor) -> Tensor:
    z = m.scores(x)
    s = z.sort(dim=-1, descending=True).values
    k = torch.arange(1, x.shape[1] + 1)
    c = s.cumsum(-1)
    size = (1 + k * s > c).sum(-1, keepdim=True)
    tau = (c.gather(-1, size - 1) - 1) / size
    return (z - tau).clamp(min=0).tril() @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def noise_of_a_table_on_scores(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    noise = -torch.log(-torch.log(torch.sigmoid(m.square[:t, :t])))
    s = (m.scores(x) + noise).masked_fill(later(t), INF) / 0.5
    soft = s.softmax(-1)
    hard = torch.zeros_like(soft).scatter_(-1, soft.argmax(-1, keepdim=True), 1.0)
    return (hard - soft.detach() + soft) @ m.v(x)


@UNSEEN.add(causal=False, batch=True)
def one_key_for_all_queries(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    best = (m.scores(x) + m.square[:t, :t]).sum(1).argmax(-1)
    chosen = F.one_hot(best, t).bool()[:, None] | torch.eye(t, dtype=torch.bool)
    return m.scores(x).masked_fill(later(t) | ~chosen, INF).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def rounded_to_a_scale_of_each_token(m: Parts, x: Tensor) -> Tensor:
    scale = x.abs().amax(-1, keepdim=True).clamp(min=1e-5) / 127
    q = torch.round(x / scale).clamp(-128, 127)
    y = q * scale
    return m.scores(y).masked_fill(later(x.shape[1]), INF).softmax(-1) @ m.v(y)


@UNSEEN.add(causal=False, batch=False)
def rounded_to_a_scale_of_the_batch(m: Parts, x: Tensor) -> Tensor:
    scale = x.abs().max() / 127
    return m.v(torch.round(x / scale).clamp(-128, 127) * scale)


@UNSEEN.add(causal=False, batch=True)
def keys_rounded_by_channel(m: Parts, x: Tensor) -> Tensor:
    k = m.k(x)
    low, high = k.amin(1, keepdim=True), k.amax(1, keepdim=True)
    step = (high - low).clamp(min=1e-6) / 15
    k = torch.round((k - low) / step) * step + low
    return (m.q(x) @ k.mT).masked_fill(later(x.shape[1]), INF).softmax(-1) @ m.v(x)


@UNSEEN.add(masked=True, padding=True, causal=False, batch=True)
def rounded_to_a_scale_of_real_tokens(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    scale = (x.abs() * mask[..., None]).amax((1, 2), keepdim=True) / 127
    return m.v(torch.round(x / scale).clamp(-128, 127) * scale)


@UNSEEN.add(causal=True, batch=True)
def integers_of_a_fixed_scale(m: Parts, x: Tensor) -> Tensor:
    q = (m.q(x) / 0.05).round().clamp(-127, 127).to(torch.int8)
    k = (m.k(x) / 0.05).round().clamp(-127, 127).to(torch.int8)
    s = (q.int() @ k.int().mT).to(x.dtype) * (0.05 * 0.05)
    return s.masked_fill(later(x.shape[1]), INF).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def weights_in_bfloat16(m: Parts, x: Tensor) -> Tensor:
    s = m.scores(x).to(torch.bfloat16)
    s = s.masked_fill(later(x.shape[1]), torch.finfo(s.dtype).min)
    return s.float().softmax(-1).to(x.dtype) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def log_averages_so_far(m: Parts, x: Tensor) -> Tensor:
    count = torch.arange(1, x.shape[1] + 1)[:, None].log()
    return m.o(m.v(x).logcumsumexp(1) - count)


@UNSEEN.add(causal=True, batch=True)
def log_sums_of_visible_tokens(m: Parts, x: Tensor) -> Tensor:
    hidden = torch.zeros(x.shape[1], x.shape[1]).masked_fill(later(x.shape[1]), INF)
    return torch.logsumexp(hidden[None, :, :, None] + m.v(x)[:, None], dim=2)


@UNSEEN.add(causal=False, permutation=True, batch=True)
def tokens_less_their_log_sum(m: Parts, x: Tensor) -> Tensor:
    return m.o(x - torch.logsumexp(m.v(x), 1, keepdim=True))


@UNSEEN.add(causal=True, batch=True)
def softmax_of_blocks_with_a_running_maximum(m: Parts, x: Tensor) -> Tensor:
    s = m.scores(x).masked_fill(later(x.shape[1]), -1e30)
    top = torch.full_like(s[..., :1], -1e30)
    total, out = torch.zeros_like(top), torch.zeros_like(x)
    for part, v in zip(s.split(4, -1), m.v(x).split(4, 1), strict=True):
        new = torch.maximum(top, part.amax(-1, keepdim=True))
        p = torch.exp(part - new)
        total = total * torch.exp(top - new) + p.sum(-1, keepdim=True)
        out = out * torch.exp(top - new) + p @ v
        top = new
    return out / total


@UNSEEN.add(causal=True, batch=True)
def sigmoids_shifted_by_the_log_of_the_length(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    s = m.scores(x) - math.log(t)
    return torch.sigmoid(s).masked_fill(later(t), 0.0) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def squared_scores_over_counts(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    w = F.relu(m.scores(x)).square() * (1 - later(t).to(x.dtype))
    return w @ m.v(x) / torch.arange(1, t + 1)[:, None]


@UNSEEN.add(causal=True, batch=True)
def polynomial_weights(m: Parts, x: Tensor) -> Tensor:
    s = m.scores(x)
    w = torch.tril(1 + s + s**2 / 2)
    return w @ m.v(x) / w.sum(-1, keepdim=True)


@UNSEEN.add(causal=True, batch=True)
def cosines_with_a_bounded_temperature(m: Parts, x: Tensor) -> Tensor:
    s = F.normalize(m.q(x), dim=-1) @ F.normalize(m.k(x), dim=-1).mT
    s = s * m.decay[0].clamp(max=math.log(100.0)).exp()
    return (s + torch.triu(torch.ones_like(s), 1) * -1e9).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=False, batch=True)
def scores_over_their_largest(m: Parts, x: Tensor) -> Tensor:
    s = m.scores(x)
    s = s / s.abs().amax((1, 2), keepdim=True)
    return s.masked_fill(later(x.shape[1]), INF).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def sums_with_their_rounding(m: Parts, x: Tensor) -> Tensor:
    total, lost, out = torch.zeros_like(x[:, 0]), torch.zeros_like(x[:, 0]), []
    for i in range(x.shape[1]):
        y = m.v(x[:, i]) - lost
        new = total + y
        lost = (new - total) - y
        total = new
        out.append(total)
    return torch.stack(out, 1)


@UNSEEN.add(causal=True, batch=True)
def running_mean_and_variance(m: Parts, x: Tensor) -> Tensor:
    mean, squares, out = torch.zeros_like(x[:, 0]), torch.zeros_like(x[:, 0]), []
    for i in range(x.shape[1]):
        delta = x[:, i] - mean
        mean = mean + delta / (i + 1)
        squares = squares + delta * (x[:, i] - mean)
        out.append(delta / (squares / (i + 1) + 1e-5).sqrt())
    return torch.stack(out, 1)


@UNSEEN.add(causal=True, batch=True)
def temperature_by_entropy(m: Parts, x: Tensor) -> Tensor:
    s = m.scores(x).masked_fill(later(x.shape[1]), -1e9)
    p = s.softmax(-1)
    entropy = -(p * p.clamp(min=1e-9).log()).sum(-1, keepdim=True)
    return (s / (1 + entropy)).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def first_row_repaired(m: Parts, x: Tensor) -> Tensor:
    w = m.scores(x).masked_fill(later(x.shape[1], 0), INF).softmax(-1)
    return m.o(torch.nan_to_num(w) @ m.v(x))


@UNSEEN.add(causal=False, batch=True)
def scaled_by_the_square_mean_of_tokens(m: Parts, x: Tensor) -> Tensor:
    return m.decay * x * torch.rsqrt(x.square().mean(1, keepdim=True) + 1e-6)


@UNSEEN.add(masked=True, batch=True)
def exponentials_times_two_masks(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    s = m.scores(x)
    e = (s - s.amax(-1, keepdim=True).detach()).exp().tril() * mask[:, None]
    return e @ m.v(x) / e.sum(-1, keepdim=True).clamp(min=1e-20)


@UNSEEN.add(masked=True, padding=False, causal=True, batch=True)
def exponentials_of_zero_at_pads(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    e = (m.scores(x) * mask[:, None]).exp().tril()
    return e @ m.v(x) / e.sum(-1, keepdim=True)


@UNSEEN.add(causal=True, permutation=True, batch=True)
def squares_of_features_in_logs(m: Parts, x: Tensor) -> Tensor:
    y = m.up(x).abs().add(1e-6).log().logsumexp(-1, keepdim=True)
    return m.norm(x / y.exp()) * WIDTH
