"""Reductions, norms, scans, writes, windows and pools of random programs."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.diagnosis.corpus.random_programs.values import (
    TOKENS,
    TRIANGLE,
    WIDTH,
    Env,
    Value,
    floating,
    has_tokens,
    operation,
    several,
)


@operation
def reduced(env: Env, a: int, b: int, c: int, d: int) -> Tensor:
    x = floating(env.pick(a, several))
    k, keep = b % x.dim(), bool(d % 2)
    made = [
        lambda: x.sum(k, keepdim=keep),
        lambda: x.mean(k, keepdim=keep),
        lambda: x.amax(k, keepdim=keep),
        lambda: x.logsumexp(k, keepdim=keep),
        lambda: x.var(k, correction=0, keepdim=keep),
        lambda: x.mean((-1, -2), keepdim=keep) if x.dim() > 1 else x.mean(),
        lambda: x.norm(dim=k, keepdim=keep),
    ]
    return made[c % 7]()


@operation
def largest(env: Env, a: int, b: int, c: int, d: int) -> Value:
    v = env.pick(a, lambda t: several(t) and t.is_floating_point(), exact=True)
    k = b % v.tensor.dim()
    found = [
        lambda: v.tensor.max(k)[d % 2],
        lambda: v.tensor.min(k, keepdim=True)[d % 2],
        lambda: v.tensor.argmax(k),
        lambda: v.tensor.topk(2, k)[d % 2],
        lambda: v.tensor.sort(k)[0],
        lambda: v.tensor.cummax(k)[0],
    ][c % 6]()
    return Value(found, exact=True)


@operation
def normed(env: Env, a: int, b: int, c: int, d: int) -> Tensor:
    x = floating(env.pick(a, several))
    if d % 3 == 2 and x.dim() >= 3:
        return F.group_norm(x, 1 if x.shape[1] % 2 else 2)
    count = 1 + (b % 2 if x.dim() > 1 else 0)
    shape = tuple(x.shape[-count:])
    weights = {(WIDTH,): env.owner.drawn0, (TOKENS, WIDTH): env.owner.drawn2, (TOKENS,): env.owner.drawn4}
    weight = weights.get(shape) if c % 2 else None
    return F.layer_norm(x, shape, weight) if d % 3 else F.rms_norm(x, shape, weight, eps=1e-5)


@operation
def scanned(env: Env, a: int, b: int, c: int, d: int) -> Tensor:
    x = floating(env.pick(a, several))
    return x.cumsum(b % x.dim())


@operation
def triangular(env: Env, a: int, b: int, c: int, d: int) -> Value:
    v = env.pick(a, lambda t: t.dim() >= 2)
    return Value(v.tensor.tril(c % 2 - 1) if b % 2 else v.tensor.triu(c % 2), v.exact)


@operation
def written(env: Env, a: int, b: int, c: int, d: int) -> Value:
    v = env.pick(a, lambda t: several(t) and t.is_floating_point())
    x = v.tensor
    k = b % x.dim()
    row = x.select(k, 0)
    if d % 3 == 2:
        return Value(x.slice_scatter(x.narrow(k, 0, 1) * 0.5, k, x.shape[k] - 1, None))
    return Value(x.select_scatter(torch.full_like(row, 0.25) if d % 3 else row * 0.5, k, c % x.shape[k]))


@operation
def windows(env: Env, a: int, b: int, c: int, d: int) -> Value:
    v = env.pick(a, several)
    return Value(v.tensor.unfold(b % v.tensor.dim(), 2, 1), v.exact)


@operation
def bordered(env: Env, a: int, b: int, c: int, d: int) -> Value:
    v = env.pick(a, lambda t: t.dim() in (2, 3, 4) and t.is_floating_point())
    widths = (c % 3, d % 3) if v.tensor.dim() < 4 else (0, 0, c % 3, d % 3)
    return Value(F.pad(v.tensor, widths, ("reflect", "replicate", "circular")[b % 3]), v.exact)


@operation
def pooled(env: Env, a: int, b: int, c: int, d: int) -> Value:
    v = env.pick(a, lambda t: t.dim() in (2, 3) and t.is_floating_point(), exact=b % 6 == 3)
    x = v.tensor if d % 2 else v.tensor.mT
    made = [
        lambda: F.max_pool1d(x, 2, 1, padding=1),
        lambda: F.max_pool1d(x, 2, 1 + c % 2, dilation=1 + c % 3, padding=1, ceil_mode=bool(d % 3)),
        lambda: F.avg_pool1d(x, 2 + c % 2, 1, padding=1, count_include_pad=bool(d % 3)),
        lambda: F.max_pool1d(x, 3, 1, padding=1, return_indices=True)[1],
        lambda: F.adaptive_avg_pool1d(x, 1 + c % 4),
        lambda: F.max_pool2d(x[None], (2, 1), 1, padding=(1, 0))[0],
    ][b % 6]()
    return Value(made if d % 2 else made.mT, v.exact and b % 6 not in (2, 4))


@operation
def enlarged(env: Env, a: int, b: int, c: int, d: int) -> Value:
    v = env.pick(a, lambda t: t.dim() == 3 and t.is_floating_point())
    n, w = v.tensor.shape[1:]
    size, mode = (
        [(2 * n, w), (n, 2 * w), (n + 1, w), (n - 1, w), (n, w)][b % 5],
        ("nearest", "bilinear", "bicubic")[c % 3],
    )
    made = F.interpolate(v.tensor[:, None], size=size, mode=mode, align_corners=bool(d % 2) if c % 3 else None)[:, 0]
    return Value(made, v.exact and not c % 3)


@operation
def sampled(env: Env, a: int, b: int, c: int, d: int) -> Tensor:
    x = floating(env.pick(a, lambda t: t.dim() == 3))
    y = floating(env.pick(b, lambda t: t.dim() == 3 and t.shape[0] == x.shape[0] and t.shape[-1] > 1))
    mode = ("zeros", "border", "reflection")[c % 3]
    return F.grid_sample(x[:, None], y[:, :, None, :2].sin(), padding_mode=mode, align_corners=bool(d % 2))[:, 0]


@operation
def marked(env: Env, a: int, b: int, c: int, d: int) -> Value:
    x = env.pick(a, lambda t: has_tokens(t) and t.is_floating_point(), exact=True).tensor
    if c % 3 and x.shape[-1] == TOKENS:
        x = x.masked_fill(TRIANGLE, -torch.inf if c % 3 == 1 else -1e9)
    places = x.topk(1 + b % x.shape[-1], -1, largest=d % 4 > 0)[1]
    return Value(torch.zeros(*x.shape[:-1], x.shape[-1] + d % 2).scatter(-1, places, 1.0), exact=True)
