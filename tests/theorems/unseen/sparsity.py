"""Sparse attention: windows, blocks, frames, trees and packed sequences."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.unseen.claims import LONGEST, WIDTH, Corpus, Parts

UNSEEN = Corpus()
INF = float("-inf")
BLOCK = 3


def _seen(m: Parts, x: Tensor, seen: Tensor) -> Tensor:
    return torch.where(seen, m.scores(x), INF).softmax(-1) @ m.v(x)


def _block_means(y: Tensor) -> Tensor:
    """Means of whole blocks of tokens [row, block, feature]; the last tokens may belong to none."""
    b, t, d = y.shape
    return y[:, : t // BLOCK * BLOCK].reshape(b, t // BLOCK, BLOCK, d).mean(2)


@UNSEEN.add(causal=True, batch=True)
def compressed_blocks_and_a_window(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    i = torch.arange(t)
    k, v = _block_means(m.k(x)), _block_means(m.v(x))
    ends = torch.arange(k.shape[1]) * BLOCK + BLOCK - 1
    hidden = ends[None] >= i[:, None]
    s = (m.q(x) @ k.mT / math.sqrt(WIDTH)).masked_fill(hidden, INF)
    far = torch.nan_to_num(s.softmax(-1)) @ v
    d = i[:, None] - i[None]
    near = _seen(m, x, (d >= 0) & (d < BLOCK))
    g = m.router(x)[..., :2].sigmoid()
    return g[..., :1] * far + g[..., 1:] * near


@UNSEEN.add(causal=False, batch=True)
def compressed_blocks_seen_from_their_start(m: Parts, x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1])
    k, v = _block_means(m.k(x)), _block_means(m.v(x))
    starts = torch.arange(k.shape[1]) * BLOCK
    s = (m.q(x) @ k.mT).masked_fill(starts[None] > i[:, None], -1e9)
    return m.o(s.softmax(-1) @ v)


@UNSEEN.add(causal=True, batch=True)
def best_blocks_of_each_query(m: Parts, x: Tensor) -> Tensor:
    b, t, _ = x.shape
    i = torch.arange(t)
    own = i // BLOCK
    padded = F.pad(m.k(x), (0, 0, 0, -t % BLOCK))
    k = padded.view(b, -1, BLOCK, WIDTH).mean(2)
    blocks = torch.arange(k.shape[1])
    s = (m.q(x) @ k.mT).masked_fill(blocks[None] >= own[:, None], -1e9)
    best = s.topk(2, -1).indices
    chosen = torch.zeros(b, t, k.shape[1], dtype=torch.bool).scatter(-1, best, True)
    chosen = chosen | (blocks[None] == own[:, None])
    seen = chosen.repeat_interleave(BLOCK, -1)[..., :t] & (i[None] <= i[:, None])
    return _seen(m, x, seen)


@UNSEEN.add(causal=False, batch=True)
def best_blocks_by_the_mean_query(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    i = torch.arange(t)
    s = (m.q(x).mean(1, keepdim=True) @ _block_means(m.k(x)).mT).softmax(-1)
    kept = s >= s.amax(-1, keepdim=True)
    seen = F.pad(kept.repeat_interleave(BLOCK, -1), (0, t % BLOCK))
    return _seen(m, x, (seen | (i[None] == i[:, None])) & (i[None] <= i[:, None]))


@UNSEEN.add(causal=True, batch=True)
def skipped_tokens_are_no_keys(m: Parts, x: Tensor) -> Tensor:
    taken = m.router(x)[..., 0] > 0
    i = torch.arange(x.shape[1])
    seen = (taken[:, None] & (i[None] <= i[:, None])) | (i[None] == i[:, None])
    return torch.where(taken[..., None], x + _seen(m, x, seen), x)


@UNSEEN.add(causal=False, batch=True, permutation=False)
def frames_see_the_frames_before(m: Parts, x: Tensor) -> Tensor:
    frame = torch.arange(x.shape[1]) // 4
    h = x + m.table(frame)
    return _seen(m, h, frame[:, None] >= frame[None])


@UNSEEN.add(causal=True, batch=True)
def frames_strictly_before_and_own_past(m: Parts, x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1])
    frame = i // 4
    before = frame[None] < frame[:, None]
    own = (frame[None] == frame[:, None]) & (i[None] <= i[:, None])
    return _seen(m, x, before | own)


@UNSEEN.add(causal=True, batch=True)
def ancestors_in_a_binary_tree(m: Parts, x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1])
    above, seen = i, i[:, None] == i[None]
    for _ in range(7):
        above = torch.where(above > 0, (above - 1) // 2, above)
        seen = seen | (above[:, None] == i[None])
    return _seen(m, x, seen)


@UNSEEN.add(causal=False, batch=True)
def descendants_in_a_binary_tree(m: Parts, x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1])
    above, seen = i, i[:, None] == i[None]
    for _ in range(7):
        above = torch.where(above > 0, (above - 1) // 2, above)
        seen = seen | (above[None] == i[:, None])
    return _seen(m, x, seen)


@UNSEEN.add(causal=True, batch=True)
def branches_of_a_draft(m: Parts, x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1])
    trunk, width = 3, 2
    depth, branch = (i - trunk) // width, (i - trunk) % width
    same = (branch[:, None] == branch[None]) & (depth[None] <= depth[:, None]) & (i[None] >= trunk)
    seen = ((i[None] < trunk) & (i[None] <= i[:, None])) | (same & (i[:, None] >= trunk))
    return _seen(m, x + m.table(torch.where(i < trunk, i, trunk + depth)), seen)


@UNSEEN.add(causal=True, batch=True)
def sequences_packed_by_cumulative_lengths(m: Parts, x: Tensor) -> Tensor:
    starts = torch.tensor([0, 3, 5, 9, LONGEST])
    i = torch.arange(x.shape[1])
    segment = torch.bucketize(i, starts, right=True)
    place = i - starts[segment - 1]
    h = x + m.table(place)
    return _seen(m, h, (segment[:, None] == segment[None]) & (place[:, None] >= place[None]))


@UNSEEN.add(causal=False, batch=True)
def sequences_packed_without_a_triangle(m: Parts, x: Tensor) -> Tensor:
    starts = torch.tensor([0, 3, 5, 9, LONGEST])
    segment = torch.searchsorted(starts, torch.arange(x.shape[1]), right=True)
    return _seen(m, x, segment[:, None] == segment[None])


@UNSEEN.add(causal=True, batch=True)
def sequences_packed_by_repeated_numbers(m: Parts, x: Tensor) -> Tensor:
    lengths = torch.tensor([2, 4, 3, LONGEST])
    document = torch.repeat_interleave(torch.arange(4), lengths)[: x.shape[1]]
    return _seen(m, x, torch.tril(document[:, None] == document[None]))


@UNSEEN.add(causal=True, batch=True)
def keys_by_unfolded_windows(m: Parts, x: Tensor) -> Tensor:
    t, window = x.shape[1], 4
    k, v = (F.pad(f(x), (0, 0, window - 1, 0)).unfold(1, window, 1) for f in (m.k, m.v))
    s = torch.einsum("btd,btdw->btw", m.q(x), k) / math.sqrt(WIDTH)
    empty = torch.arange(window)[None] + torch.arange(t)[:, None] < window - 1
    return torch.einsum("btw,btdw->btd", s.masked_fill(empty, INF).softmax(-1), v)


@UNSEEN.add(causal=False, batch=True)
def keys_by_unfolded_windows_around(m: Parts, x: Tensor) -> Tensor:
    window = 4
    k, v = (F.pad(f(x), (0, 0, window // 2, window // 2 - 1)).unfold(1, window, 1) for f in (m.k, m.v))
    s = torch.einsum("btd,btdw->btw", m.q(x), k)
    return torch.einsum("btw,btdw->btd", s.softmax(-1), v)


@UNSEEN.add(causal=True, batch=True)
def window_global_and_random_keys(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    i = torch.arange(t)
    near = (i[:, None] - i[None]).abs() <= 1
    seen = near | (i[None] < 2) | (m.square[:t, :t] > 1.0)
    return _seen(m, x, seen & (i[:, None] >= i[None]))


@UNSEEN.add(causal=False, batch=True)
def window_and_global_queries(m: Parts, x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1])
    d = i[:, None] - i[None]
    return _seen(m, x, ((d >= 0) & (d < 3)) | (i[None] < 2) | (i[:, None] < 2))


@UNSEEN.add(causal=True, batch=True)
def half_of_the_heads_in_windows(m: Parts, x: Tensor) -> Tensor:
    q, k, v = m.heads(x)
    full = torch.ones(x.shape[1], x.shape[1]).tril().bool()
    near = full & ~torch.ones(x.shape[1], x.shape[1]).tril(-3).bool()
    y = F.scaled_dot_product_attention(q, k, v, attn_mask=torch.stack([full, near])[None])
    return x + m.join(y)
