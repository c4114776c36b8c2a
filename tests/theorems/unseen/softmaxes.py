"""Forms of softmax: maxima, sums of logs, temperatures and passes."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.unseen.claims import HEADS, WIDTH, Corpus, Parts, later

UNSEEN = Corpus()
INF = float("-inf")


def _hidden(m: Parts, x: Tensor) -> Tensor:
    return m.scores(x).masked_fill(later(x.shape[1]), INF)


@UNSEEN.add(causal=True, batch=True)
def largest_score_of_the_batch_subtracted(m: Parts, x: Tensor) -> Tensor:
    s = m.scores(x)
    e = (s - s.max()).exp().tril()
    return e / e.sum(-1, keepdim=True) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def log_softmax_of_all_then_masked_softmax(m: Parts, x: Tensor) -> Tensor:
    s = m.scores(x).log_softmax(-1)
    return s.masked_fill(later(x.shape[1]), INF).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=False, batch=True)
def log_softmax_of_all_then_masked_exponential(m: Parts, x: Tensor) -> Tensor:
    s = m.scores(x).log_softmax(-1)
    return s.masked_fill(later(x.shape[1]), INF).exp() @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def shares_of_all_keys_normalized_under_a_triangle(m: Parts, x: Tensor) -> Tensor:
    s = m.scores(x)
    share = torch.exp(s - s.logsumexp(-1, keepdim=True)).tril()
    return share @ m.v(x) / share.sum(-1, keepdim=True)


@UNSEEN.add(causal=True, batch=True)
def softmax_in_base_two(m: Parts, x: Tensor) -> Tensor:
    s = _hidden(m, x) * math.log2(math.e)
    p = torch.exp2(s - s.amax(-1, keepdim=True))
    return p @ m.v(x) / p.sum(-1, keepdim=True)


@UNSEEN.add(causal=True, batch=True)
def two_passes_over_blocks_of_keys(m: Parts, x: Tensor) -> Tensor:
    blocks = _hidden(m, x).split(4, -1)
    largest = torch.stack([s.amax(-1) for s in blocks]).amax(0)[..., None]
    total = sum((s - largest).exp().sum(-1, keepdim=True) for s in blocks)
    return sum((s - largest).exp() @ v for s, v in zip(blocks, m.v(x).split(4, 1), strict=True)) / total


@UNSEEN.add(causal=True, permutation=False)
def temperature_of_each_head_by_softplus(m: Parts, x: Tensor) -> Tensor:
    q, k, v = m.heads(x)
    s = q @ k.mT * F.softplus(m.decay[:HEADS])[:, None, None]
    return m.join((s + torch.full((x.shape[1],) * 2, INF).triu(1)).softmax(-1) @ v)


@UNSEEN.add(causal=True, batch=True)
def temperature_of_each_query(m: Parts, x: Tensor) -> Tensor:
    s = m.scores(x) / (0.5 + F.softplus(m.gate(x)[..., :1]))
    return s.masked_fill(later(x.shape[1]), INF).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=False, batch=True)
def temperature_of_the_mean_query(m: Parts, x: Tensor) -> Tensor:
    heat = m.q(x).mean(1, keepdim=True).norm(dim=-1, keepdim=True)
    return (_hidden(m, x) / (heat + 0.5)).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, permutation=False, batch=True)
def temperature_of_the_number_of_visible_keys(m: Parts, x: Tensor) -> Tensor:
    seen = ~later(x.shape[1])
    heat = torch.log1p(seen.sum(-1, keepdim=True).to(x.dtype))
    return torch.where(seen, m.scores(x) * heat, INF).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def scores_and_bias_capped_together(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    s = 3 * torch.tanh((m.scores(x) + m.square[:t, :t]) / 3)
    return s.masked_fill(later(t), torch.finfo(s.dtype).min).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=False, batch=True)
def weights_less_their_mean(m: Parts, x: Tensor) -> Tensor:
    w = _hidden(m, x).softmax(-1)
    return x + (w - w.mean(-1, keepdim=True)) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def weights_less_the_mean_of_visible_ones(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    w = _hidden(m, x).softmax(-1) - 1 / torch.arange(1, t + 1)[:, None]
    return x + w.tril() @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def scores_less_the_mean_of_visible_ones(m: Parts, x: Tensor) -> Tensor:
    s = m.scores(x).tril()
    centre = s.sum(-1, keepdim=True) / torch.arange(1, x.shape[1] + 1)[:, None]
    e = (s - centre).clamp(max=30).exp().tril()
    return e @ m.v(x) / e.sum(-1, keepdim=True)


@UNSEEN.add(causal=True, batch=True)
def one_in_the_denominator_with_a_maximum_of_all(m: Parts, x: Tensor) -> Tensor:
    s = m.scores(x)
    largest = s.amax(-1, keepdim=True).clamp(min=0)
    e = (s - largest).exp().tril()
    return e @ m.v(x) / ((-largest).exp() + e.sum(-1, keepdim=True))


@UNSEEN.add(causal=False, batch=True)
def one_added_after_a_maximum_of_all(m: Parts, x: Tensor) -> Tensor:
    s = m.scores(x)
    e = (s - s.amax(-1, keepdim=True)).exp().tril()
    return e @ m.v(x) / (1 + e.sum(-1, keepdim=True))


@UNSEEN.add(causal=True, batch=True)
def weights_less_a_tenth_rectified(m: Parts, x: Tensor) -> Tensor:
    w = F.relu(_hidden(m, x).softmax(-1) - 0.1)
    return w @ m.v(x) / (w.sum(-1, keepdim=True) + 1e-4)


@UNSEEN.add(causal=True, batch=True)
def even_and_odd_keys_joined_by_their_sums(m: Parts, x: Tensor) -> Tensor:
    parts = [(s, s.amax(-1, keepdim=True).clamp(min=-1e30)) for s in (_hidden(m, x)[..., i::2] for i in (0, 1))]
    largest = torch.maximum(parts[0][1], parts[1][1])
    y = total = 0.0
    for i, (s, top) in enumerate(parts):
        e, share = (s - top).exp(), (top - largest).exp()
        y, total = y + share * (e @ m.v(x)[:, i::2]), total + share * e.sum(-1, keepdim=True)
    return y / total


@UNSEEN.add(causal=True, batch=True)
def near_and_far_attention_merged(m: Parts, x: Tensor) -> Tensor:
    s, v, i = m.scores(x), m.v(x), torch.arange(x.shape[1])
    d = i[:, None] - i
    near, far = s.masked_fill((d < 0) | (d > 2), -1e9), s.masked_fill(d <= 2, -1e9)
    share = torch.sigmoid(near.logsumexp(-1) - far.logsumexp(-1))[..., None]
    return share * (near.softmax(-1) @ v) + (1 - share) * (far.softmax(-1) @ v)


@UNSEEN.add(causal=True, batch=True)
def softplus_of_scores_over_their_sum(m: Parts, x: Tensor) -> Tensor:
    w = F.softplus(m.scores(x)).tril()
    return (w / w.sum(-1, keepdim=True)) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def weights_sharpened_before_the_mask(m: Parts, x: Tensor) -> Tensor:
    w = m.scores(x).softmax(-1).square().tril()
    return w / w.sum(-1, keepdim=True) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def shares_of_heads_then_of_keys(m: Parts, x: Tensor) -> Tensor:
    q, k, v = m.heads(x)
    s = (q @ k.mT).softmax(1).masked_fill(later(x.shape[1]), INF)
    return m.join(s.softmax(-1) @ v)


@UNSEEN.add(causal=False, batch=True)
def softmax_of_masked_weights(m: Parts, x: Tensor) -> Tensor:
    return _hidden(m, x).softmax(-1).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def geometric_mean_of_visible_values(m: Parts, x: Tensor) -> Tensor:
    w = F.dropout(_hidden(m, x).softmax(-1), 0.1, m.training)
    return torch.exp(w @ F.softplus(m.v(x)).log())


@UNSEEN.add(causal=True, batch=True)
def one_pass_over_keys(m: Parts, x: Tensor) -> Tensor:
    s, v = _hidden(m, x), m.v(x)
    top, total, y = torch.full_like(s[..., :1], -1e30), torch.zeros_like(s[..., :1]), torch.zeros_like(v)
    for j in range(x.shape[1]):
        new = torch.maximum(top, s[..., j : j + 1])
        old, e = (top - new).exp(), (s[..., j : j + 1] - new).exp()
        total, y, top = old * total + e, old * y + e * v[:, j : j + 1], new
    return y / total


@UNSEEN.add(causal=True, batch=True)
def reciprocals_of_sums_of_differences(m: Parts, x: Tensor) -> Tensor:
    s, seen = m.scores(x), ~later(x.shape[1])
    ratio = (s[..., None, :] - s[..., None]).clamp(-30, 30).exp()
    w = 1 / (ratio * seen[:, None]).sum(-1)
    return w.tril() @ m.v(x)


@UNSEEN.add(masked=True, padding=True, batch=True)
def largest_of_all_keys_then_pads_zeroed(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    s = m.scores(x)
    e = torch.exp(s - s.max(-1, keepdim=True).values.detach()) * mask[:, None]
    return e @ m.v(x) / e.sum(-1, keepdim=True)


@UNSEEN.add(masked=True, padding=True, batch=True)
def logs_of_the_mask_added(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    scale = mask.sum(-1).sqrt()[:, None, None] / math.sqrt(WIDTH)
    return (m.scores(x) * scale + mask[:, None].log()).softmax(-1) @ m.v(x)


@UNSEEN.add(masked=True, padding=False, batch=True)
def logs_of_the_mask_and_a_small_number_added(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    return (m.scores(x) + (mask[:, None] + 1e-4).log()).softmax(-1) @ m.v(x)
