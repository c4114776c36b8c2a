"""Products, attention and convolutions of random programs."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.diagnosis.corpus.random_programs.values import (
    TOKENS,
    TRIANGLE,
    WIDTH,
    Env,
    floating,
    has_tokens,
    operation,
    several,
)


@operation
def product(env: Env, a: int, b: int, c: int, d: int) -> Tensor:
    x, y = floating(env.pick(a, several)), floating(env.pick(b, several))
    if c % 2 and y.dim() > 1:
        y = y.transpose(-1, -2)
    return (x @ y) * 0.4


@operation
def linear(env: Env, a: int, b: int, c: int, d: int) -> Tensor:
    if b % 3:
        return F.linear(floating(env.pick(a, lambda t: t.dim() and t.shape[-1] == WIDTH)), env.owner.square)
    return F.linear(floating(env.pick(a, lambda t: t.dim() and t.shape[-1] == TOKENS)), env.owner.across)


@operation
def summed(env: Env, a: int, b: int, c: int, d: int) -> Tensor:
    x, y = (floating(env.pick(k, lambda t: t.dim() == 3)) for k in (a, b))
    equation = ["bij,bkj->bik", "bij,bij->bi", "bij,bij->bj", "bij,bjk->bik", "bij,bik->bjk", "bij,bkl->bijkl"]
    return torch.einsum(equation[c % 6], x, y) * 0.4


def scores_masked(scores: Tensor, kind: int, tier: int) -> Tensor:
    mask = [TRIANGLE, ~TRIANGLE & ~torch.eye(TOKENS).bool(), torch.eye(TOKENS).bool(), TRIANGLE.roll(1, 0)][kind % 4]
    if tier % 8 == 7:
        return scores
    if tier % 8 == 6:
        return torch.where(mask, torch.full((), float("-inf")), scores)
    value = [float("-inf"), torch.finfo(torch.float32).min, -1e9, -1e4, float("-inf"), 0.0][tier % 8]
    if tier % 2:
        return scores.masked_fill(mask, value)
    return scores + torch.zeros(TOKENS, TOKENS).masked_fill(mask, value)


@operation
def attend(env: Env, a: int, b: int, c: int, d: int) -> Tensor:
    q, k, v = (floating(env.pick(i, has_tokens)) for i in (a, a + b, b))
    scores = scores_masked(q @ k.transpose(-1, -2) * 0.5, c, d)
    return torch.softmax(scores, -1) @ v


@operation
def attend_whole(env: Env, a: int, b: int, c: int, d: int) -> Tensor:
    q, k, v = (floating(env.pick(i, lambda t: has_tokens(t) and t.dim() in (3, 4))) for i in (a, a + b, b))
    if c % 3 == 0:
        return F.scaled_dot_product_attention(q, k, v, is_causal=bool(d % 2))
    mask = scores_masked(torch.zeros(TOKENS, TOKENS), d, c)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask if d % 2 else mask == 0)


@operation
def masked_scores(env: Env, a: int, b: int, c: int, d: int) -> Tensor:
    return scores_masked(floating(env.pick(a, lambda t: has_tokens(t) and t.shape[-1] == TOKENS)), b, c)


@operation
def softmax(env: Env, a: int, b: int, c: int, d: int) -> Tensor:
    x = floating(env.pick(a, several))
    return (torch.softmax, torch.softmax, torch.log_softmax)[c % 3](x, b % x.dim())


@operation
def conv(env: Env, a: int, b: int, c: int, d: int) -> Tensor:
    x = floating(env.pick(a, lambda t: t.dim() == 3 and t.shape[1] == WIDTH))
    kernel = env.owner.kernel
    if b % 2:
        return F.conv1d(x, kernel[:, :, :1])
    return F.conv1d(F.pad(x, (2, 0)) if c % 2 else x, kernel, padding=0 if c % 2 else 1)
