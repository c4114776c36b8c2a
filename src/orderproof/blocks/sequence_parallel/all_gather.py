"""All-gather with gradient: reduce-scatter in the backward pass.

    whole = concatenate(shard[0], shard[1], ...)                                    on every rank
    d loss / d shard[r] = sum over ranks s of (d loss[s] / d whole)[tokens of r],   loss = sum over s of loss[s]

Each rank computes its own loss from the whole, so the gradient of a shard is summed over ranks. Shards have one size.
Collectives read memory and ignore strides. Fused attention returns gradients with permuted axes, so they must be made
contiguous before sending. `torch.distributed.nn.functional.all_gather` does not, and over gloo its gradients are
silently wrong.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, distributed
from torch.autograd.function import once_differentiable

from orderproof.blocks.sequence_parallel.rank_group import RankGroup


def all_gather(shard: Tensor, dim: int, ranks: RankGroup | None = None) -> Tensor:
    """The shards of all ranks, concatenated along one axis in rank order."""
    ranks = RankGroup.current() if ranks is None else ranks
    if ranks.world_size == 1:
        return shard
    return _AllGather.apply(shard, dim, ranks)  # type: ignore[no-any-return, no-untyped-call]


class _AllGather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, shard: Tensor, dim: int, ranks: RankGroup) -> Tensor:
        ctx.dim, ctx.ranks = dim, ranks
        contiguous = shard.contiguous()
        shards = [torch.empty_like(contiguous) for _ in range(ranks.world_size)]
        distributed.all_gather(shards, contiguous, group=ranks.group)
        return torch.cat(shards, dim)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        each = [shard.contiguous() for shard in gradient.chunk(ctx.ranks.world_size, ctx.dim)]
        own = torch.empty_like(each[0])
        distributed.reduce_scatter(own, each, group=ctx.ranks.group)
        return own, None, None
