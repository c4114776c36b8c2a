"""All-reduce of losses, and of the gradients of replicated parameters.

    loss = sum over ranks of loss[r]          d loss / d parameter = sum over ranks of d loss[r] / d parameter

The backward pass of a rank gives its own contribution: the gradient of the sum with respect to its own term is 1.
`all_reduce_gradients` then adds the contributions once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, distributed, nn

from orderproof.blocks.sequence_parallel.rank_group import RankGroup


def all_reduce_sum(x: Tensor, ranks: RankGroup) -> Tensor:
    """The sum over ranks. Its gradient on each rank is that of the rank's own term."""
    if ranks.world_size == 1:
        return x
    return _AllReduceSum.apply(x, ranks)  # type: ignore[no-any-return, no-untyped-call]


class _AllReduceSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, ranks: RankGroup) -> Tensor:
        del ctx
        total = x.clone(memory_format=torch.contiguous_format)
        distributed.all_reduce(total, group=ranks.group)
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        del ctx
        return gradient, None


def all_reduce_gradients(parameters: Iterable[nn.Parameter], ranks: RankGroup) -> None:
    """Sum the gradients of parameters over ranks, in place; gradients that are None on all ranks stay None."""
    trained = [p for p in parameters if p.requires_grad]
    if ranks.world_size == 1 or not trained:
        return
    has = torch.tensor([p.grad is not None for p in trained], dtype=torch.int32, device=trained[0].device)
    distributed.all_reduce(has, group=ranks.group)
    reached = [p for p, times in zip(trained, has.tolist(), strict=True) if times]
    for kind in {(p.dtype, p.device) for p in reached}:
        same_kind = [p for p in reached if (p.dtype, p.device) == kind]
        flat = torch.cat([torch.zeros_like(p).reshape(-1) if p.grad is None else p.grad.reshape(-1) for p in same_kind])
        distributed.all_reduce(flat, group=ranks.group)
        for p, gradient in zip(same_kind, torch.split(flat, [p.numel() for p in same_kind]), strict=True):
            p.grad = gradient.view_as(p)
