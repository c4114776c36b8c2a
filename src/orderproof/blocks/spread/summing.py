"""Sums over ranks: of losses, and of the gradients of parameters that every rank holds.

    loss = sum over ranks of loss[r]          d loss / d parameter = sum over ranks of d loss[r] / d parameter

Every rank works backward from the loss, and what it finds that way is its own share: the gradient of the sum with
respect to its own term is 1, whatever the others add. The shares are then added once, by `sum_gradients`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, distributed, nn

from orderproof.blocks.spread.ranks import Ranks


def summed(x: Tensor, ranks: Ranks) -> Tensor:
    """The sum over ranks, alike on all; working backward from it, each rank finds the share of its own term."""
    if ranks.count == 1:
        return x
    return _Sum.apply(x, ranks)  # type: ignore[no-any-return, no-untyped-call]


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, ranks: Ranks) -> Tensor:
        del ctx
        total = x.clone(memory_format=torch.contiguous_format)
        distributed.all_reduce(total, group=ranks.group)
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        del ctx
        return gradient, None


def sum_gradients(parameters: Iterable[nn.Parameter], ranks: Ranks) -> None:
    """Add up the gradients of parameters over ranks, in place; one that no rank has stays None."""
    trained = [p for p in parameters if p.requires_grad]
    if ranks.count == 1 or not trained:
        return
    has = torch.tensor([p.grad is not None for p in trained], dtype=torch.int32, device=trained[0].device)
    distributed.all_reduce(has, group=ranks.group)
    reached = [p for p, times in zip(trained, has.tolist(), strict=True) if times]
    for kind in {(p.dtype, p.device) for p in reached}:
        alike = [p for p in reached if (p.dtype, p.device) == kind]
        flat = torch.cat([torch.zeros_like(p).reshape(-1) if p.grad is None else p.grad.reshape(-1) for p in alike])
        distributed.all_reduce(flat, group=ranks.group)
        for p, gradient in zip(alike, torch.split(flat, [p.numel() for p in alike]), strict=True):
            p.grad = gradient.view_as(p)
