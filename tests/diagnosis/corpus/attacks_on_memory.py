"""Programs that write through views, read beyond a slice or divide a window by a negative number."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.diagnosis.corpus.attack import Attack
from tests.diagnosis.corpus.parts import attend, rare
from tests.diagnosis.walking import TOKENS, WIDTH


def written(x: Tensor, row: Tensor) -> Tensor:
    """The running sum before and after a write to a view of what is summed, and their difference."""
    held = x.clone()
    before = held.cumsum(1)
    held.view(-1, WIDTH).view(2, TOKENS, WIDTH)[:, 0].add_(row)
    return before + held.cumsum(1)


def unless_zero(x: Tensor, zero: Tensor) -> Tensor:
    """The mean of everything, but where something is zero, as it is said to be."""
    return x + torch.where(zero == 0, 0.0, x.mean((1, 2))[:, None, None])


def pooled(x: Tensor, ahead: int) -> Tensor:
    """Means over a token, the one before it and some ahead, divided by minus three."""
    held = F.pad(x[:, None], (0, 0, 1, ahead))
    return F.avg_pool2d(held, (2 + ahead, 1), stride=1, divisor_override=-3)[:, 0]


MEMORY = [
    Attack(
        "two_constants_of_one_shape",
        "causal",
        lambda x: attend(
            attend(x, torch.ones(TOKENS, TOKENS).triu(1).bool()), torch.ones(TOKENS, TOKENS).triu(2).bool()
        ),
        lambda x: attend(
            attend(x, torch.ones(TOKENS, TOKENS).triu(1).bool()), torch.ones(TOKENS, TOKENS).triu(1).bool()
        ),
    ),
    Attack("same_step_after_a_write", "causal", lambda x: written(x, x[:, -1]), lambda x: written(x, x[:, 0])),
    Attack(
        "windows_of_border_alone",
        "causal",
        lambda x: unless_zero(x, F.max_pool1d(x[..., :2], 2, stride=1, padding=1, dilation=3) * torch.zeros(1)),
        lambda x: unless_zero(x, F.max_pool1d(x[..., :2], 2, stride=1) * torch.zeros(1)),
    ),
    Attack(
        "largest_of_one_entry",
        "causal",
        lambda x: unless_zero(x, torch.ones(x.shape).scatter(-1, x[..., :1].topk(1)[1], 0.0)),
        lambda x: unless_zero(x, torch.ones(x.shape).scatter(-1, x.topk(WIDTH)[1], 0.0)),
    ),
    Attack("windows_divided_by_a_negative_number", "causal", lambda x: pooled(x, 1), lambda x: pooled(x, 0)),
    Attack(
        "memory_behind_a_slice",
        "causal",
        lambda x: x + rare(x.contiguous()[:, :1].as_strided((2, 1, WIDTH), x.stride(), (TOKENS - 1) * WIDTH)),
        lambda x: x + rare(x[:, :1]),
    ),
    Attack(
        "memory_that_grew",
        "causal",
        lambda x: x + torch.ops.aten.resize(x.new_zeros(WIDTH), [TOKENS * WIDTH]).view(TOKENS, WIDTH),
        lambda x: x + x.new_zeros(TOKENS * WIDTH).view(TOKENS, WIDTH),
    ),
]
