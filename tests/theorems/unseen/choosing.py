"""Keys chosen by scores, blocks, hashes, spans and offsets."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.unseen.claims import HEADS, WIDTH, Corpus, Parts, later

UNSEEN = Corpus()
INF = float("-inf")


def _hidden(m: Parts, x: Tensor) -> Tensor:
    return m.scores(x).masked_fill(later(x.shape[1]), INF)


@UNSEEN.add(causal=True, batch=True)
def quarter_of_the_keys_by_their_score(m: Parts, x: Tensor) -> Tensor:
    s = _hidden(m, x)
    least = s.topk(max(1, x.shape[1] // 4), dim=-1).values[..., -1:]
    return s.masked_fill(s < least, INF).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def keys_from_the_second_of_sorted_scores(m: Parts, x: Tensor) -> Tensor:
    s = _hidden(m, x)
    order = s.sort(dim=-1, descending=True).values
    return torch.where(s >= order[..., :2].amin(-1, keepdim=True), s, INF).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def scores_within_a_margin_of_the_largest(m: Parts, x: Tensor) -> Tensor:
    s = _hidden(m, x)
    return s.masked_fill(s < s.amax(-1, keepdim=True) - 2.0, INF).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=False, batch=True)
def scores_within_a_margin_of_the_largest_of_all(m: Parts, x: Tensor) -> Tensor:
    s = m.scores(x)
    s = torch.where(s > s.amax(-1, keepdim=True) - 2.0, s, -50.0)
    return s.masked_fill(later(x.shape[1]), INF).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=False, permutation=True, batch=True)
def value_shared_among_the_largest_scores(m: Parts, x: Tensor) -> Tensor:
    s = m.scores(x)
    best = (s == s.amax(-1, keepdim=True)).to(x.dtype)
    return best @ m.v(x) / best.sum(-1, keepdim=True)


@UNSEEN.add(causal=True, batch=True)
def weights_above_a_share_of_the_largest(m: Parts, x: Tensor) -> Tensor:
    w = _hidden(m, x).softmax(-1)
    w = w * (w >= 0.3 * w.max(-1, keepdim=True)[0])
    return w / w.sum(-1, keepdim=True) @ m.v(x)


def _bounds(m: Parts, x: Tensor, size: int = 4) -> tuple[Tensor, Tensor]:
    """Bounds of the scores of each block [row, query, block], and the blocks that end before a query."""
    b, t, d = x.shape
    k, q = F.pad(m.k(x), (0, 0, 0, -t % size)).view(b, -1, size, d), m.q(x)
    low, high = k.amin(2), k.amax(2)
    bound = torch.maximum(q[:, :, None] * low[:, None], q[:, :, None] * high[:, None]).sum(-1)
    ended = torch.arange(1, low.shape[1] + 1) * size <= torch.arange(t)[:, None]
    return bound, ended


@UNSEEN.add(causal=True, batch=True)
def ended_blocks_by_bounds_of_their_keys(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    bound, ended = _bounds(m, x)
    bound = bound.masked_fill(~ended, -1e9)
    far = ((bound >= bound.amax(-1, keepdim=True)) & ended).repeat_interleave(4, -1)[..., :t]
    i = torch.arange(t)
    near = (i[:, None] // 4 == i // 4) & (i[:, None] >= i)
    return m.scores(x).masked_fill(~(far | near), INF).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=False, batch=True)
def all_blocks_by_bounds_of_their_keys(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    bound, _ = _bounds(m, x)
    seen = (bound >= bound.amax(-1, keepdim=True)).repeat_interleave(4, -1)[..., :t]
    seen = (seen | torch.eye(t, dtype=torch.bool)) & ~later(t)
    return m.scores(x).masked_fill(~seen, INF).softmax(-1) @ m.v(x)


def _rounds(m: Parts, y: Tensor) -> Tensor:
    p = y @ m.square[:WIDTH, : 2 * HEADS]
    return torch.stack([torch.cat([r, -r], -1).argmax(-1) for r in p.chunk(2, -1)], 1)


@UNSEEN.add(causal=True, batch=True)
def same_hash_in_any_round(m: Parts, x: Tensor) -> Tensor:
    h = _rounds(m, m.k(x))
    same = (h[..., :, None] == h[..., None, :]).any(1)
    return m.scores(x).masked_fill(~same | later(x.shape[1]), INF).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=False, batch=True)
def same_hash_of_centred_keys(m: Parts, x: Tensor) -> Tensor:
    k = m.k(x)
    h = _rounds(m, k - k.mean(1, keepdim=True))[:, 0]
    same = h[:, :, None] == h[:, None]
    return m.scores(x).masked_fill(~same | later(x.shape[1]), INF).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def keys_above_the_mean_gate_so_far(m: Parts, x: Tensor) -> Tensor:
    t, g = x.shape[1], m.gate(x)[..., 0].sigmoid()
    kept = g >= g.cumsum(1) / torch.arange(1, t + 1)
    seen = (kept[:, None] & ~later(t)) | torch.eye(t, dtype=torch.bool)
    return m.scores(x).masked_fill(~seen, INF).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def scores_above_the_mean_of_visible_ones(m: Parts, x: Tensor) -> Tensor:
    s = m.scores(x).tril()
    mean = s.sum(-1, keepdim=True) / torch.ones_like(s).tril().sum(-1, keepdim=True)
    return s.masked_fill((s < mean - 0.1) | later(x.shape[1]), INF).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def window_or_the_best_score(m: Parts, x: Tensor) -> Tensor:
    s, i = _hidden(m, x), torch.arange(x.shape[1])
    seen = ((i[:, None] - i) < 2) | (s >= s.amax(-1, keepdim=True))
    return torch.where(seen, s, INF).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def spans_predicted_by_each_key(m: Parts, x: Tensor) -> Tensor:
    i, span = torch.arange(x.shape[1]), 8 * m.gate(x)[..., 0].sigmoid()
    left = ((span[:, None] - (i[:, None] - i)) / 2 + 1).clamp(0, 1)
    w = _hidden(m, x).softmax(-1) * left
    return w @ m.v(x) / (w.sum(-1, keepdim=True) + 1e-8)


@UNSEEN.add(causal=True, permutation=False)
def learned_span_of_each_head(m: Parts, x: Tensor) -> Tensor:
    q, k, v = m.heads(x)
    i, span = torch.arange(x.shape[1]), 6 * m.decay[:HEADS, None, None]
    left = ((span - (i[:, None] - i)) / 3 + 1).clamp(0, 1)
    w = (q @ k.mT).masked_fill(later(x.shape[1]), INF).softmax(-1) * left
    return m.join(w / w.sum(-1, keepdim=True) @ v)


@UNSEEN.add(causal=False, batch=True)
def learned_span_of_both_sides(m: Parts, x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1])
    left = ((3 - (i[:, None] - i).abs()) / 2 + 1).clamp(0, 1)
    w = m.scores(x).softmax(-1) * left
    return w / w.sum(-1, keepdim=True) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def heavy_keys_so_far(m: Parts, x: Tensor) -> Tensor:
    s = _hidden(m, x)
    kept = (s.softmax(-1).cumsum(1) >= 0.5) | torch.eye(x.shape[1], dtype=torch.bool)
    return s.masked_fill(~kept, INF).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=False, batch=True)
def heavy_keys_of_the_whole_text(m: Parts, x: Tensor) -> Tensor:
    s = _hidden(m, x)
    kept = (s.softmax(-1).sum(1, keepdim=True) >= 0.5) | torch.eye(x.shape[1], dtype=torch.bool)
    return s.masked_fill(~kept, INF).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=False, batch=True)
def keys_chosen_by_the_last_queries(m: Parts, x: Tensor) -> Tensor:
    s = _hidden(m, x)
    votes = s.softmax(-1)[:, -2:].mean(1, keepdim=True)
    seen = (votes >= 1 / x.shape[1]) | torch.eye(x.shape[1], dtype=torch.bool)
    return s.masked_fill(~seen, INF).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def lazy_queries_take_the_mean_so_far(m: Parts, x: Tensor) -> Tensor:
    s, v, count = _hidden(m, x), m.v(x), torch.arange(1, x.shape[1] + 1)[:, None]
    activity = s.amax(-1, keepdim=True) - m.scores(x).tril().sum(-1, keepdim=True) / count
    return torch.where(activity > 0.5, s.softmax(-1) @ v, v.cumsum(1) / count)


@UNSEEN.add(causal=True, batch=True)
def scores_with_the_logs_of_shared_clusters(m: Parts, x: Tensor) -> Tensor:
    share = m.router(x).softmax(-1)
    s = m.scores(x) + torch.log(share @ share.mT)
    return s.masked_fill(later(x.shape[1]), -1e9).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def keys_at_doubling_offsets_gathered(m: Parts, x: Tensor) -> Tensor:
    place = torch.arange(x.shape[1])[:, None] - torch.tensor([0, 1, 2, 4, 8])
    k, v = (y[:, place.clamp(min=0)] for y in (m.k(x), m.v(x)))
    s = torch.einsum("btd,btnd->btn", m.q(x), k).masked_fill(place < 0, INF)
    return torch.einsum("btn,btnd->btd", s.softmax(-1), v)


@UNSEEN.add(causal=False, batch=True)
def keys_at_offsets_that_wrap_around(m: Parts, x: Tensor) -> Tensor:
    place = torch.arange(x.shape[1])[:, None] - torch.tensor([0, 1, 2, 4])
    k, v = m.k(x)[:, place], m.v(x)[:, place]
    return torch.einsum("btn,btnd->btd", torch.einsum("btd,btnd->btn", m.q(x), k).softmax(-1), v)


@UNSEEN.add(causal=True, batch=True)
def own_block_and_summary_columns(m: Parts, x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1])
    seen = ((i[:, None] // 4 == i // 4) | (i % 4 == 3)) & (i[:, None] >= i)
    return m.scores(x).masked_fill(~seen, INF).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=False, batch=True)
def own_block_or_summary_columns(m: Parts, x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1])
    seen = ((i[:, None] // 4 == i // 4) & (i[:, None] >= i)) | (i % 4 == 3)
    return m.scores(x).masked_fill(~seen, INF).softmax(-1) @ m.v(x)


@UNSEEN.add(masked=True, padding=True, batch=True)
def keys_voted_by_real_queries(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    s = m.scores(x).masked_fill(mask[:, None] == 0, -1e9)
    votes = (s.softmax(-1) * mask[..., None]).sum(1, keepdim=True)
    return s.masked_fill(votes < 0.2, -1e9).softmax(-1) @ m.v(x)


@UNSEEN.add(masked=True, padding=False, batch=True)
def keys_voted_by_all_queries(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    w = m.scores(x).masked_fill(mask[:, None] == 0, -1e9).softmax(-1)
    w = w * w.sum(1, keepdim=True)
    return w / w.sum(-1, keepdim=True) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def breaks_of_a_stick_from_the_query(m: Parts, x: Tensor) -> Tensor:
    s, hidden = m.scores(x), later(x.shape[1])
    rest = F.logsigmoid(-s).masked_fill(hidden, 0.0)
    rest = rest.flip(-1).cumsum(-1).flip(-1) - rest
    return (F.logsigmoid(s) + rest).masked_fill(hidden, INF).exp() @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def scores_less_what_earlier_queries_forget(m: Parts, x: Tensor) -> Tensor:
    q, k, v = m.heads(x)
    s = q @ k.mT
    forget = F.relu(s[:, :1]).tril(-1)
    forget = F.pad(forget.cumsum(2), (0, 0, 1, 0))[:, :, :-1]
    return m.join((s - forget).masked_fill(later(x.shape[1]), INF).softmax(-1) @ v)
