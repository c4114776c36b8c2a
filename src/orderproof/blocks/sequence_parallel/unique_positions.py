"""Reject tokens that share a position, for which causal order across ranks is undefined.

A key is not after a query if its position is smaller, or equal and its index is not larger. Ranks do not know the
indices of tokens in the whole row, so the real tokens of each document must have different positions. (Pad tokens
may share positions: they are not visible.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from orderproof.encodings.checks import assert_all
from orderproof.errors import PositionError

if TYPE_CHECKING:
    from jaxtyping import Bool, Int


def check_unique_positions(
    positions: Int[Tensor, "*batch token"],
    document_ids: Int[Tensor, "*batch token"] | None,
    padding_mask: Bool[Tensor, "batch token"] | None,
) -> None:
    """Raise `PositionError` if two real tokens of a document share a position; arguments are those of all ranks."""
    groups = torch.zeros_like(positions) if document_ids is None else document_ids
    real = torch.ones_like(positions, dtype=torch.bool) if padding_mask is None else padding_mask
    hidden = -1 - torch.arange(positions.shape[-1], device=positions.device)
    position = torch.where(real, positions, hidden)
    rows = position + groups
    position, group = position.expand_as(rows), groups.expand_as(rows)
    order = position.argsort(dim=-1)
    order = order.gather(-1, group.gather(-1, order).argsort(dim=-1, stable=True))
    position, group = position.gather(-1, order), group.gather(-1, order)
    shared = (position.diff(dim=-1) == 0) & (group.diff(dim=-1) == 0)
    assert_all(
        ~shared,
        PositionError,
        "positions: expected distinct positions for the tokens of a causal row split over ranks, got duplicates; "
        "pass each rank the global positions of its tokens, document_ids and padding_mask",
    )
