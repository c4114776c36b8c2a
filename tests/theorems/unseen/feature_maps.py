"""Linear attention by feature maps and running sums, and attention over channels."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.unseen.claims import WIDTH, Corpus, Parts, later

UNSEEN = Corpus()


def _running(q: Tensor, k: Tensor, v: Tensor, small: float = 1e-6) -> Tensor:
    state, total = (k[..., :, None] * v[..., None, :]).cumsum(1), k.cumsum(1)
    return (q[..., None, :] @ state).squeeze(-2) / ((q * total).sum(-1, keepdim=True) + small)


@UNSEEN.add(causal=True, batch=True)
def squared_rectified_features(m: Parts, x: Tensor) -> Tensor:
    return _running(F.relu(m.q(x)).square(), F.relu(m.k(x)).square(), m.v(x))


@UNSEEN.add(causal=True, batch=True)
def exponential_features_with_the_largest_of_the_row(m: Parts, x: Tensor) -> Tensor:
    k = m.k(x)
    return _running(m.q(x).softmax(-1), (k - k.amax((1, 2), keepdim=True)).exp(), m.v(x), 0.0)


@UNSEEN.add(causal=False, batch=True)
def exponential_features_with_the_largest_of_each_feature(m: Parts, x: Tensor) -> Tensor:
    k = m.k(x)
    return _running(m.q(x).softmax(-1), (k - k.amax(1, keepdim=True)).exp(), m.v(x), 0.0)


@UNSEEN.add(causal=False, permutation=True, batch=True)
def efficient_attention_of_two_softmaxes(m: Parts, x: Tensor) -> Tensor:
    context = torch.einsum("btd,bte->bde", m.k(x).softmax(1), m.v(x))
    return torch.einsum("btd,bde->bte", m.q(x).softmax(-1), context)


@UNSEEN.add(causal=True, batch=True)
def keys_softmaxed_over_tokens_so_far(m: Parts, x: Tensor) -> Tensor:
    k = m.k(x)
    k = (k - k.amax(1, keepdim=True)).exp()
    context = torch.einsum("btd,bte->btde", k, m.v(x)).cumsum(1) / k.cumsum(1)[..., None]
    return torch.einsum("btd,btde->bte", m.q(x).softmax(-1), context)


@UNSEEN.add(causal=True, batch=True)
def softmax_features_of_both_signs(m: Parts, x: Tensor) -> Tensor:
    q, k = (torch.cat([y.softmax(-1), (-y).softmax(-1)], -1) for y in (m.q(x), m.k(x)))
    return _running(q, k, m.v(x))


@UNSEEN.add(causal=True, batch=True)
def taylor_features_of_second_order(m: Parts, x: Tensor) -> Tensor:
    def features(y: Tensor) -> Tensor:
        pairs = torch.einsum("bti,btj->btij", y, y).flatten(2)
        return torch.cat([torch.ones_like(y[..., :1]), y, pairs / 2**0.5], -1)

    return _running(features(m.q(x) * WIDTH**-0.5), features(m.k(x)), m.v(x))


@UNSEEN.add(causal=True, batch=True)
def waves_of_fixed_projections(m: Parts, x: Tensor) -> Tensor:
    q, k = (F.linear(F.normalize(y, dim=-1), m.square[:WIDTH, :WIDTH]) for y in (m.q(x), m.k(x)))
    q, k = (torch.cat([y.sin(), y.cos()], -1) for y in (q, k))
    return m.norm(torch.tril(q @ k.mT) @ m.v(x))


@UNSEEN.add(causal=True, batch=True)
def linear_attention_in_chunks_of_four(m: Parts, x: Tensor) -> Tensor:
    b, t, d = x.shape
    q, k, v = (F.pad(y, (0, 0, 0, -t % 4)).view(b, -1, 4, d) for y in (m.q(x).sigmoid(), m.k(x).sigmoid(), m.v(x)))
    state = (k.mT @ v).cumsum(1)
    before = torch.cat([torch.zeros_like(state[:, :1]), state[:, :-1]], 1)
    return m.norm((q @ before + (q @ k.mT).tril() @ v).flatten(1, 2)[:, :t])


@UNSEEN.add(causal=False, batch=True)
def linear_attention_in_chunks_with_their_own_state(m: Parts, x: Tensor) -> Tensor:
    b, t, d = x.shape
    q, k, v = (F.pad(y, (0, 0, 0, -t % 4)).view(b, -1, 4, d) for y in (m.q(x).sigmoid(), m.k(x).sigmoid(), m.v(x)))
    return m.norm((q @ (k.mT @ v).cumsum(1)).flatten(1, 2)[:, :t])


@UNSEEN.add(causal=True, batch=True)
def products_of_features_under_a_triangle(m: Parts, x: Tensor) -> Tensor:
    w = (F.softplus(m.q(x)) @ F.softplus(m.k(x)).mT).masked_fill(later(x.shape[1]), 0.0)
    return w @ m.v(x) / w.sum(-1, keepdim=True)


@UNSEEN.add(causal=False, batch=True)
def products_under_a_triangle_over_the_sum_of_all(m: Parts, x: Tensor) -> Tensor:
    w = F.softplus(m.q(x)) @ F.softplus(m.k(x)).mT
    return w.tril() @ m.v(x) / w.sum(-1, keepdim=True)


@UNSEEN.add(causal=True, batch=True)
def state_without_the_own_token(m: Parts, x: Tensor) -> Tensor:
    k, v = F.elu(m.k(x)) + 1, m.v(x)
    pairs = k[..., None] * v[..., None, :]
    y = torch.einsum("btd,btde->bte", F.elu(m.q(x)) + 1, pairs.cumsum(1) - pairs)
    return x + m.norm(y)


@UNSEEN.add(causal=False, batch=True)
def state_less_its_running_sum(m: Parts, x: Tensor) -> Tensor:
    pairs = (F.elu(m.k(x)) + 1)[..., None] * m.v(x)[..., None, :]
    state = pairs.sum(1, keepdim=True) - pairs.cumsum(1)
    return x + m.norm(torch.einsum("btd,btde->bte", F.elu(m.q(x)) + 1, state))


@UNSEEN.add(batch=False, permutation=False)
def context_summed_over_rows(m: Parts, x: Tensor) -> Tensor:
    q, k, v = m.heads(x + m.table(torch.arange(x.shape[1])))
    context = torch.einsum("bhtd,bhte->hde", k.softmax(2), v)
    return m.join(torch.einsum("bhtd,hde->bhte", q.softmax(-1), context))


@UNSEEN.add(causal=False, permutation=True, batch=True)
def covariances_of_channels(m: Parts, x: Tensor) -> Tensor:
    q, k = F.normalize(m.q(x).mT, dim=-1), F.normalize(m.k(x).mT, dim=-1)
    return (((q @ k.mT) * m.decay[:, None]).softmax(-1) @ m.v(x).mT).mT


@UNSEEN.add(causal=True, batch=True)
def covariances_of_channels_so_far(m: Parts, x: Tensor) -> Tensor:
    count = torch.arange(1, x.shape[1] + 1)[:, None, None]
    w = torch.einsum("bti,btj->btij", m.q(x), m.k(x)).cumsum(1) / count
    return torch.einsum("btij,btj->bti", w.softmax(-1), m.v(x))


@UNSEEN.add(causal=True, permutation=True, batch=True)
def channels_of_each_token_attend(m: Parts, x: Tensor) -> Tensor:
    w = (m.q(x)[..., :, None] * m.k(x)[..., None, :]).softmax(-1)
    return x + (w @ m.v(x)[..., None]).squeeze(-1)


@UNSEEN.add(masked=True, padding=True, batch=True)
def covariances_of_real_tokens(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    q, k = (F.normalize(y * mask[..., None], dim=1) for y in (m.q(x), m.k(x)))
    return m.v(x) @ (q.mT @ k).softmax(-1).mT


@UNSEEN.add(masked=True, padding=False, batch=True)
def channels_normalized_over_tokens_then_masked(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    q, k = (F.normalize(y, dim=1) * mask[..., None] for y in (m.q(x), m.k(x)))
    return m.v(x) @ (q.mT @ k).softmax(-1).mT


@UNSEEN.add(causal=True, batch=True)
def normalizer_of_at_least_one(m: Parts, x: Tensor) -> Tensor:
    q, k = m.q(x), m.k(x)
    state = torch.einsum("btd,bte->btde", k, m.v(x)).cumsum(1)
    total = (q * k.cumsum(1)).sum(-1, keepdim=True).abs()
    return torch.einsum("btd,btde->bte", q, state) / torch.maximum(total, torch.ones_like(total))


def _gates(m: Parts, x: Tensor) -> Tensor:
    forget, enter = F.logsigmoid(m.gate(x)[..., 0]).cumsum(1), m.gate(x)[..., 1]
    return (forget[:, :, None] - forget[:, None] + enter[:, None]).masked_fill(later(x.shape[1]), float("-inf"))


@UNSEEN.add(causal=True, batch=True)
def exponential_gates_with_the_largest_of_each_query(m: Parts, x: Tensor) -> Tensor:
    d = _gates(m, x)
    top = d.amax(-1, keepdim=True)
    c = m.scores(x) * (d - top).exp()
    return c @ m.v(x) / torch.maximum(c.sum(-1, keepdim=True).abs(), (-top).exp())


@UNSEEN.add(causal=False, batch=True)
def exponential_gates_with_the_largest_of_the_row(m: Parts, x: Tensor) -> Tensor:
    d = _gates(m, x)
    c = m.scores(x) * (d - d.amax((1, 2), keepdim=True)).exp()
    return c @ m.v(x) / c.sum(-1, keepdim=True).abs().clamp(min=1.0)


@UNSEEN.add(masked=True, padding=True, batch=True)
def keys_softmaxed_over_real_tokens(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    k = m.k(x).masked_fill(mask[..., None] == 0, -1e9).softmax(1)
    return m.q(x).softmax(-1) @ (k.mT @ m.v(x))


@UNSEEN.add(masked=True, padding=False, batch=True)
def features_of_zeroed_keys(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    k, q = F.elu(m.k(x) * mask[..., None]) + 1, F.elu(m.q(x)) + 1
    return q @ (k.mT @ m.v(x)) / (q @ k.sum(1)[..., None])


@UNSEEN.add(causal=False, permutation=True, batch=True)
def additive_attention_of_a_global_query(m: Parts, x: Tensor) -> Tensor:
    q, k, v = m.q(x), m.k(x), m.v(x)
    q_all = ((q * m.decay).sum(-1, keepdim=True).softmax(1) * q).sum(1, keepdim=True)
    p = q_all * k
    k_all = ((p * m.scale).sum(-1, keepdim=True).softmax(1) * p).sum(1, keepdim=True)
    return m.o(k_all * v) + q


@UNSEEN.add(causal=True, batch=True)
def memory_slots_filled_so_far(m: Parts, x: Tensor) -> Tensor:
    share = m.router(x).softmax(-1)
    k, v = (torch.einsum("btn,btd->btnd", share, y).cumsum(1) for y in (m.k(x), m.v(x)))
    w = torch.einsum("btd,btnd->btn", m.q(x), k).softmax(-1)
    return torch.einsum("btn,btnd->btd", w, v)


@UNSEEN.add(masked=True, padding=True, batch=True)
def galerkin_attention_of_real_tokens(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    k, v = m.norm(m.k(x)), m.norm(m.v(x))
    context = torch.einsum("btd,bte,bt->bde", k, v, mask.to(x.dtype)) / mask.sum(-1)[:, None, None]
    return x + m.q(x) @ context
