"""Pooling, and statistics of tokens."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.unseen.claims import Corpus, Parts

UNSEEN = Corpus()
INF = float("-inf")


@UNSEEN.add(masked=True, padding=True, permutation=True, batch=True)
def mean_of_real_tokens(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    w = mask.unsqueeze(-1).to(x.dtype)
    return (m.v(x) * w).sum(1) / w.sum(1).clamp(min=1e-9)


@UNSEEN.add(masked=True, padding=False, batch=True)
def mean_of_all_tokens(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    return torch.where(mask.any(1, keepdim=True), m.v(x).mean(1), 0.0)


@UNSEEN.add(masked=True, padding=True, permutation=True, batch=True)
def largest_of_real_tokens(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    return m.v(x).masked_fill(mask[..., None] == 0, -1e9).max(dim=1).values


@UNSEEN.add(masked=True, padding=True, batch=True)
def largest_of_tokens_times_mask(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    return (m.v(x) * mask[..., None]).amax(1)


@UNSEEN.add(masked=True, padding=True, permutation=True, batch=True)
def weights_of_one_query(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    s = m.k(x) @ m.latents[0]
    w = s.masked_fill(~mask.bool(), INF).softmax(1)
    return torch.einsum("bt,btd->bd", w, m.v(x))


@UNSEEN.add(masked=True, padding=False, batch=True)
def weights_masked_after_softmax(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    w = (m.k(x) @ m.latents[0]).softmax(1) * mask
    return torch.einsum("bt,btd->bd", w, m.v(x))


@UNSEEN.add(permutation=False, batch=True)
def first_token(m: Parts, x: Tensor) -> Tensor:
    return torch.tanh(m.o(x[:, 0]))


@UNSEEN.add(causal=True, batch=True)
def mean_so_far(m: Parts, x: Tensor) -> Tensor:
    count = torch.arange(1, x.shape[1] + 1, dtype=x.dtype)[None, :, None]
    return m.v(x).cumsum(1) / count


@UNSEEN.add(causal=False, batch=True)
def mean_of_the_rest(m: Parts, x: Tensor) -> Tensor:
    return m.v(x).flip(1).cumsum(1).flip(1)


@UNSEEN.add(causal=True, batch=True)
def average_of_three_before(m: Parts, x: Tensor) -> Tensor:
    y = F.pad(m.v(x).transpose(1, 2), (2, 0))
    return F.avg_pool1d(y, 3, stride=1).transpose(1, 2)


@UNSEEN.add(causal=False, batch=True)
def average_of_three_around(m: Parts, x: Tensor) -> Tensor:
    return F.avg_pool1d(m.v(x).transpose(1, 2), 3, stride=1, padding=1).transpose(1, 2)


@UNSEEN.add(causal=True, batch=True)
def sums_of_earlier_segments(m: Parts, x: Tensor) -> Tensor:
    b, t, d = x.shape
    segment = torch.arange(t) // 2
    sums = x.new_zeros(b, t // 2 + 1, d).index_add_(1, segment, m.v(x))
    sums = torch.cat([sums.new_zeros(b, 1, d), sums[:, :-1]], 1)
    return x + sums.index_select(1, segment)


@UNSEEN.add(causal=False, batch=True)
def sums_of_own_segment(m: Parts, x: Tensor) -> Tensor:
    b, t, d = x.shape
    segment = torch.arange(t) // 2
    sums = x.new_zeros(b, t // 2 + 1, d).index_add_(1, segment, m.v(x))
    return x + sums.index_select(1, segment)


@UNSEEN.add(permutation=True, batch=True)
def scatter_add_of_all(m: Parts, x: Tensor) -> Tensor:
    place = torch.zeros(x.shape, dtype=torch.long)
    return torch.zeros(x.shape[0], 1, x.shape[2], dtype=x.dtype).scatter_add(1, place, m.v(x))[:, 0]


@UNSEEN.add(permutation=True, batch=True)
def totals_of_clusters(m: Parts, x: Tensor) -> Tensor:
    cluster = m.router(x).argmax(-1)
    place = cluster[..., None].expand_as(x)
    sums = torch.zeros(x.shape[0], 4, x.shape[2], dtype=x.dtype).scatter_add(1, place, m.v(x))
    return x + sums.gather(1, place)


@UNSEEN.add(permutation=True, batch=True)
def power_mean(m: Parts, x: Tensor) -> Tensor:
    return x.clamp(min=1e-6).pow(3).mean(1).pow(1 / 3)


@UNSEEN.add(permutation=True, batch=True)
def mean_and_deviation(m: Parts, x: Tensor) -> Tensor:
    y = m.v(x)
    return torch.cat([y.mean(1), y.std(1)], -1)


@UNSEEN.add(batch=False)
def deviation_over_rows_too(m: Parts, x: Tensor) -> Tensor:
    y = m.v(x)
    return (y - y.mean((0, 1))) / y.std((0, 1))


@UNSEEN.add(masked=True, padding=True, permutation=True, batch=True)
def soft_maximum(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    return torch.logsumexp(m.v(x) + torch.log(mask[..., None].to(x.dtype)), 1)


@UNSEEN.add(causal=True, batch=True)
def largest_so_far(m: Parts, x: Tensor) -> Tensor:
    return torch.cummax(m.v(x), 1).values


@UNSEEN.add(causal=False, permutation=True, batch=True)
def largest_added(m: Parts, x: Tensor) -> Tensor:
    return x + m.v(x).max(1, keepdim=True)[0]


@UNSEEN.add(permutation=True, batch=True)
def residuals_of_centres(m: Parts, x: Tensor) -> Tensor:
    a = (x @ m.latents.T).softmax(-1)
    v = torch.einsum("btk,btd->bkd", a, x) - a.sum(1)[..., None] * m.latents
    return F.normalize(v, dim=-1).flatten(1)


@UNSEEN.add(permutation=True, batch=True)
def three_largest(m: Parts, x: Tensor) -> Tensor:
    return m.v(x).topk(3, dim=1).values.mean(1)


@UNSEEN.add(permutation=True, batch=True)
def median_of_tokens(m: Parts, x: Tensor) -> Tensor:
    return m.v(x).median(1).values


@UNSEEN.add(permutation=True, batch=True)
def sorted_features_weighted(m: Parts, x: Tensor) -> Tensor:
    y = m.v(x).sort(1, descending=True).values
    return (y * m.square[: x.shape[1], :1]).sum(1)


@UNSEEN.add(permutation=False, batch=True)
def adaptive_average(m: Parts, x: Tensor) -> Tensor:
    return F.adaptive_avg_pool1d(m.v(x).mT, 3).flatten(1)


@UNSEEN.add(causal=False, permutation=True, batch=True)
def squeeze_and_excite(m: Parts, x: Tensor) -> Tensor:
    return x * m.down(F.relu(m.up(x.mean(1)))).sigmoid()[:, None]


@UNSEEN.add(causal=True, batch=True)
def squeeze_so_far(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    weights = torch.tril(torch.ones(t, t, dtype=x.dtype))
    weights = weights / weights.sum(-1, keepdim=True)
    return x * m.down(F.relu(m.up(weights @ x))).sigmoid()


@UNSEEN.add(causal=False, batch=True)
def group_norm_over_tokens(m: Parts, x: Tensor) -> Tensor:
    return F.group_norm(x.transpose(1, 2), 2).transpose(1, 2)


@UNSEEN.add(causal=False, batch=False)
def batch_statistics(m: Parts, x: Tensor) -> Tensor:
    return F.batch_norm(x.mT, None, None, training=True).mT


@UNSEEN.add(masked=True, padding=True, permutation=False, batch=True)
def mean_weighted_by_position(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    w = mask * torch.arange(1, x.shape[1] + 1)
    return torch.sum(x * w[..., None], 1) / w.sum(1, keepdim=True)


@UNSEEN.add(masked=True, padding=True, batch=True)
def norm_of_real_tokens(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    w = mask[..., None].to(x.dtype)
    n = w.sum(1, keepdim=True)
    mean = (x * w).sum(1, keepdim=True) / n
    var = ((x - mean).square() * w).sum(1, keepdim=True) / n
    return (x - mean) / (var + 1e-5).sqrt()


@UNSEEN.add(masked=True, padding=False, batch=True)
def instance_norm_with_pads(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    return F.instance_norm(x.mT).mT * mask[..., None]


@UNSEEN.add(causal=True, batch=True)
def mean_of_squares_so_far(m: Parts, x: Tensor) -> Tensor:
    count = torch.ones_like(x[..., :1]).cumsum(1)
    return x * torch.rsqrt(x.pow(2).sum(-1, keepdim=True).cumsum(1) / count + 1e-6)
