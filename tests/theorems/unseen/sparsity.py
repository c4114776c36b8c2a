"""Sparse attention: windows, blocks, frames, trees, packed sequences and low rank."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.unseen.claims import HEADS, LONGEST, WIDTH, Corpus, Parts, later

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


@UNSEEN.add(causal=True, batch=True)
def random_features_of_exponentials(m: Parts, x: Tensor) -> Tensor:
    def features(y: Tensor) -> Tensor:
        y = y / WIDTH**0.25
        return torch.exp(y @ m.square[:WIDTH, :6] - y.square().sum(-1, keepdim=True) / 2) + 1e-4

    q, k, v = features(m.q(x)), features(m.k(x)), m.v(x)
    state = (k.unsqueeze(-1) * v.unsqueeze(-2)).cumsum(1)
    return torch.einsum("btf,btfd->btd", q, state) / (q * k.cumsum(1)).sum(-1, keepdim=True)


@UNSEEN.add(causal=False, batch=True)
def random_features_with_a_shared_maximum(m: Parts, x: Tensor) -> Tensor:
    k = m.k(x) @ m.square[:WIDTH, :6]
    k = torch.exp(k - k.amax((1, 2), keepdim=True)) + 1e-2
    q = torch.exp((m.q(x) @ m.square[:WIDTH, :6]).softmax(-1))
    state = (k.unsqueeze(-1) * m.v(x).unsqueeze(-2)).cumsum(1)
    return torch.einsum("btf,btfd->btd", q, state) / (q * k.cumsum(1)).sum(-1, keepdim=True)


@UNSEEN.add(causal=True, batch=True, permutation=False)
def weights_of_cosines_of_places(m: Parts, x: Tensor) -> Tensor:
    angle = math.pi / 2 * torch.arange(x.shape[1]).to(x.dtype)[:, None] / LONGEST
    q, k = F.relu(m.q(x)), F.relu(m.k(x))
    q, k = (torch.cat([y * angle.sin(), y * angle.cos()], -1) for y in (q, k))
    kv = torch.cumsum(torch.einsum("bti,btj->btij", k, m.v(x)), 1)
    z = torch.clamp(torch.einsum("bti,bti->bt", q, k.cumsum(1)), min=1e-6)
    return torch.einsum("bti,btij->btj", q, kv) / z[..., None]


@UNSEEN.add(causal=False, batch=True, permutation=False)
def keys_projected_over_tokens(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    k, v = (m.square[:5, :t] @ f(x) for f in (m.k, m.v))
    return (m.q(x) @ k.mT / math.sqrt(WIDTH)).softmax(-1) @ v


@UNSEEN.add(causal=False, batch=True)
def landmarks_of_segments(m: Parts, x: Tensor) -> Tensor:
    q, k, v = m.q(x), m.k(x), m.v(x)
    small_q, small_k = _block_means(q), _block_means(k)
    return (q @ small_k.mT).softmax(-1) @ ((small_q @ k.mT).softmax(-1) @ v)


def _windows(y: Tensor, size: int = 4) -> Tensor:
    b, t, d = y.shape
    return F.pad(y, (0, 0, 0, -t % size)).view(-1, size, d)


@UNSEEN.add(causal=False, batch=True)
def cyclic_shift_of_windows(m: Parts, x: Tensor) -> Tensor:
    b, t, d = x.shape
    h = torch.roll(F.pad(x, (0, 0, 0, -t % 4)), -2, 1)
    region = torch.zeros(h.shape[1])
    region[-4:-2] = 1
    region[-2:] = 2
    region = region.view(-1, 4)
    y = h.view(-1, 4, d)
    s = (m.q(y) @ m.k(y).mT).view(b, -1, 4, 4)
    s = s.masked_fill(region[:, None] != region[:, :, None], -100.0)
    y = s.softmax(-1).view(-1, 4, 4) @ m.v(y)
    return torch.roll(y.view(b, -1, d), 2, 1)[:, :t]


@UNSEEN.add(causal=False, batch=True)
def windows_without_a_shift(m: Parts, x: Tensor) -> Tensor:
    b, t, d = x.shape
    y = _windows(x)
    y = F.scaled_dot_product_attention(m.q(y), m.k(y), m.v(y))
    return x + y.view(b, -1, d)[:, :t]


@UNSEEN.add(causal=True, batch=True)
def windows_with_a_triangle(m: Parts, x: Tensor) -> Tensor:
    b, t, d = x.shape
    y = _windows(m.norm(x))
    y = F.scaled_dot_product_attention(m.q(y), m.k(y), m.v(y), is_causal=True)
    return x + m.o(y).view(b, -1, d)[:, :t]


@UNSEEN.add(batch=False)
def windows_joined_across_rows(m: Parts, x: Tensor) -> Tensor:
    b, t, d = x.shape
    y = x.transpose(0, 1).reshape(-1, b, d)
    y = F.scaled_dot_product_attention(m.q(y), m.k(y), m.v(y))
    return x + y.view(t, b, d).transpose(0, 1)


@UNSEEN.add(causal=False, batch=True)
def registers_read_all_tokens_and_are_read(m: Parts, x: Tensor) -> Tensor:
    b, t, _ = x.shape
    n = m.latents.shape[0]
    h = torch.cat([m.latents.expand(b, -1, -1), x], 1)
    hidden = later(n + t)
    hidden[:n] = False
    for _ in range(2):
        h = h + m.scores(h).masked_fill(hidden, INF).softmax(-1) @ m.v(h)
    return h[:, n:]


@UNSEEN.add(causal=True, batch=True)
def registers_that_see_themselves(m: Parts, x: Tensor) -> Tensor:
    b, t, _ = x.shape
    n = m.latents.shape[0]
    h = torch.cat([m.latents.expand(b, -1, -1), x], 1)
    hidden = later(n + t)
    hidden[:n, :n] = False
    for _ in range(2):
        h = h + m.scores(h).masked_fill(hidden, INF).softmax(-1) @ m.v(h)
    return h[:, n:]


@UNSEEN.add(causal=True, batch=True)
def prefix_keys_with_the_flag_of_the_fused_call(m: Parts, x: Tensor) -> Tensor:
    q, k, v = m.heads(x)
    prefix = m.latents.view(1, -1, HEADS, WIDTH // HEADS).transpose(1, 2).expand(x.shape[0], -1, -1, -1)
    y = F.scaled_dot_product_attention(q, torch.cat([prefix, k], 2), torch.cat([prefix, v], 2), is_causal=True)
    return m.join(y)


@UNSEEN.add(causal=True, batch=True)
def prefix_keys_with_an_offset_triangle(m: Parts, x: Tensor) -> Tensor:
    b, t, _ = x.shape
    k, v = (torch.cat([m.latents.expand(b, -1, -1), f(x)], 1) for f in (m.k, m.v))
    seen = torch.tril(torch.ones(t, k.shape[1]), diagonal=k.shape[1] - t)
    return (m.q(x) @ k.mT).masked_fill(seen == 0, INF).softmax(-1) @ v


@UNSEEN.add(causal=False, batch=True)
def prefix_keys_with_an_offset_one_too_far(m: Parts, x: Tensor) -> Tensor:
    b, t, _ = x.shape
    k, v = (torch.cat([m.latents.expand(b, -1, -1), f(x)], 1) for f in (m.k, m.v))
    seen = torch.tril(torch.ones(t, k.shape[1]), diagonal=m.latents.shape[0] + 1)
    return (m.q(x) @ k.mT).masked_fill(seen == 0, INF).softmax(-1) @ v
