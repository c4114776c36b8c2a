"""Let every rank give each other a piece: split along one axis, joined along another.

    rank r holds x[r]; cut along `split` into one piece a rank:  x[r] = (x[r][0], x[r][1], ...)
    rank s gets    concatenate along `join` of (x[0][s], x[1][s], ...)

This only moves numbers, each to one place. So its gradient moves them back: the same exchange with `split` and `join`
changed over.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, distributed
from torch.autograd.function import once_differentiable

from orderproof.blocks.spread.ranks import Ranks


def exchanged(x: Tensor, ranks: Ranks, *, split: int, join: int) -> Tensor:
    """What this rank has after the exchange; the axis ``split`` is a multiple of the number of ranks."""
    if ranks.count == 1:
        return x
    return _Exchange.apply(x, ranks, split, join)  # type: ignore[no-any-return, no-untyped-call]


class _Exchange(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, ranks: Ranks, split: int, join: int) -> Tensor:
        ctx.ranks, ctx.split, ctx.join = ranks, split, join
        return _exchange(x, ranks, split, join)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        return _exchange(gradient, ctx.ranks, ctx.join, ctx.split), None, None, None


def _exchange(x: Tensor, ranks: Ranks, split: int, join: int) -> Tensor:
    given = torch.stack(x.chunk(ranks.count, split))
    taken = torch.empty_like(given)
    distributed.all_to_all_single(taken, given, group=ranks.group)
    return torch.cat(taken.unbind(0), join)
