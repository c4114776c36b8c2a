"""The split of a row's tokens over ranks.

    contiguous    rank r of R has the r-th of R equal parts
    zig-zag       rank r has the parts r and 2R - 1 - r of 2R

In causal attention a token attends to all earlier tokens, so with contiguous parts the last rank does most of the
work. Zig-zag balances it: each rank has one part from the front and one from the back.
Source: Grattafiori et al. 2024, "The Llama 3 Herd of Models", arXiv:2407.21783, section 3.3.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import torch
from torch import Tensor

from orderproof.blocks.sequence_parallel.rank_group import RankGroup
from orderproof.errors import UsageError

if TYPE_CHECKING:
    from jaxtyping import Int

TokenSplit = Literal["contiguous", "zig-zag"]


def local_token_indices(
    tokens: int, ranks: RankGroup, *, split: TokenSplit, device: torch.device | None = None
) -> Int[Tensor, " own_token"]:
    """The indices, in a row of ``tokens`` tokens, of this rank's tokens. Raises `UsageError` if the split is uneven."""
    if split not in get_args(TokenSplit):
        raise UsageError(f"split: expected 'contiguous' or 'zig-zag', got {split!r}")
    parts = ranks.world_size if split == "contiguous" else 2 * ranks.world_size
    if tokens < 1 or tokens % parts:
        raise UsageError(
            f"tokens: expected a multiple of {parts} for a {split} split over {ranks.world_size}, got {tokens}; "
            "add pad tokens and pass padding_mask"
        )
    part = torch.arange(tokens, device=device).view(parts, tokens // parts)
    own = part[[ranks.rank]] if split == "contiguous" else part[[ranks.rank, parts - 1 - ranks.rank]]
    return own.reshape(-1)
