"""Rounding with scales of tokens, experts, and products of features: traces, covariances, repeated labels."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.unseen.claims import WIDTH, Corpus, Parts, later

UNSEEN = Corpus()
INF = float("-inf")


def _round(x: Tensor, scale: Tensor | float) -> Tensor:
    return (x / scale).round().clamp(-127, 127) * scale


@UNSEEN.add(causal=True, permutation=True, batch=True)
def fake_quantize_by_channel(m: Parts, x: Tensor) -> Tensor:
    zero = torch.zeros(WIDTH, dtype=torch.int32)
    y = torch.fake_quantize_per_channel_affine(x.float(), m.scale.float(), zero, 2, -128, 127)
    return m.o(y.to(x.dtype))


@UNSEEN.add(causal=False, permutation=True, batch=False)
def fake_quantize_by_the_largest_of_the_batch(m: Parts, x: Tensor) -> Tensor:
    scale = (x.abs().amax() / 7).reshape(1).float()
    zero = torch.zeros(1, dtype=torch.int32)
    return m.o(torch.fake_quantize_per_tensor_affine(x.float(), scale, zero, -8, 7).to(x.dtype))


@UNSEEN.add(causal=True, permutation=True, batch=True)
def range_of_each_token_with_a_zero_point(m: Parts, x: Tensor) -> Tensor:
    low, high = x.aminmax(dim=-1, keepdim=True)
    scale = (high - low).clamp(min=1e-5) / 15
    code = ((x - low) / scale).round().clamp(0, 15)
    return m.o(code * scale + low)


@UNSEEN.add(causal=False, permutation=True, batch=True)
def range_of_each_row_with_a_zero_point(m: Parts, x: Tensor) -> Tensor:
    low, high = x.amin((1, 2), keepdim=True), x.amax((1, 2), keepdim=True)
    scale = (high - low).clamp(min=1e-5) / 15
    zero = (-low / scale).round()
    return m.o(((x / scale).round() + zero).clamp(0, 15).sub(zero) * scale)


@UNSEEN.add(causal=True, permutation=True, batch=False)
def scale_along_the_rows_by_mistake(m: Parts, x: Tensor) -> Tensor:
    return m.o(_round(x, x.abs().amax(0, keepdim=True).clamp(min=1e-5) / 7))


@UNSEEN.add(causal=True, permutation=True, batch=True)
def clipped_at_three_deviations_of_the_token(m: Parts, x: Tensor) -> Tensor:
    bound = 3 * x.std(-1, keepdim=True) + 1e-5
    return m.o(_round(torch.maximum(torch.minimum(x, bound), -bound), bound / 127))


@UNSEEN.add(causal=False, permutation=True, batch=True)
def clipped_at_a_percentile_of_the_row(m: Parts, x: Tensor) -> Tensor:
    bound = x.abs().flatten(1).quantile(0.9, dim=1)[:, None, None] + 1e-5
    return m.o(x.clamp(-bound, bound))


@UNSEEN.add(causal=True, permutation=True, batch=True)
def rotated_by_hadamard_before_rounding(m: Parts, x: Tensor) -> Tensor:
    two = torch.tensor([[1.0, 1.0], [1.0, -1.0]], dtype=x.dtype) / math.sqrt(2)
    turn = torch.kron(torch.kron(two, two), two)
    y = x @ turn
    return m.o(_round(y, y.abs().amax(-1, keepdim=True).clamp(min=1e-5) / 7) @ turn.T)


@UNSEEN.add(causal=True, permutation=False, batch=True)
def scale_averaged_over_the_tokens_so_far(m: Parts, x: Tensor) -> Tensor:
    scale, out = x.new_ones(x.shape[0], 1), []
    for t in range(x.shape[1]):
        scale = 0.9 * scale + 0.1 * x[:, t].abs().amax(-1, keepdim=True)
        out.append(_round(x[:, t], scale / 7))
    return m.o(torch.stack(out, 1))


@UNSEEN.add(masked=True, padding=True, batch=False)
def scale_of_the_real_tokens_of_the_batch(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    largest = x.abs().masked_fill(mask[..., None] == 0, 0.0).max()
    return m.o(_round(x, largest.clamp(min=1e-5) / 7))


@UNSEEN.add(masked=True, padding=False, batch=True)
def scale_of_each_row_before_the_mask(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    y = _round(x, x.abs().amax((1, 2), keepdim=True).clamp(min=1e-5) / 7)
    return m.o(y * mask[..., None])


@UNSEEN.add(causal=True, batch=True)
def weights_of_eight_bits(m: Parts, x: Tensor) -> Tensor:
    w = m.scores(x).masked_fill(later(x.shape[1]), INF).softmax(-1)
    w = (w * 255).round() / 255
    return w @ m.v(x) / w.sum(-1, keepdim=True).clamp(min=1 / 255)


@UNSEEN.add(causal=True, batch=True, permutation=False)
def errors_of_rounding_carried_to_the_next_token(m: Parts, x: Tensor) -> Tensor:
    h, error, out = m.v(x), torch.zeros_like(x[:, 0]), []
    for t in range(x.shape[1]):
        want = h[:, t] + error
        out.append(_round(want, 0.25))
        error = want - out[-1]
    return torch.stack(out, 1)


@UNSEEN.add(causal=True, permutation=True, batch=True)
def codes_of_two_halves_of_the_features(m: Parts, x: Tensor) -> Tensor:
    books = m.table.weight[:16].view(2, 16, 4)
    parts = x.unflatten(-1, (2, 4))
    far = (parts[:, :, :, None] - books).square().sum(-1)
    code = F.one_hot(far.argmin(-1), 16).to(x.dtype)
    return m.o(torch.einsum("btgc,gcd->btgd", code, books).flatten(2))


@UNSEEN.add(causal=False, batch=False, permutation=True)
def codebook_moved_to_its_tokens(m: Parts, x: Tensor) -> Tensor:
    code = F.one_hot((x @ m.latents.T).argmax(-1), 3).to(x.dtype)
    total = torch.einsum("btc,btd->cd", code, x)
    book = 0.9 * m.latents + 0.1 * total / code.sum((0, 1)).clamp(min=1)[:, None]
    return code @ book


@UNSEEN.add(causal=True, batch=True, permutation=False)
def experts_by_place(m: Parts, x: Tensor) -> Tensor:
    weight = torch.stack([e.weight for e in m.experts])
    return torch.einsum("btd,tod->bto", x, weight[torch.arange(x.shape[1]) % 4])


@UNSEEN.add(causal=True, batch=True, permutation=True)
def experts_by_the_signs_of_two_features(m: Parts, x: Tensor) -> Tensor:
    index = ((x[..., :2] > 0).long() * torch.tensor([1, 2])).sum(-1)
    every = torch.stack([e(x) for e in m.experts], 2)
    return every.gather(2, index[..., None, None].expand(-1, -1, 1, WIDTH)).squeeze(2)


@UNSEEN.add(causal=False, batch=True, permutation=True)
def gates_normalized_along_the_tokens(m: Parts, x: Tensor) -> Tensor:
    gates = m.router(x).softmax(1)
    return sum(gates[..., i, None] * e(x) for i, e in enumerate(m.experts))


@UNSEEN.add(causal=True, batch=True, permutation=True)
def second_expert_above_a_share_of_the_first(m: Parts, x: Tensor) -> Tensor:
    best, index = m.router(x).softmax(-1).topk(2, -1)
    best = torch.where(best > 0.5 * best[..., :1], best, 0.0)
    gates = torch.zeros_like(m.router(x)).scatter(-1, index, best / best.sum(-1, keepdim=True))
    return torch.einsum("bte,bteo->bto", gates, torch.stack([e(x) for e in m.experts], 2))


@UNSEEN.add(causal=True, batch=True)
def experts_merged_by_the_gates_so_far(m: Parts, x: Tensor) -> Tensor:
    count = torch.arange(1, x.shape[1] + 1)[:, None]
    gates = m.router(x).softmax(-1).cumsum(1) / count
    weight = torch.einsum("bte,eoi->btoi", gates, torch.stack([e.weight for e in m.experts]))
    return torch.einsum("btoi,bti->bto", weight, x)


@UNSEEN.add(causal=False, batch=True, permutation=True)
def experts_merged_by_the_mean_gates_of_the_row(m: Parts, x: Tensor) -> Tensor:
    gates = m.router(x).softmax(-1).mean(1)
    weight = torch.einsum("be,eoi->boi", gates, torch.stack([e.weight for e in m.experts]))
    return x @ weight.mT


@UNSEEN.add(causal=True, batch=True)
def tokens_sorted_by_expert_and_put_back(m: Parts, x: Tensor) -> Tensor:
    flat = x.flatten(0, 1)
    kind = m.router(flat).argmax(-1)
    order = kind.argsort(stable=True)
    weight = torch.stack([e.weight for e in m.experts])[kind[order]]
    return torch.einsum("ni,noi->no", flat[order], weight)[order.argsort()].view_as(x)


@UNSEEN.add(causal=False, batch=False)
def tokens_left_in_the_order_of_their_experts(m: Parts, x: Tensor) -> Tensor:
    flat = x.flatten(0, 1)
    kind = m.router(flat).argmax(-1)
    return m.o(F.relu(m.v(flat[kind.argsort(stable=True)]))).view_as(x)


@UNSEEN.add(causal=True, permutation=True, batch=True)
def trace_of_the_product_of_two_maps(m: Parts, x: Tensor) -> Tensor:
    outer = torch.einsum("bti,btj->btij", m.q(x), m.k(x))
    return m.v(x) * outer.diagonal(dim1=-2, dim2=-1).sum(-1, keepdim=True).tanh()


@UNSEEN.add(causal=True, permutation=True, batch=True)
def own_scores_as_gates(m: Parts, x: Tensor) -> Tensor:
    return m.v(x) * torch.einsum("bii->bi", m.scores(x)).sigmoid()[..., None]


@UNSEEN.add(causal=True, batch=True)
def own_rows_of_the_scores_of_all_pairs_of_rows(m: Parts, x: Tensor) -> Tensor:
    s = torch.einsum("btd,csd->btcs", m.q(x), m.k(x))
    own = torch.einsum("btbs->bts", s)
    return own.masked_fill(later(x.shape[1]), INF).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=False, permutation=True, batch=True)
def scores_in_units_of_their_trace(m: Parts, x: Tensor) -> Tensor:
    s = x @ x.mT
    s = s / (torch.einsum("bii->b", s)[:, None, None] + 1e-6)
    return s @ m.v(x)


@UNSEEN.add(masked=True, padding=True, permutation=True, batch=True)
def covariance_of_real_tokens(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    real = mask[..., None].to(x.dtype)
    n = real.sum(1, keepdim=True)
    centred = (x - (x * real).sum(1, keepdim=True) / n) * real
    return (centred.mT @ centred / (n - 1).clamp(min=1)).flatten(1)


@UNSEEN.add(masked=True, padding=True, permutation=True)
def bilinear_pool_with_signed_roots(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    h = m.v(x) * mask[..., None]
    z = torch.einsum("bti,btj->bij", h, m.k(x)).flatten(1)
    return F.normalize(z.sign() * (z.abs() + 1e-6).sqrt(), dim=-1)


@UNSEEN.add(masked=True, padding=False, permutation=True)
def product_of_a_masked_and_an_unmasked_sum(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    return ((m.v(x) * mask[..., None]).sum(1)[:, :, None] * m.k(x).sum(1)[:, None]).flatten(1)


@UNSEEN.add(masked=True, padding=True, permutation=True, causal=False, batch=True)
def attention_between_features_of_real_tokens(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    real = mask[..., None]
    q, k = F.normalize(m.q(x) * real, dim=1), F.normalize(m.k(x) * real, dim=1)
    return m.o(m.v(x) @ (q.mT @ k).softmax(-1).mT)


@UNSEEN.add(masked=True, padding=False, permutation=True)
def attention_between_features_with_pads_in_the_length(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    q, k = F.normalize(m.q(x), dim=1) * mask[..., None], F.normalize(m.k(x), dim=1)
    return m.o(m.v(x) @ (q.mT @ k).softmax(-1).mT)


@UNSEEN.add(causal=True, batch=True, permutation=False)
def attention_between_features_so_far(m: Parts, x: Tensor) -> Tensor:
    s = torch.einsum("bti,btj->btij", m.q(x), m.k(x)).cumsum(1)
    s = s / torch.arange(1, x.shape[1] + 1).view(-1, 1, 1)
    return torch.einsum("btij,btj->bti", s.softmax(-1), m.v(x))


@UNSEEN.add(causal=True, batch=True)
def log_determinant_of_the_moments_so_far(m: Parts, x: Tensor) -> Tensor:
    h = m.v(x).tanh()
    moments = torch.einsum("bti,btj->btij", h, h).cumsum(1) + torch.eye(WIDTH)
    return x + torch.logdet(moments)[..., None]


@UNSEEN.add(masked=True, padding=True, permutation=True, causal=False)
def strongest_direction_of_real_tokens_removed(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    h = x * mask[..., None]
    u = m.decay.expand(x.shape[0], 1, -1)
    for _ in range(3):
        u = F.normalize(u @ h.mT @ h, dim=-1)
    return m.o(h - (h @ u.mT) * u)


@UNSEEN.add(causal=False, batch=False, permutation=True)
def mean_direction_of_the_batch_removed(m: Parts, x: Tensor) -> Tensor:
    u = F.normalize(x.flatten(0, 1).mean(0), dim=0)
    return m.o(x - (x @ u)[..., None] * u)


@UNSEEN.add(causal=False, permutation=True, batch=True)
def products_in_units_of_their_frobenius_norm(m: Parts, x: Tensor) -> Tensor:
    gram = m.k(x) @ m.k(x).mT
    return gram / (torch.linalg.matrix_norm(gram, keepdim=True) + 1e-6) @ m.v(x)
