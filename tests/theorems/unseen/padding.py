"""Padding masks, tokens moved to the front, caches and positions."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.unseen.claims import LONGEST, WIDTH, Corpus, Parts, later

UNSEEN = Corpus()
INF = float("-inf")


@UNSEEN.add(masked=True, padding=True, batch=True)
def keys_at_pads_hidden(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    return m.scores(x).masked_fill(mask[:, None] == 0, -1e9).softmax(-1) @ m.v(x)


@UNSEEN.add(masked=True, padding=False, batch=True)
def queries_at_pads_hidden(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    return (m.scores(x).softmax(-1) @ m.v(x)) * mask[..., None]


@UNSEEN.add(masked=True, padding=True, batch=True)
def outer_product_of_masks(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    both = mask.unsqueeze(1) * mask.unsqueeze(2)
    w = m.scores(x).masked_fill(both == 0, INF).softmax(-1)
    return torch.nan_to_num(w) @ m.v(x)


@UNSEEN.add(masked=True, padding=True, batch=True)
def extended_mask(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    q, k, v = m.heads(x)
    extended = (1.0 - mask[:, None, None, :].to(x.dtype)) * torch.finfo(x.dtype).min
    return m.join((q @ k.mT + extended).softmax(-1) @ v)


@UNSEEN.add(masked=True, padding=True, causal=True, batch=True)
def causal_and_padding_masks_added(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    t = x.shape[1]
    causal = torch.zeros(t, t).masked_fill(later(t), -1e9)
    pads = (1.0 - mask[:, None].float()) * -1e9
    return (m.scores(x) + causal + pads).softmax(-1) @ m.v(x)


@UNSEEN.add(masked=True, padding=False, batch=True)
def weights_masked_without_a_new_sum(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    return (m.scores(x).softmax(-1) * mask[:, None]) @ m.v(x)


@UNSEEN.add(masked=True, padding=True, batch=True)
def weights_masked_and_normalized(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    w = m.scores(x).clamp(max=20).exp() * mask[:, None]
    return w @ m.v(x) / (w.sum(-1, keepdim=True) + 1e-9)


@UNSEEN.add(masked=True, padding=False, batch=True)
def lengths_for_left_pads_too(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    seen = torch.arange(x.shape[1])[None] < mask.sum(1, keepdim=True)
    return m.scores(x).masked_fill(~seen[:, None], INF).softmax(-1) @ m.v(x)


@UNSEEN.add(masked=True, padding=True, batch=True)
def pads_zeroed_before_convolution(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    return m.conv(F.pad((x * mask[..., None]).mT, (1, 1))).mT


@UNSEEN.add(masked=True, padding=False, batch=True)
def pads_zeroed_after_convolution(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    return m.conv(F.pad(x.mT, (1, 1))).mT * mask[..., None]


@UNSEEN.add(masked=True, padding=True, batch=True)
def pads_of_linear_attention(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    q, k, v = m.q(x).softmax(-1), F.relu(m.k(x)) * mask[..., None], m.v(x)
    return q @ (k.mT @ v) / (q @ k.sum(1)[..., None] + 1e-6)


@UNSEEN.add(masked=True, padding=False, batch=True)
def normalizer_of_linear_attention_with_pads(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    q, k, v = m.q(x).softmax(-1), F.relu(m.k(x)), m.v(x) * mask[..., None]
    return q @ (k.mT @ v) / (q @ k.sum(1)[..., None] + 1e-6)


@UNSEEN.add(masked=True, padding=True, batch=True)
def real_tokens_to_the_front(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    order = mask.argsort(dim=1, descending=True, stable=True)
    index = order[..., None].expand_as(x)
    y, real = x.gather(1, index), mask.gather(1, order)
    y = m.gru(y * real[..., None])[0]
    return torch.zeros_like(y).scatter(1, index, y)


@UNSEEN.add(masked=True, padding=True, batch=True)
def positions_of_real_tokens(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    p = (mask.cumsum(-1) - 1).clamp(min=0)
    h = x + m.table(p)
    return m.scores(h).masked_fill(~mask[:, None].bool(), INF).softmax(-1) @ m.v(h)


@UNSEEN.add(masked=True, padding=True, batch=True)
def masked_rows_by_any(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    seen = mask[:, None].bool() & ~later(x.shape[1])
    w = m.scores(x).masked_fill(~seen, INF).softmax(-1)
    w = torch.where(seen.any(-1, keepdim=True), w, torch.zeros_like(w))
    return w @ m.v(x)


@UNSEEN.add(masked=True, padding=True, batch=True)
def mask_of_the_fused_call(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    seen = mask[:, None, None].bool()
    return m.join(F.scaled_dot_product_attention(*m.heads(x), attn_mask=seen))


@UNSEEN.add(masked=True, padding=False, batch=True)
def mask_as_numbers_of_the_fused_call(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    return m.join(F.scaled_dot_product_attention(*m.heads(x), attn_mask=mask[:, None, None].to(x.dtype)))


@UNSEEN.add(masked=True, padding=True, batch=True)
def nan_at_pads_of_keys(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    w = torch.softmax(m.scores(x) + torch.where(mask[:, None] > 0, 0.0, INF), -1)
    return w.nan_to_num(0.0) @ (m.v(x) * mask[..., None])


@UNSEEN.add(causal=True, batch=True)
def learned_prefix(m: Parts, x: Tensor) -> Tensor:
    prefix = m.latents.expand(x.shape[0], -1, -1)
    k, v = torch.cat([prefix, m.k(x)], 1), torch.cat([prefix, m.v(x)], 1)
    s = m.q(x) @ k.mT
    s = s.masked_fill(F.pad(later(x.shape[1]), (prefix.shape[1], 0)), INF)
    return s.softmax(-1) @ v


@UNSEEN.add(causal=True, batch=True)
def cache_of_fixed_size(m: Parts, x: Tensor) -> Tensor:
    b, t, _ = x.shape
    place = torch.arange(t)
    k = x.new_zeros(b, LONGEST, WIDTH).index_copy(1, place, m.k(x))
    v = x.new_zeros(b, LONGEST, WIDTH).index_copy(1, place, m.v(x))
    s = (m.q(x) @ k.mT).masked_fill(torch.arange(LONGEST)[None] > place[:, None], INF)
    return s.softmax(-1) @ v


@UNSEEN.add(causal=True, batch=True)
def cache_written_by_slices(m: Parts, x: Tensor) -> Tensor:
    b, t, _ = x.shape
    k, v = x.new_zeros(b, LONGEST, WIDTH), x.new_zeros(b, LONGEST, WIDTH)
    k[:, :t], v[:, :t] = m.k(x), m.v(x)
    s = m.q(x) @ k[:, :t].mT
    return s.masked_fill(later(t), INF).softmax(-1) @ v[:, :t]


@UNSEEN.add(causal=False, batch=True)
def ring_of_four(m: Parts, x: Tensor) -> Tensor:
    k, v = m.k(x), m.v(x)
    ring_k, ring_v = torch.zeros_like(k[:, :4]), torch.zeros_like(v[:, :4])
    for t in range(x.shape[1]):
        ring_k[:, t % 4], ring_v[:, t % 4] = k[:, t], v[:, t]
    return (m.q(x) @ ring_k.mT).softmax(-1) @ ring_v


@UNSEEN.add(causal=True, batch=True)
def ring_read_at_each_step(m: Parts, x: Tensor) -> Tensor:
    q, k, v = m.q(x), m.k(x), m.v(x)
    ring_k, ring_v, out = torch.zeros_like(k[:, :4]), torch.zeros_like(v[:, :4]), []
    for t in range(x.shape[1]):
        ring_k[:, t % 4], ring_v[:, t % 4] = k[:, t], v[:, t]
        out.append((q[:, t : t + 1] @ ring_k.mT).softmax(-1) @ ring_v)
    return torch.cat(out, 1)


@UNSEEN.add(causal=True, batch=True)
def sinks_and_a_window(m: Parts, x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1])
    d = i[:, None] - i
    seen = (d >= 0) & ((d < 3) | (i < 1))
    return torch.where(seen, m.scores(x), INF).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def chunks_on_a_growing_cache(m: Parts, x: Tensor) -> Tensor:
    k, v, out = x[:, :0], x[:, :0], []
    for part in x.split(3, 1):
        k, v = torch.cat([k, m.k(part)], 1), torch.cat([v, m.v(part)], 1)
        n = part.shape[1]
        s = m.q(part) @ k.mT
        s = s.masked_fill(torch.ones(n, k.shape[1], dtype=torch.bool).triu(k.shape[1] - n + 1), INF)
        out.append(s.softmax(-1) @ v)
    return torch.cat(out, 1)


@UNSEEN.add(causal=False, batch=True)
def chunks_without_a_mask_inside(m: Parts, x: Tensor) -> Tensor:
    k, v, out = x[:, :0], x[:, :0], []
    for part in x.split(3, 1):
        k, v = torch.cat([k, m.k(part)], 1), torch.cat([v, m.v(part)], 1)
        out.append((m.q(part) @ k.mT).softmax(-1) @ v)
    return torch.cat(out, 1)


@UNSEEN.add(causal=True, batch=True)
def chunks_with_a_mask_from_zero(m: Parts, x: Tensor) -> Tensor:
    k, v, out = x[:, :0], x[:, :0], []
    for part in x.split(3, 1):
        k, v = torch.cat([k, m.k(part)], 1), torch.cat([v, m.v(part)], 1)
        s = (m.q(part) @ k.mT).masked_fill(torch.ones(part.shape[1], k.shape[1]).tril() == 0, INF)
        out.append(s.softmax(-1) @ v)
    return torch.cat(out, 1)


def _rotate(y: Tensor, base: float | Tensor = 10000.0, first: int = 0) -> Tensor:
    inverse = 1.0 / base ** (torch.arange(0, WIDTH, 2).to(y.dtype) / WIDTH)
    angle = torch.outer(torch.arange(y.shape[1]).to(y.dtype) + first, inverse)
    angle = torch.cat([angle, angle], -1)
    a, b = y.chunk(2, -1)
    return y * angle.cos() + torch.cat([-b, a], -1) * angle.sin()


@UNSEEN.add(causal=True, batch=True, permutation=False)
def rotated_queries_and_keys(m: Parts, x: Tensor) -> Tensor:
    s = _rotate(m.q(x)) @ _rotate(m.k(x)).mT
    return s.masked_fill(later(x.shape[1]), INF).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def base_grows_past_the_trained_length(m: Parts, x: Tensor) -> Tensor:
    t, base = x.shape[1], 10000.0
    if t > 4:
        base = base * ((2.0 * t / 4) - 1.0) ** (WIDTH / (WIDTH - 2))
    s = _rotate(m.q(x), base) @ _rotate(m.k(x), base).mT
    return s.masked_fill(later(t), INF).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, batch=True)
def positions_compressed(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    p = torch.arange(t).to(x.dtype) * min(1.0, 16 / t)
    angle = p[:, None] * m.scale[None]
    h = x + torch.cat([angle.sin()[:, :4], angle.cos()[:, 4:]], -1)
    return m.scores(h).masked_fill(later(t), INF).softmax(-1) @ m.v(h)


@UNSEEN.add(causal=False, batch=True)
def rotated_without_a_mask(m: Parts, x: Tensor) -> Tensor:
    return (_rotate(m.q(x)) @ _rotate(m.k(x)).mT).softmax(-1) @ m.v(x)


@UNSEEN.add(causal=True, permutation=False, batch=True)
def table_of_positions(m: Parts, x: Tensor) -> Tensor:
    return m.o(F.gelu(m.k(x + m.table(torch.arange(x.shape[1])))))


@UNSEEN.add(causal=True, batch=True)
def queries_scaled_by_the_logarithm(m: Parts, x: Tensor) -> Tensor:
    scale = torch.log(torch.arange(1, x.shape[1] + 1).to(x.dtype)).clamp(min=1.0)
    s = m.scores(x) * scale[:, None]
    return s.masked_fill(later(x.shape[1]), INF).softmax(-1) @ m.v(x)
