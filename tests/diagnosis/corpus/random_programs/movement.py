"""Operations of random programs that move, join or look up entries."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.diagnosis.corpus.random_programs.values import (
    BATCH,
    TOKENS,
    WIDTH,
    Env,
    Skip,
    Value,
    floating,
    operation,
    several,
)


@operation
def swapped(env: Env, a: int, b: int, c: int, d: int) -> Value:
    v = env.pick(a, lambda t: t.dim() >= 2)
    return Value(v.tensor.transpose(b % v.tensor.dim(), c % v.tensor.dim()), v.exact)


@operation
def merged(env: Env, a: int, b: int, c: int, d: int) -> Value:
    v = env.pick(a, lambda t: t.dim() >= 2)
    k = b % (v.tensor.dim() - 1)
    return Value(v.tensor.flatten(k, k + 1), v.exact)


@operation
def parted(env: Env, a: int, b: int, c: int, d: int) -> Value:
    v = env.pick(a, several)
    k = b % v.tensor.dim()
    size = v.tensor.shape[k]
    left = [BATCH, TOKENS, WIDTH, 2, TOKENS * WIDTH][c % 5]
    if size % left or left == size:
        raise Skip
    return Value(v.tensor.unflatten(k, (left, size // left)), v.exact)


@operation
def reshaped(env: Env, a: int, b: int, c: int, d: int) -> Value:
    v = env.pick(a)
    shapes = [(BATCH, TOKENS, WIDTH), (-1,), (TOKENS, -1), (BATCH, WIDTH, TOKENS), (BATCH, -1), (BATCH, TOKENS, -1)]
    return Value(v.tensor.reshape(shapes[b % 6]), v.exact)


@operation
def sliced(env: Env, a: int, b: int, c: int, d: int) -> Value:
    v = env.pick(a, several)
    k = b % v.tensor.dim()
    cut = [slice(1, None), slice(None, -1), slice(None, None, 2), slice(0, 2), slice(0, 1)][c % 5]
    return Value(v.tensor[(slice(None),) * k + (cut,)], v.exact)


@operation
def selected(env: Env, a: int, b: int, c: int, d: int) -> Value:
    v = env.pick(a, several)
    k = b % v.tensor.dim()
    return Value(v.tensor.select(k, c % v.tensor.shape[k]), v.exact)


@operation
def joined(env: Env, a: int, b: int, c: int, d: int) -> Value:
    v, w = env.pick(a, several), env.pick(b, several)
    x, y = floating(v), floating(w)
    if d % 3 == 2:
        return Value(torch.stack([x, y], c % (x.dim() + 1)), v.exact and w.exact)
    return Value(torch.cat([x, y], c % x.dim()), v.exact and w.exact)


@operation
def halves(env: Env, a: int, b: int, c: int, d: int) -> Tensor:
    x = floating(env.pick(a, several))
    first, second = x.chunk(2, b % x.dim())
    return torch.cat([-second, first], b % x.dim())


@operation
def turned(env: Env, a: int, b: int, c: int, d: int) -> Value:
    v = env.pick(a, several)
    k = b % v.tensor.dim()
    return Value(v.tensor.flip(k) if c % 2 else v.tensor.roll(1 + d % 3, k), v.exact)


@operation
def padded(env: Env, a: int, b: int, c: int, d: int) -> Tensor:
    return F.pad(floating(env.pick(a, lambda t: t.dim() >= 2)), [(1, 0), (0, 1), (0, 0, 1, 0), (0, 0, 0, 1)][b % 4])


@operation
def widened(env: Env, a: int, b: int, c: int, d: int) -> Value:
    v = env.pick(a)
    k = b % (v.tensor.dim() + 1)
    x = v.tensor.unsqueeze(k)
    sizes = [-1] * x.dim()
    sizes[k] = [TOKENS, 2, 1, WIDTH][c % 4]
    return Value(x.expand(sizes), v.exact)


@operation
def averaged_and_spread(env: Env, a: int, b: int, c: int, d: int) -> Tensor:
    x = floating(env.pick(a, several))
    return x.mean(b % x.dim(), keepdim=True).expand_as(x)


@operation
def repeated(env: Env, a: int, b: int, c: int, d: int) -> Value:
    v = env.pick(a, several)
    k = b % v.tensor.dim()
    if c % 2:
        return Value(v.tensor.repeat_interleave(2, k), v.exact)
    return Value(v.tensor.repeat([2 if i == k else 1 for i in range(v.tensor.dim())]), v.exact)


@operation
def picked_by_constant(env: Env, a: int, b: int, c: int, d: int) -> Value:
    v = env.pick(a, several)
    k = b % v.tensor.dim()
    size = v.tensor.shape[k]
    index = [torch.arange(size).flip(0), torch.zeros(size).long(), (torch.arange(size) + 1) % size, torch.arange(size)]
    chosen_index = index[c % 4]
    if d % 3 == 0:
        return Value(v.tensor.index_select(k, chosen_index), v.exact)
    if d % 3 == 1:
        return Value(v.tensor[(slice(None),) * k + (chosen_index,)], v.exact)
    spread = chosen_index.view([-1 if i == k else 1 for i in range(v.tensor.dim())]).expand(v.tensor.shape)
    return Value(v.tensor.gather(k, spread), v.exact)


@operation
def looked_up(env: Env, a: int, b: int, c: int, d: int) -> Tensor:
    index = (floating(env.pick(a, exact=True)) > 0).long() + b % 3
    return F.embedding(index, env.owner.table if c % 2 else torch.linspace(-1, 1, 20).view(TOKENS, WIDTH))


@operation
def looked_up_in_tokens(env: Env, a: int, b: int, c: int, d: int) -> Tensor:
    v = env.pick(a, lambda t: t.dim() == 3 and t.shape[1] == TOKENS)
    index = (floating(env.pick(b, lambda t: t.shape == v.tensor.shape, exact=True)) > 0).long() + c % 3
    return floating(v).gather(1, index)
