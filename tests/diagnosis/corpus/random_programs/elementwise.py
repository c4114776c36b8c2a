"""Elementwise operations of random programs."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.diagnosis.corpus.random_programs.values import (
    SHAPES,
    TOKENS,
    TRIANGLE,
    Env,
    Value,
    floating,
    operation,
    symmetric_or_not,
)


@operation
def smooth(env: Env, a: int, b: int, c: int, d: int) -> Tensor:
    x = floating(env.pick(a))
    return [torch.tanh, torch.sigmoid, F.gelu, torch.sin, lambda t: t * 0.5 + 1.0, torch.square, F.silu][b % 7](x)


@operation
def bent(env: Env, a: int, b: int, c: int, d: int) -> Value:
    v = env.pick(a)
    x = floating(v)
    made = [torch.relu, torch.abs, torch.neg, lambda t: t.clamp(-0.5, 0.5), torch.clone][b % 5](x)
    return Value(made, v.exact)


@operation
def jump(env: Env, a: int, b: int, c: int, d: int) -> Value:
    x = floating(env.pick(a, exact=True))
    return Value([torch.sign, torch.floor, lambda t: (t > 0).long(), lambda t: (t > 0.3).float()][b % 4](x), exact=True)


@operation
def two(env: Env, a: int, b: int, c: int, d: int) -> Tensor:
    x, y = floating(env.pick(a)), floating(env.pick(b))
    return [lambda: x + 0.7 * y, lambda: x * y, lambda: x - 0.3 * y, lambda: torch.maximum(x, y)][c % 4]()


@operation
def with_constant(env: Env, a: int, b: int, c: int, d: int) -> Tensor:
    x = floating(env.pick(a))
    constant = symmetric_or_not(b) if d % 2 else getattr(env.owner, f"buffer{b % 12}")
    return [lambda: x + constant, lambda: x * constant, lambda: x / (2 + constant.abs())][c % 3]()


@operation
def with_parameter(env: Env, a: int, b: int, c: int, d: int) -> Tensor:
    x = floating(env.pick(a))
    parameter = getattr(env.owner, f"{('zero', 'drawn')[d % 2]}{b % len(SHAPES)}")
    return [lambda: x + parameter, lambda: x * parameter, lambda: x + parameter * x, lambda: parameter.expand_as(x)][
        c % 4
    ]()


@operation
def chosen(env: Env, a: int, b: int, c: int, d: int) -> Value:
    v, w = env.pick(a), env.pick(b)
    x, y = floating(v), floating(w)
    condition = [TRIANGLE, ~TRIANGLE, torch.eye(TOKENS).bool(), torch.arange(TOKENS)[:, None] < 2, torch.ones(1).bool()]
    return Value(torch.where(condition[c % 5], x, y), v.exact and w.exact)


@operation
def chosen_by_data(env: Env, a: int, b: int, c: int, d: int) -> Tensor:
    question = floating(env.pick(c, exact=True)) > 0
    return torch.where(question, floating(env.pick(a)), floating(env.pick(b)))


@operation
def filled(env: Env, a: int, b: int, c: int, d: int) -> Value:
    v = env.pick(a, lambda t: t.is_floating_point())
    masks = [TRIANGLE, torch.eye(TOKENS).bool(), torch.arange(TOKENS)[:, None] == TOKENS - 1, TRIANGLE.T]
    value = [0.0, float("-inf"), -1e9, torch.finfo(torch.float32).min, -1e4, 1.0][c % 6]
    return Value(v.tensor.masked_fill(masks[b % 4], value), v.exact)
