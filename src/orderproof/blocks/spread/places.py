"""Which tokens of a row each rank has.

    contiguous    rank r of R has the r-th of R equal parts
    zig-zag       rank r has the parts r and 2R - 1 - r of 2R

In causal attention a token has work with every token before it, so that of contiguous parts the last has nearly all.
In the zig-zag each rank has as much from the front as from the back.
Source: Grattafiori et al. 2024, "The Llama 3 Herd of Models", arXiv:2407.21783, section 3.3.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import torch
from torch import Tensor

from orderproof.blocks.spread.ranks import Ranks
from orderproof.errors import UsageError

if TYPE_CHECKING:
    from jaxtyping import Int

Split = Literal["contiguous", "zig-zag"]


def own_places(
    tokens: int, ranks: Ranks, *, split: Split, device: torch.device | None = None
) -> Int[Tensor, " own_token"]:
    """The places, in a row of so many tokens, of those that this rank has."""
    if split not in get_args(Split):
        raise UsageError(f"split: expected 'contiguous' or 'zig-zag', got {split!r}")
    parts = ranks.count if split == "contiguous" else 2 * ranks.count
    if tokens < 1 or tokens % parts:
        raise UsageError(
            f"tokens: expected a multiple of {parts} for a {split} split over {ranks.count}, got {tokens}; "
            "fill the row up with pad tokens and say so by padding_mask"
        )
    part = torch.arange(tokens, device=device).view(parts, tokens // parts)
    own = part[[ranks.number]] if split == "contiguous" else part[[ranks.number, parts - 1 - ranks.number]]
    return own.reshape(-1)
