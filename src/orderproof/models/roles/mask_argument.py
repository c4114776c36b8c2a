"""The argument of a module that takes a padding mask: its form, and how it marks pads."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import product
from typing import Literal, TypeVar

import torch
from torch import Tensor

from orderproof.batch_layout import Side
from orderproof.models.roles.lengths_argument import LengthsArgument, check_right_pads


@dataclass(frozen=True)
class MaskArgument:
    """The name of a mask among the arguments of a forward, and its values.

    Attributes:
        name: Its name.
        marks_pads: True, or 1, is at pads; otherwise at real tokens.
        boolean: It is boolean.
        dtype: Its dtype, if it is known; otherwise integers as they come, or booleans.
        added: The number at pads of a mask that is added to scores, and 0 at real tokens; None of other masks.
        rank: Its axes: [row, token], [row, 1, token] or [row, 1, 1, token].
        contradicted: Calls hide tokens the other way round than its name, or its example, states.
        right_only: Pads are on the right: only the number of real tokens is read of it, or it is `nan_on_the_left`.
        nan_on_the_left: With pads on the left an output is NaN, since a token sees no key.
        queries: Its axis before the last runs over tokens too, with the same keys for each; "causal": with the later
            keys hidden.

    """

    name: str
    marks_pads: bool = False
    boolean: bool = False
    dtype: torch.dtype | None = None
    added: float | None = None
    rank: int = 2
    queries: Literal["", "same", "causal"] = ""
    contradicted: bool = field(default=False, compare=False)
    right_only: bool = False
    nan_on_the_left: bool = field(default=False, compare=False)

    has_rows = True

    def check(self, mask: Tensor) -> None:
        """Raise `UnsupportedCallError` for a pad before a real token, if only the number of real tokens is read."""
        if self.right_only:
            check_right_pads(self.name, mask)

    def value(self, mask: Tensor) -> Tensor:
        """A mask [row, token] (1 at real tokens, 0 at pads) as this argument takes it."""
        if self.rank > 2:
            mask = mask[(slice(None), *(None,) * (self.rank - 2))]
        if self.queries:
            tokens = mask.shape[-1]
            mask = mask.expand(*mask.shape[:-2], tokens, tokens)
            if self.queries == "causal":
                mask = mask * torch.ones(tokens, tokens, dtype=mask.dtype, device=mask.device).tril()
        if self.added is not None:
            return torch.where(mask == 0, self.added, 0.0).to(self.dtype or torch.float32)
        marked = mask == 0 if self.marks_pads else mask
        return marked.bool() if self.boolean else marked.to(self.dtype or mask.dtype)

    def for_call(self, rows: int, tokens: int, device: torch.device) -> Tensor:
        """The mask of a call without pads."""
        return self.value(torch.ones(rows, tokens, dtype=torch.long, device=device))

    @property
    def convention(self) -> str:
        """Which tokens it marks, and with which value: `True at pads`."""
        if self.added is not None:
            return f"{self.added:g} at pads"
        where = f"{'True' if self.boolean else '1'} at {'pads' if self.marks_pads else 'real tokens'}"
        if self.nan_on_the_left:
            return f"{where}, for pads on the right: with pads on the left the output is NaN"
        return f"{where}, of which only their number is read, for pads on the right" if self.right_only else where


PaddingMask = MaskArgument | LengthsArgument
KNOWN_MASKS = (
    MaskArgument("attention_mask"),
    MaskArgument("padding_mask", boolean=True),
    MaskArgument("key_padding_mask", marks_pads=True, boolean=True),
    MaskArgument("src_key_padding_mask", marks_pads=True, boolean=True),
)
Mask = TypeVar("Mask", bound=PaddingMask)
CONVENTIONS = tuple(product((False, True), (True, False)))  # marks pads, boolean


def mask_forms(name: str, example: Tensor, rows: int, tokens: int) -> list[MaskArgument]:
    """The masks of which an example input may be one, the likely one first; none if it has not the form of a mask."""
    shape = tuple(example.shape)
    square = len(shape) > 2 and shape[-2:] == (tokens, tokens)
    between = shape[1:-2] if square else shape[1:-1]
    if not 2 <= len(shape) <= 4 or shape[0] not in (rows, 1) or shape[-1] != tokens or any(n != 1 for n in between):
        return []
    queries: Literal["", "same", "causal"] = "same" if square else ""
    if square and not bool((example == example[..., :1, :]).all()):
        queries = "causal"
    form = {"dtype": example.dtype, "rank": len(shape), "queries": queries}
    values = set(example.detach().flatten()[:4096].tolist())
    if values <= {0, 1}:
        boolean = example.dtype is torch.bool
        found = [MaskArgument(name, marks, boolean, **form) for marks in _likely_marks(name, example)]  # type: ignore[arg-type]
    else:
        found = []
    if example.is_floating_point() and (values == {0.0} or (len(values) == 2 and 0.0 in values and min(values) < -999)):
        added = min(values) if len(values) == 2 else torch.finfo(example.dtype).min
        found.append(MaskArgument(name, added=added, **form))  # type: ignore[arg-type]
    return found


def padded_sides(mask: PaddingMask, example: Tensor) -> frozenset[Side]:
    """The sides on which the rows of an example of a mask are padded; empty if it has no pads at the end of a row."""
    if not isinstance(mask, MaskArgument):
        return frozenset()
    real = _real_tokens(mask, example)
    real = real[real.any(-1)]
    ends: tuple[tuple[Side, int], ...] = (("left", 0), ("right", -1))
    return frozenset(side for side, place in ends if bool((~real[:, place]).any()))


def as_stated(mask: PaddingMask, example: Tensor | None = None) -> PaddingMask:
    """The mask that calls show; marked the other way round, and so noted, if its name or its example states that.

    Tokenizers give `attention_mask` [row, token] with 1 at real tokens. An example states it if a row of it has no real
    token as calls understand it, and each row has one the other way round.
    """
    if not isinstance(mask, MaskArgument) or mask.added is not None:
        return mask
    other = replace(mask, marks_pads=not mask.marks_pads, contradicted=True)
    has_real, has_other = (
        (None, None) if example is None else (_real_tokens(each, example).any(-1).all() for each in (mask, other))
    )
    by_name = mask.name == "attention_mask" and mask.rank == 2 and mask.marks_pads
    if has_real is None:
        return other if by_name else mask
    assert example is not None
    by_name = by_name and bool(example.double().mean() >= 0.5)
    return other if by_name or (bool(has_other) and not bool(has_real)) else mask


def _real_tokens(mask: MaskArgument, example: Tensor) -> Tensor:
    """The real tokens [row, token] of an example of a mask."""
    rows = example.flatten(1, -2)[:, -1] if mask.rank > 2 else example  # the last query sees all keys before it
    return rows == 0 if mask.added is not None or mask.marks_pads else rows != 0


def _likely_marks(name: str, example: Tensor) -> tuple[bool, bool]:
    """The two conventions, that of a common name first; else the one in which more tokens of the example are real."""
    known = next((mask.marks_pads for mask in KNOWN_MASKS if mask.name == name), None)
    marks = float(example.double().mean()) < 0.5 if known is None else known
    return marks, not marks


def usual_masks(name: str) -> list[MaskArgument]:
    """The masks of this name that its words suggest, the likely one first."""
    marks = "padding" in name or "pad" in name.split("_")
    return [MaskArgument(name, marks, boolean) for boolean in ((True, False) if marks else (False, True))]
