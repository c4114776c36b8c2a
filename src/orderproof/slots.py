"""Where pads and packed documents lie in a batch: one convention for the laws that ask and the calls that are made."""

from __future__ import annotations

import torch
from torch import Tensor


def pad_slots(rows: int, tokens: int, device: torch.device | str | None = None) -> Tensor:
    """Which slots are pads [row, token]: a third of each row, left and right by turns; a single row has both."""
    place, row = torch.arange(tokens, device=device), torch.arange(rows, device=device).unsqueeze(-1)
    count = max(1, tokens // 3)
    if rows == 1:
        left = (count + 1) // 2 if tokens > 2 else count
        return ((place < left) | (place >= tokens - count + left)).unsqueeze(0)
    return torch.where(row % 2 == 0, place < count, place >= tokens - count)


def second_document(tokens: int) -> int:
    """The token at which the second of two packed documents starts."""
    return tokens // 2


def restarting(rows: int, tokens: int, device: torch.device | str | None = None) -> Tensor:
    """The positions of two packed documents [row, token]: 0, 1, ..., 0, 1, ..."""
    place, start = torch.arange(tokens, device=device), second_document(tokens)
    return torch.where(place < start, place, place - start).unsqueeze(0).expand(rows, tokens)


def same_document(tokens: int, device: torch.device | str | None = None) -> Tensor:
    """Which tokens belong to one document [token, token]."""
    second = torch.arange(tokens, device=device) >= second_document(tokens)
    return second.unsqueeze(-1) == second
