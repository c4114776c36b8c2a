"""Refuse tokens that share a position, where causal order has nothing else to go by.

A key is not after a query when its position is smaller, or the same and it is not stored after it. Where a row is
spread over ranks no rank knows how the whole was stored, so in each document the real tokens must have different
positions. (Pad tokens share theirs; nobody sees them.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from orderproof.encodings._operands import demand
from orderproof.errors import PositionError

if TYPE_CHECKING:
    from jaxtyping import Bool, Int


def check_apart(
    positions: Int[Tensor, "*batch token"],
    documents: Int[Tensor, "*batch token"] | None,
    padding_mask: Bool[Tensor, "batch token"] | None,
) -> None:
    """Refuse two real tokens of one document at one position. Given are the tokens of all ranks."""
    groups = torch.zeros_like(positions) if documents is None else documents
    real = torch.ones_like(positions, dtype=torch.bool) if padding_mask is None else padding_mask
    hidden = -1 - torch.arange(positions.shape[-1], device=positions.device)
    place = torch.where(real, positions, hidden)
    rows = place + groups
    place, group = place.expand_as(rows), groups.expand_as(rows)
    order = place.argsort(dim=-1)
    order = order.gather(-1, group.gather(-1, order).argsort(dim=-1, stable=True))
    place, group = place.gather(-1, order), group.gather(-1, order)
    shared = (place.diff(dim=-1) == 0) & (group.diff(dim=-1) == 0)
    demand(
        ~shared,
        PositionError,
        "positions: expected different ones for the tokens of a causal row that is spread over ranks, got some twice; "
        "give each rank the global positions of its tokens, and name packed documents and pad tokens",
    )
