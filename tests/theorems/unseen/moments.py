"""Pooling and norms over tokens, with and without masks."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.unseen.claims import WIDTH, Corpus, Parts

UNSEEN = Corpus()
INF = float("inf")


def _mean(x: Tensor, mask: Tensor) -> Tensor:
    """Mean of the real tokens [row, 1, feature]."""
    real = mask[..., None].to(x.dtype)
    return (x * real).sum(1, keepdim=True) / real.sum(1, keepdim=True).clamp(min=1)


@UNSEEN.add(masked=True, padding=True, permutation=True, batch=True)
def upper_quantile_of_real_tokens(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    return m.o(m.v(x).masked_fill(mask[..., None] == 0, float("nan")).nanquantile(0.9, dim=1))


@UNSEEN.add(masked=True, padding=False, permutation=True)
def log_mean_of_exponentials_over_the_real_count(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    return m.o(m.v(x).tanh().logsumexp(1) - mask.sum(1, keepdim=True).to(x.dtype).log())


@UNSEEN.add(masked=True, padding=True, permutation=True)
def skewness_of_real_tokens(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    centred = x - _mean(x, mask)
    variance = _mean(centred**2, mask)
    return (_mean(centred**3, mask) / (variance + 1e-3) ** 1.5).squeeze(1)


@UNSEEN.add(masked=True, padding=True, permutation=True, batch=True)
def range_of_real_tokens(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    real = mask[..., None] > 0
    return m.o(torch.where(real, x, -INF).amax(1) - torch.where(real, x, INF).amin(1))


@UNSEEN.add(masked=True, padding=True, permutation=True, batch=True)
def mean_token_asks_real_tokens(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    s = m.q(_mean(x, mask)) @ m.k(x).mT
    return (s.masked_fill(mask[:, None] == 0, -1e9).softmax(-1) @ m.v(x)).squeeze(1)


@UNSEEN.add(masked=True, padding=False, permutation=True)
def mean_of_all_tokens_asks_real_tokens(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    s = m.q(x.mean(1, keepdim=True)) @ m.k(x).mT
    return (s.masked_fill(mask[:, None] == 0, -1e9).softmax(-1) @ m.v(x)).squeeze(1)


@UNSEEN.add(masked=True, padding=True, permutation=True, batch=True)
def votes_routed_by_agreement(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    votes = m.v(x)
    logits = votes.new_zeros(mask.shape)
    for _ in range(3):
        w = logits.masked_fill(mask == 0, -INF).softmax(1)
        capsule = (w[..., None] * votes).sum(1)
        logits = logits + torch.einsum("btd,bd->bt", votes, capsule)
    return capsule


@UNSEEN.add(masked=True, padding=False, permutation=True, batch=True)
def votes_masked_in_the_first_round_only(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    votes = m.v(x)
    logits = (1.0 - mask.to(x.dtype)) * -10.0
    for _ in range(3):
        capsule = (logits.softmax(1)[..., None] * votes).sum(1)
        logits = torch.einsum("btd,bd->bt", votes, capsule)
    return capsule


@UNSEEN.add(masked=True, padding=True, permutation=True)
def geometric_mean_of_positive_parts(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    positive = F.softplus(m.v(x))
    positive = torch.where(mask[..., None] > 0, positive, 1.0)
    return (positive.log().sum(1) / mask.sum(1, keepdim=True).clamp(min=1)).exp()


@UNSEEN.add(masked=True, padding=True, permutation=False, batch=True)
def weights_that_halve_away_from_the_last_real_token(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    age = (mask.flip(1).cumsum(1).flip(1) - 1).clamp(min=0)
    w = mask * 0.5 ** age.to(x.dtype)
    return m.o((w[..., None] * x).sum(1) / w.sum(1, keepdim=True).clamp(min=1e-9))


@UNSEEN.add(masked=True, padding=False, permutation=False)
def weights_that_halve_away_from_the_end_of_the_row(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    w = 0.5 ** torch.arange(x.shape[1] - 1, -1, -1).to(x.dtype)
    return m.o((w[:, None] * x).sum(1) / (w * mask).sum(1, keepdim=True).clamp(min=1e-9))


@UNSEEN.add(masked=True, padding=True, permutation=True, causal=False)
def groups_of_features_over_real_tokens(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    g = x.unflatten(-1, (2, -1))
    real = mask[:, :, None, None].to(x.dtype)
    n = real.sum((1, 3), keepdim=True) * g.shape[-1]
    mean = (g * real).sum((1, 3), keepdim=True) / n
    variance = ((g - mean) ** 2 * real).sum((1, 3), keepdim=True) / n
    return m.o(((g - mean) * (variance + 1e-5).rsqrt()).flatten(2))


@UNSEEN.add(masked=True, padding=True, permutation=True)
def whitened_by_the_covariance_of_real_tokens(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    centred = (x - _mean(x, mask)) * mask[..., None]
    cov = centred.mT @ centred / mask.sum(1).clamp(min=1)[:, None, None]
    root = torch.linalg.cholesky(cov + 0.1 * torch.eye(WIDTH))
    return torch.linalg.solve_triangular(root, centred.mT, upper=False).mT


@UNSEEN.add(permutation=True, batch=False)
def whitened_by_the_covariance_of_the_batch(m: Parts, x: Tensor) -> Tensor:
    flat = x.flatten(0, 1)
    centred = flat - flat.mean(0)
    cov = centred.T @ centred / flat.shape[0] + 0.1 * torch.eye(WIDTH)
    return torch.linalg.solve_triangular(torch.linalg.cholesky(cov), centred.T, upper=False).T.view_as(x)


@UNSEEN.add(masked=True, padding=True, permutation=True, batch=True)
def contrast_to_similar_real_tokens(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    near = (x @ x.mT / WIDTH).masked_fill(mask[:, None] == 0, -1e4).softmax(-1)
    return m.norm(x - 0.5 * near @ x)


@UNSEEN.add(masked=True, padding=True, permutation=True)
def pairs_of_real_tokens_kept_apart(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    centred = m.v(x) - _mean(m.v(x), mask)
    size = _mean(centred.square().sum(-1, keepdim=True), mask)
    return centred / (size + 1e-6).sqrt()


@UNSEEN.add(masked=True, padding=False, permutation=True)
def pairs_scaled_by_all_tokens(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    centred = m.v(x) - _mean(m.v(x), mask)
    size = centred.square().sum(-1, keepdim=True).mean(1, keepdim=True)
    return centred / (size + 1e-6).sqrt()


@UNSEEN.add(masked=True, padding=True, permutation=True)
def soft_histogram_of_real_tokens(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    bins = torch.linspace(-2, 2, 5).to(x.dtype)
    near = torch.exp(-4 * (x[..., None] - bins) ** 2)
    return (near * mask[:, :, None, None]).sum(1).flatten(1)


@UNSEEN.add(masked=True, padding=True, permutation=True, batch=True)
def second_moments_around_centres(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    near = torch.softmax(x @ m.latents.T, -1) * mask[..., None]
    moved = (x[:, :, None] - m.latents) ** 2 - 1
    return F.normalize(torch.einsum("btc,btcd->bcd", near, moved), dim=-1).flatten(1)


@UNSEEN.add(masked=True, padding=True, permutation=False, batch=True)
def thirds_of_the_real_tokens_pooled(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    third = 3 * (mask.cumsum(1) - 1).clamp(min=0) // mask.sum(1, keepdim=True).clamp(min=1)
    member = F.one_hot(third, 3).to(x.dtype) * mask[..., None]
    return (member.mT @ x / member.sum(1).clamp(min=1)[..., None]).flatten(1)


@UNSEEN.add(masked=True, padding=True, permutation=True)
def sorted_real_values_weighted_by_rank(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    values = x.masked_fill(mask[..., None] == 0, -INF).sort(1, descending=True).values
    rank = torch.arange(x.shape[1])
    kept = (rank < mask.sum(1, keepdim=True))[..., None]
    return (values.masked_fill(~kept, 0.0) * 0.7 ** rank[:, None].to(x.dtype)).sum(1)


@UNSEEN.add(masked=True, padding=True, permutation=True, batch=True)
def mean_without_the_extremes(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    pad = mask[..., None] == 0
    total = x.masked_fill(pad, 0.0).sum(1)
    ends = x.masked_fill(pad, -INF).amax(1) + x.masked_fill(pad, INF).amin(1)
    return m.o((total - ends) / (mask.sum(1, keepdim=True) - 2).clamp(min=1))


@UNSEEN.add(masked=True, padding=True, permutation=True, causal=False)
def tokens_clamped_to_two_deviations(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    mean = _mean(x, mask)
    spread = 2 * (_mean((x - mean) ** 2, mask) + 1e-6).sqrt()
    return m.o(torch.minimum(torch.maximum(x, mean - spread), mean + spread))


@UNSEEN.add(masked=True, padding=True, permutation=True)
def welford_mean_of_real_tokens(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    mean, count = torch.zeros_like(x[:, 0]), torch.zeros_like(x[:, 0, :1])
    for t in range(x.shape[1]):
        real = mask[:, t : t + 1].to(x.dtype)
        count = count + real
        mean = mean + real * (x[:, t] - mean) / count.clamp(min=1)
    return m.o(mean)


@UNSEEN.add(causal=False, permutation=True, batch=True)
def unit_length_along_the_tokens(m: Parts, x: Tensor) -> Tensor:
    return m.o(F.normalize(m.v(x), dim=1))


@UNSEEN.add(masked=True, padding=True, batch=False, causal=True)
def centred_by_the_real_tokens_of_other_rows(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    real = mask[..., None].to(x.dtype)
    return m.o(x - (x * real).sum(0) / real.sum(0).clamp(min=1))
