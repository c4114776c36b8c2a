"""Give every rank the parts of all, and take back the gradient of each part from all.

    whole = concatenate(part[0], part[1], ...)                                     on every rank
    d loss / d part[r] = sum over ranks s of (d loss[s] / d whole)[places of r],   loss = sum over s of loss[s]

Each rank has made a loss of its own from the whole, so a part is owed what every one of them says of it: a gather
forward is a sum and a scatter backward. Parts are of one size.
Collectives read memory, not strides. What comes back from fused attention has its axes permuted, and what is sent
must be made contiguous first: `torch.distributed.nn.functional.all_gather` left that out, and over gloo its gradients
are wrong, without a word.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, distributed
from torch.autograd.function import once_differentiable

from orderproof.blocks.spread.ranks import Ranks


def gathered(part: Tensor, dim: int, ranks: Ranks | None = None) -> Tensor:
    """The parts of every rank along one axis, in the order of the ranks."""
    ranks = Ranks.here() if ranks is None else ranks
    if ranks.count == 1:
        return part
    return _Gather.apply(part, dim, ranks)  # type: ignore[no-any-return, no-untyped-call]


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, part: Tensor, dim: int, ranks: Ranks) -> Tensor:
        ctx.dim, ctx.ranks = dim, ranks
        given = part.contiguous()
        parts = [torch.empty_like(given) for _ in range(ranks.count)]
        distributed.all_gather(parts, given, group=ranks.group)
        return torch.cat(parts, dim)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        each = [part.contiguous() for part in gradient.chunk(ctx.ranks.count, ctx.dim)]
        own = torch.empty_like(each[0])
        distributed.reduce_scatter(own, each, group=ctx.ranks.group)
        return own, None, None
