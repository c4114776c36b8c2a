"""Caches of keys and values, and samplers' helpers."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.unseen.claims import LONGEST, WIDTH, Corpus, Parts, later

UNSEEN = Corpus()
INF = float("-inf")


@UNSEEN.add(causal=True, batch=True)
def cache_padded_to_its_size(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    k, v = (F.pad(y, (0, 0, 0, LONGEST - t)) for y in (m.k(x), m.v(x)))
    s = m.q(x) @ k.mT
    seen = torch.arange(LONGEST)[None] <= torch.arange(t)[:, None]
    return s.masked_fill(~seen, -1e9).softmax(-1) @ v


@UNSEEN.add(causal=True, batch=True)
def cache_with_mask_of_the_buffer(m: Parts, x: Tensor) -> Tensor:
    b, t, _ = x.shape
    k, v = torch.zeros(b, LONGEST, WIDTH, dtype=x.dtype), torch.zeros(b, LONGEST, WIDTH, dtype=x.dtype)
    k[:, :t], v[:, :t] = m.k(x), m.v(x)
    s = (m.q(x) @ k.mT).masked_fill(~m.triangle[0, :, :t, :LONGEST], INF)
    return s.softmax(-1) @ v


@UNSEEN.add(causal=False, batch=True)
def cache_read_beyond_the_query(m: Parts, x: Tensor) -> Tensor:
    b, t, _ = x.shape
    k, v = torch.zeros(b, LONGEST, WIDTH, dtype=x.dtype), torch.zeros(b, LONGEST, WIDTH, dtype=x.dtype)
    k[:, :t], v[:, :t] = m.k(x), m.v(x)
    s = (m.q(x) @ k.mT).masked_fill(torch.arange(LONGEST) >= t, INF)
    return s.softmax(-1) @ v


@UNSEEN.add(causal=True, batch=True)
def eight_bit_cache(m: Parts, x: Tensor) -> Tensor:
    def stored(y: Tensor) -> Tensor:
        scale = y.abs().amax(-1, keepdim=True).clamp(min=1e-8) / 127
        return torch.clamp(torch.round(y / scale), -127, 127).to(torch.int8).to(y.dtype) * scale

    s = m.q(x) @ stored(m.k(x)).mT
    return s.masked_fill(later(x.shape[1]), INF).softmax(-1) @ stored(m.v(x))


@UNSEEN.add(causal=False, batch=True)
def eight_bit_cache_scaled_for_each_channel(m: Parts, x: Tensor) -> Tensor:
    k = m.k(x)
    low, high = k.min(1, keepdim=True).values, k.max(1, keepdim=True).values
    scale = (high - low).clamp(min=1e-6) / 15
    k = ((k - low) / scale).round() * scale + low
    return (m.q(x) @ k.mT).masked_fill(later(x.shape[1]), INF).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def cache_grown_token_by_token(m: Parts, x: Tensor) -> Tensor:
    k = v = None
    out = []
    for i in range(x.shape[1]):
        one = x[:, i : i + 1]
        k = m.k(one) if k is None else torch.cat([k, m.k(one)], 1)
        v = m.v(one) if v is None else torch.cat([v, m.v(one)], 1)
        out.append(F.scaled_dot_product_attention(m.q(one), k, v))
    return torch.cat(out, 1)


@UNSEEN.add(causal=True, batch=True)
def cache_cut_to_a_window(m: Parts, x: Tensor) -> Tensor:
    k, v, out = x[:, :0], x[:, :0], []
    for i in range(x.shape[1]):
        one = x[:, i : i + 1]
        k, v = torch.cat([k, m.k(one)], 1)[:, -4:], torch.cat([v, m.v(one)], 1)[:, -4:]
        out.append((m.q(one) @ k.mT).softmax(-1) @ v)
    return torch.cat(out, 1)


@UNSEEN.add(causal=True, batch=True)
def keys_of_slices_up_to_each_query(m: Parts, x: Tensor) -> Tensor:
    q, k, v = m.q(x), m.k(x), m.v(x)
    rows = [torch.softmax(q[:, i : i + 1] @ k[:, : i + 1].mT, -1) @ v[:, : i + 1] for i in range(x.shape[1])]
    return torch.cat(rows, 1)


@UNSEEN.add(causal=False, batch=True)
def keys_of_slices_one_too_far(m: Parts, x: Tensor) -> Tensor:
    q, k, v = m.q(x), m.k(x), m.v(x)
    rows = [torch.softmax(q[:, i : i + 1] @ k[:, : i + 2].mT, -1) @ v[:, : i + 2] for i in range(x.shape[1])]
    return torch.cat(rows, 1)


@UNSEEN.add(causal=True, batch=True)
def pages_of_a_block_table(m: Parts, x: Tensor) -> Tensor:
    b, t, d = x.shape
    k, v = (F.pad(f(x), (0, 0, 0, -t % 4)).view(b, -1, 4, d) for f in (m.k, m.v))
    order = torch.arange(k.shape[1])
    k, v = k[:, order].flatten(1, 2), v[:, order].flatten(1, 2)
    hidden = torch.arange(k.shape[1])[None] > torch.arange(t)[:, None]
    return (m.q(x) @ k.mT).masked_fill(hidden, INF).softmax(-1) @ v


@UNSEEN.add(causal=True, batch=True)
def softmax_joined_over_blocks_of_keys(m: Parts, x: Tensor) -> Tensor:
    q, k, v, t = m.q(x), m.k(x), m.v(x), x.shape[1]
    i = torch.arange(t)[:, None]
    top = torch.full((x.shape[0], t, 1), -1e30, dtype=x.dtype)
    total, out = torch.zeros_like(top), torch.zeros_like(x)
    for first in range(0, t, 4):
        kb, vb = k[:, first : first + 4], v[:, first : first + 4]
        s = (q @ kb.mT).masked_fill(torch.arange(first, first + kb.shape[1])[None] > i, -1e30)
        new = torch.maximum(top, s.amax(-1, keepdim=True))
        p, old = (s - new).exp(), (top - new).exp()
        total, out, top = total * old + p.sum(-1, keepdim=True), out * old + p @ vb, new
    return out / total


@UNSEEN.add(causal=True, batch=True)
def blocks_of_queries_with_keys_before(m: Parts, x: Tensor) -> Tensor:
    q, k, v, t = m.q(x), m.k(x), m.v(x), x.shape[1]
    out = torch.empty_like(x)
    for a in range(0, t, 4):
        b = min(a + 4, t)
        s = q[:, a:b] @ k[:, :b].mT
        s = s + torch.full((b - a, b), INF).triu(a + 1)
        out[:, a:b] = s.softmax(-1) @ v[:, :b]
    return out


@UNSEEN.add(causal=True, permutation=True, batch=True)
def smallest_share_of_the_vocabulary(m: Parts, x: Tensor) -> Tensor:
    p, order = (x @ m.table.weight.T).softmax(-1).sort(-1, descending=True)
    hidden = (p.cumsum(-1) - p) > 0.9
    hidden = torch.zeros_like(hidden).scatter(-1, order, hidden)
    return (x @ m.table.weight.T).masked_fill(hidden, INF)


@UNSEEN.add(causal=True, permutation=True, batch=True)
def logits_of_the_best_eight(m: Parts, x: Tensor) -> Tensor:
    logits = m.norm(x) @ m.table.weight.T / 0.7
    least = torch.topk(logits, 8).values[..., -1, None]
    return torch.where(logits < least, -1e9, logits).log_softmax(-1)


@UNSEEN.add(causal=True, batch=True)
def repeated_tokens_penalized(m: Parts, x: Tensor) -> Tensor:
    logits = x @ m.table.weight.T
    chosen = F.one_hot(logits.argmax(-1), LONGEST).cumsum(1)
    return logits - 1.5 * (chosen > 0)


@UNSEEN.add(causal=False, batch=True)
def repeated_tokens_penalized_everywhere(m: Parts, x: Tensor) -> Tensor:
    logits = x @ m.table.weight.T
    counts = torch.zeros(x.shape[0], LONGEST, dtype=x.dtype)
    chosen = logits.argmax(-1)
    counts = counts.scatter_add(1, chosen, torch.ones_like(chosen, dtype=x.dtype))
    return logits - 1.5 * counts[:, None]


@UNSEEN.add(batch=True, permutation=False)
def last_token_only(m: Parts, x: Tensor) -> Tensor:
    h = m.scores(x).masked_fill(later(x.shape[1]), INF).softmax(-1) @ m.v(x)
    return h[:, -1] @ m.table.weight.T


@UNSEEN.add(batch=False)
def rows_reordered_by_their_score(m: Parts, x: Tensor) -> Tensor:
    order = m.router(x).mean((1, 2)).argsort(descending=True)
    return m.v(x).index_select(0, order)
