"""Pads and packed documents in a batch: one convention for laws and calls."""

from __future__ import annotations

import torch
from torch import Tensor


def padding_slots(rows: int, tokens: int, device: torch.device | str | None = None) -> Tensor:
    """The pads [row, token] as booleans: a third of each row, alternately left and right; both in a single row."""
    token, row = torch.arange(tokens, device=device), torch.arange(rows, device=device).unsqueeze(-1)
    count = max(1, tokens // 3)
    if rows == 1:
        left = (count + 1) // 2 if tokens > 2 else count
        return ((token < left) | (token >= tokens - count + left)).unsqueeze(0)
    return torch.where(row % 2 == 0, token < count, token >= tokens - count)


def second_document_start(tokens: int) -> int:
    """The first token of the second of two packed documents."""
    return tokens // 2


def restarting_position_ids(rows: int, tokens: int, device: torch.device | str | None = None) -> Tensor:
    """The position ids of two packed documents [row, token]: 0, 1, ..., 0, 1, ..."""
    token, start = torch.arange(tokens, device=device), second_document_start(tokens)
    return torch.where(token < start, token, token - start).unsqueeze(0).expand(rows, tokens)


def same_document_mask(tokens: int, device: torch.device | str | None = None) -> Tensor:
    """True if two tokens belong to the same document [token, token]."""
    in_second = torch.arange(tokens, device=device) >= second_document_start(tokens)
    return in_second.unsqueeze(-1) == in_second
