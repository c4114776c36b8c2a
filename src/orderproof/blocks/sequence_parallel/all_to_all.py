"""All-to-all with gradient: split along one axis, concatenate along another.

    rank r holds x[r], split along `split` into one piece per rank:  x[r] = (x[r][0], x[r][1], ...)
    rank s gets  concatenate along `join` of (x[0][s], x[1][s], ...)

The exchange only moves values, so its gradient is the same exchange with `split` and `join` swapped.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, distributed
from torch.autograd.function import once_differentiable

from orderproof.blocks.sequence_parallel.rank_group import RankGroup


def all_to_all(x: Tensor, ranks: RankGroup, *, split: int, join: int) -> Tensor:
    """The pieces that this rank receives. The size of axis ``split`` must be a multiple of the number of ranks."""
    if ranks.world_size == 1:
        return x
    return _AllToAll.apply(x, ranks, split, join)  # type: ignore[no-any-return, no-untyped-call]


class _AllToAll(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, ranks: RankGroup, split: int, join: int) -> Tensor:
        ctx.ranks, ctx.split, ctx.join = ranks, split, join
        return _all_to_all(x, ranks, split, join)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        return _all_to_all(gradient, ctx.ranks, ctx.join, ctx.split), None, None, None


def _all_to_all(x: Tensor, ranks: RankGroup, split: int, join: int) -> Tensor:
    sent = torch.stack(x.chunk(ranks.world_size, split))
    received = torch.empty_like(sent)
    distributed.all_to_all_single(received, sent, group=ranks.group)
    return torch.cat(received.unbind(0), join)
