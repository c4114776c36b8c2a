"""Pads and packed documents in a batch: one convention for laws and calls."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor

MANY_ROWS = 4  # of a batch with rows of every kind
PadLayout = Literal[
    "padded", "padded right first", "padded left", "padded right", "no pads", "pads inside", "one real token",
    "one row of pads", "one row without pads",
]  # fmt: skip
Side = Literal["left", "right"]
PAD_LAYOUTS: tuple[PadLayout, ...] = get_args(PadLayout)
PADS_WITHIN: tuple[PadLayout, ...] = ("pads inside", "one real token")  # pads between or on both sides of real tokens
ONE_SIDE: tuple[PadLayout, ...] = ("padded right", "padded left")  # pads on the same side in all rows
PAD_LAYOUT_TEXTS: dict[PadLayout, str] = {
    "padded": "in a padded batch",
    "padded right first": "in a batch padded on the right and on the left",
    "padded left": "in a batch padded on the left",
    "padded right": "in a batch padded on the right",
    "no pads": "with a mask without pads",
    "pads inside": "with pads between real tokens",
    "one real token": "with a row of pads and one real token",
    "one row of pads": "with a row of pads only",
    "one row without pads": "with a row without pads",
}


def padding_slots(
    rows: int, tokens: int, device: torch.device | str | None = None, layout: PadLayout = "padded"
) -> Tensor:
    """The pads [row, token] as booleans: a third of each row.

    ``layout`` says where: "padded" alternately left and right, and on both sides of a single row; "padded right first"
    alternately right and left, two thirds of each row, so that the number of real tokens is the index of a pad;
    "padded left" and "padded right" on one side, a third of the first row, one of the second, two thirds of the third
    and none of the fourth, and so on, as a model may read the longest row or the first, which has none of three;
    "no pads" has none; "pads inside" between real tokens of all rows. The others are "padded" but for one row: in
    "one real token" the first has one in its middle, in "one row of pads" the last of several has none, and in
    "one row without pads" the last of several has real tokens only, and the first of `MANY_ROWS`, too.
    """
    token, row = torch.arange(tokens, device=device), torch.arange(rows, device=device).unsqueeze(-1)
    count = max(1, tokens // 3)
    if layout == "no pads":
        return (token < 0).expand(rows, tokens)
    if rows == 1 and layout == "padded":
        left = (count + 1) // 2 if tokens > 2 else count
        return ((token < left) | (token >= tokens - count + left)).unsqueeze(0)
    if layout in ("padded left", "padded right"):
        counts = torch.tensor([count, 1, tokens - count, 0], device=device)[(row + 3 * (rows == 3)) % 4]
        return token < counts if layout == "padded left" else token >= tokens - counts
    if layout == "pads inside":
        start = (tokens - count + 1) // 2
        return ((token >= start) & (token < start + count)).expand(rows, tokens)
    if layout == "padded right first":
        count = tokens - count
    pads = torch.where(row % 2 == (layout == "padded right first"), token < count, token >= tokens - count)
    if layout == "one real token":
        return torch.where(row == 0, token != tokens // 2, pads)
    if layout == "one row of pads":
        return pads | (row == max(rows - 1, 1))
    if layout == "one row without pads":
        return pads & (row != max(rows - 1, 1)) & ((row != 0) | (rows < MANY_ROWS))
    return pads


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
