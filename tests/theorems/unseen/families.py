"""Attention as in recent model families."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.unseen.claims import HEADS, WIDTH, Corpus, Parts, later

UNSEEN = Corpus()
INF = float("-inf")
HEAD = WIDTH // HEADS


def _attend(q: Tensor, k: Tensor, v: Tensor, hidden: Tensor | None = None) -> Tensor:
    s = q @ k.transpose(-2, -1) * (q.shape[-1] ** -0.5)
    if hidden is not None:
        s = s.masked_fill(hidden, torch.finfo(s.dtype).min)
    return s.softmax(-1) @ v


def _rms(y: Tensor, eps: float = 1e-6) -> Tensor:
    return y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + eps)


def _rotated(y: Tensor, positions: Tensor) -> Tensor:
    half = y.shape[-1] // 2
    frequency = 10000.0 ** (-torch.arange(half).to(y.dtype) / half)
    angle = positions[:, None].to(y.dtype) * frequency
    cos, sin = angle.cos().repeat(1, 2), angle.sin().repeat(1, 2)
    return y * cos + torch.cat((-y[..., half:], y[..., :half]), -1) * sin


@UNSEEN.add(causal=True, batch=True)
def capped_scores_in_alternating_windows(m: Parts, x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1])
    for window in (3, None):
        q, k, v = m.heads(_rms(x))
        s = 20.0 * torch.tanh(q @ k.mT / math.sqrt(HEAD) / 20.0)
        hidden = i[None] > i[:, None]
        if window is not None:
            hidden = hidden | (i[:, None] - i[None] >= window)
        w = F.softmax(s.masked_fill(hidden, torch.finfo(s.dtype).min), dim=-1)
        x = x + _rms(m.join(w @ v))
    return x


@UNSEEN.add(causal=False, batch=True)
def windows_that_bound_the_past_only(m: Parts, x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1])
    for window in (3, None):
        q, k, v = m.heads(_rms(x))
        hidden = i[None] > i[:, None] if window is None else i[:, None] - i[None] >= window
        x = x + m.join(_attend(q, k, v, hidden))
    return x


@UNSEEN.add(causal=True, batch=True, permutation=False)
def keys_and_queries_by_root_mean_square(m: Parts, x: Tensor) -> Tensor:
    q, k, v = m.heads(x)
    i = torch.arange(x.shape[1])
    q, k = _rotated(_rms(q) * m.scale[:HEAD], i), _rotated(_rms(k) * m.scale[:HEAD], i)
    return x + m.join(F.scaled_dot_product_attention(q, k, v, is_causal=True))


@UNSEEN.add(causal=False, batch=True)
def queries_normalized_over_tokens_and_features(m: Parts, x: Tensor) -> Tensor:
    q, k, v = m.heads(x)
    q, k = (F.layer_norm(y, y.shape[-2:]) for y in (q, k))
    return x + m.join(F.scaled_dot_product_attention(q, k, v, is_causal=True))


@UNSEEN.add(causal=True, batch=True)
def latent_keys_with_a_rotated_part(m: Parts, x: Tensor) -> Tensor:
    b, t, _ = x.shape
    latent, rotated = m.k(x).split([WIDTH - 2, 2], dim=-1)
    latent = _rms(latent)
    nope = F.linear(latent, m.square[: HEADS * HEAD, : WIDTH - 2]).view(b, t, HEADS, HEAD).transpose(1, 2)
    v = F.linear(latent, m.square[8 : 8 + HEADS * HEAD, : WIDTH - 2]).view(b, t, HEADS, HEAD).transpose(1, 2)
    q = F.linear(x, m.square[16 : 16 + HEADS * (HEAD + 2), :WIDTH]).view(b, t, HEADS, HEAD + 2).transpose(1, 2)
    i = torch.arange(t)
    q = torch.cat([q[..., :HEAD], _rotated(q[..., HEAD:], i)], -1)
    k = torch.cat([nope, _rotated(rotated, i).unsqueeze(1).expand(-1, HEADS, -1, -1)], -1)
    return m.join(_attend(q, k, v, later(t)))


@UNSEEN.add(causal=True, batch=True)
def differential_heads_with_a_norm_of_each(m: Parts, x: Tensor) -> Tensor:
    b, t, _ = x.shape
    q, k = (f(x).view(b, t, 2 * HEADS, HEAD // 2).transpose(1, 2) for f in (m.q, m.k))
    v = m.v(x).view(b, t, HEADS, HEAD).transpose(1, 2)
    s = q @ k.transpose(-1, -2) / math.sqrt(HEAD // 2)
    s = s + torch.triu(torch.full((t, t), INF), 1)
    w = torch.softmax(s, dim=-1).view(b, HEADS, 2, t, t)
    share = (m.decay[:2] * m.scale[:2]).sum().exp() - (m.decay[2:4] * m.scale[2:4]).sum().exp() + 0.8
    y = (w[:, :, 0] - share * w[:, :, 1]) @ v
    return m.join(_rms(y) * (1 - 0.8))


@UNSEEN.add(causal=False, batch=True)
def differential_heads_with_a_group_norm(m: Parts, x: Tensor) -> Tensor:
    q, k, v = m.heads(x)
    half = HEAD // 2
    y = _attend(q[..., :half], k[..., :half], v, later(x.shape[1]))
    y = y - 0.3 * _attend(q[..., half:], k[..., half:], v, later(x.shape[1]))
    return m.join(F.group_norm(y, HEADS))


@UNSEEN.add(causal=True, batch=True)
def gate_after_the_fused_call(m: Parts, x: Tensor) -> Tensor:
    h = m.norm(x)
    y = F.scaled_dot_product_attention(*m.heads(h), is_causal=True).transpose(1, 2).flatten(2)
    return x + m.o(y * torch.sigmoid(m.gate(h)))


@UNSEEN.add(causal=False, batch=True)
def gate_of_the_mean_token(m: Parts, x: Tensor) -> Tensor:
    y = F.scaled_dot_product_attention(*m.heads(x), is_causal=True).transpose(1, 2).flatten(2)
    return x + m.o(y * torch.sigmoid(m.gate(x.mean(1, keepdim=True))))


@UNSEEN.add(causal=True, batch=True)
def keys_cached_once_for_the_upper_layers(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    d = torch.arange(t)[:, None] - torch.arange(t)[None]
    q, k, v = m.heads(m.norm(x))
    x = x + m.join(_attend(q, k, v, (d < 0) | (d > 3)))
    _, k, v = m.heads(m.norm(x))
    for _ in range(2):
        q = m.heads(m.norm(x))[0]
        x = x + m.join(_attend(q, k, v, d < 0))
        x = x + m.down(F.silu(m.up(m.norm(x))))
    return x


@UNSEEN.add(causal=False, batch=True)
def keys_cached_once_and_read_without_a_mask(m: Parts, x: Tensor) -> Tensor:
    t = x.shape[1]
    q, k, v = m.heads(m.norm(x))
    x = x + m.join(_attend(q, k, v, later(t)))
    _, k, v = m.heads(m.norm(x))
    for _ in range(2):
        x = x + m.join(_attend(m.heads(m.norm(x))[0], k, v))
    return x


@UNSEEN.add(causal=True, batch=True)
def heads_talk_before_and_after(m: Parts, x: Tensor) -> Tensor:
    q, k, v = m.heads(x)
    s = torch.einsum("bhij,hg->bgij", q @ k.mT / math.sqrt(HEAD), m.square[:HEADS, :HEADS])
    w = s.masked_fill(later(x.shape[1]), -torch.finfo(s.dtype).max).softmax(-1)
    return m.join(torch.einsum("bhij,hg->bgij", w, m.square[2 : 2 + HEADS, :HEADS]) @ v)


@UNSEEN.add(causal=False, batch=True)
def heads_talk_after_the_mask(m: Parts, x: Tensor) -> Tensor:
    q, k, v = m.heads(x)
    s = (q @ k.mT).masked_fill(later(x.shape[1]), -1e9)
    mix = torch.tensor([[1.0, -1.0], [0.5, -0.5]], dtype=x.dtype)
    return m.join(torch.einsum("bhij,hg->bgij", s, mix).softmax(-1) @ v)


def _with_past(
    m: Parts, x: Tensor, past: tuple[Tensor, Tensor] | None, *, masked: bool = True
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """One key and value head for all queries, after those of a cache."""
    b, n, _ = x.shape
    q = m.q(x).view(b, n, HEADS, HEAD).transpose(1, 2)
    k, v = m.k(x)[:, None, :, :HEAD], m.v(x)[:, None, :, :HEAD]
    if past is not None:
        k, v = torch.cat((past[0], k), -2), torch.cat((past[1], v), -2)
    s = q @ k.transpose(-1, -2)
    if masked:
        seen = torch.ones(n, k.shape[-2], dtype=torch.bool).tril(k.shape[-2] - n)
        s = torch.where(seen, s, INF)
    return m.join(s.softmax(-1) @ v), (k, v)


@UNSEEN.add(causal=True, batch=True)
def one_key_head_after_a_past(m: Parts, x: Tensor) -> Tensor:
    first, past = _with_past(m, x[:, :3], None)
    second, _ = _with_past(m, x[:, 3:], past)
    return torch.cat([first, second], 1)


@UNSEEN.add(causal=False, batch=True)
def one_key_head_unmasked_after_a_past(m: Parts, x: Tensor) -> Tensor:
    first, past = _with_past(m, x[:, :3], None)
    second, _ = _with_past(m, x[:, 3:], past, masked=False)
    return torch.cat([first, second], 1)


@UNSEEN.add(causal=True, batch=True)
def values_of_every_layer_before(m: Parts, x: Tensor) -> Tensor:
    kept: list[Tensor] = []
    for _ in range(3):
        q, k, v = m.heads(m.norm(x))
        kept.append(v)
        mixed = torch.stack(kept).mean(0)
        x = x + m.join(F.scaled_dot_product_attention(q, k, mixed, is_causal=True))
    return x


@UNSEEN.add(causal=True, batch=True)
def attention_and_network_in_parallel(m: Parts, x: Tensor) -> Tensor:
    h = m.norm(x)
    q, k, v = m.heads(h)
    s = q @ k.mT / math.sqrt(HEAD)
    bias = torch.where(m.triangle[..., : x.shape[1], : x.shape[1]], 0.0, torch.finfo(x.dtype).min)
    return x + m.join((s + bias).softmax(-1) @ v) + m.down(F.gelu(m.up(h)))


@UNSEEN.add(causal=True, batch=True)
def grouped_heads_of_the_fused_call(m: Parts, x: Tensor) -> Tensor:
    q, k, v = m.heads(x)
    seen = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
    return m.join(F.scaled_dot_product_attention(q, k[:, :1], v[:, :1], attn_mask=seen, enable_gqa=True))


@UNSEEN.add(causal=True, batch=True)
def zero_key_of_the_layer_of_torch(m: Parts, x: Tensor) -> Tensor:
    h = x.transpose(0, 1)
    weight = torch.cat([m.q.weight, m.k.weight, m.v.weight])
    bias = torch.cat([m.q.bias, m.k.bias, m.v.bias])
    y, _ = F.multi_head_attention_forward(
        h, h, h, WIDTH, HEADS, weight, bias, None, None, True, 0.0, m.o.weight, m.o.bias,
        training=False, need_weights=False, attn_mask=later(x.shape[1]),
    )  # fmt: skip
    return x + y.transpose(0, 1)


@UNSEEN.add(causal=False, batch=True)
def softmax_along_the_queries(m: Parts, x: Tensor) -> Tensor:
    q, k, v = m.heads(x)
    s = (q @ k.mT).masked_fill(later(x.shape[1]), INF)
    return m.join(s.softmax(-2) @ v)


@UNSEEN.add(causal=True, batch=True)
def depthwise_heads_before_attention(m: Parts, x: Tensor) -> Tensor:
    q, k, v = (m.depthwise(f(x).mT)[..., : x.shape[1]].mT for f in (m.q, m.k, m.v))
    w = F.relu(q @ k.mT).square() / WIDTH
    return x + m.o(w.masked_fill(later(x.shape[1]), 0.0) @ v)


@UNSEEN.add(causal=False, batch=True)
def next_token_joined_in_an_extra_head(m: Parts, x: Tensor) -> Tensor:
    h = x + m.join(F.scaled_dot_product_attention(*m.heads(m.norm(x)), is_causal=True))
    ahead = torch.cat([x[:, 1:], torch.zeros_like(x[:, :1])], 1)
    both = torch.cat([_rms(h), _rms(ahead)], -1)
    return m.o(F.linear(both, m.square[:WIDTH, : 2 * WIDTH]))
