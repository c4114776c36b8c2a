"""The argument of a module that takes the number of real tokens of each row, which all come first."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from orderproof.errors import UnsupportedCallError


@dataclass(frozen=True)
class LengthsArgument:
    """Lengths [row]: a padding mask for pads on the right.

    Attributes:
        name: Its name among the arguments of the forward.
        dtype: Its dtype.
        is_relative: A length is the part of the padded row that is real, as in speechbrain.

    """

    name: str
    dtype: torch.dtype = torch.int64
    is_relative: bool = False

    has_rows = True
    right_only = True
    marks_pads = False

    @property
    def convention(self) -> str:
        """The number that it states of each row, in words."""
        return f"the {'part' if self.is_relative else 'number'} of real tokens of each row, for pads on the right"

    def value(self, mask: Tensor) -> Tensor:
        """The lengths that a mask [row, token] with pads on the right states."""
        count = mask.sum(1)
        return (count / mask.shape[1] if self.is_relative else count).to(self.dtype)

    def check(self, mask: Tensor) -> None:
        """Raise `UnsupportedCallError` for a mask with a pad before a real token."""
        check_right_pads(self.name, mask)

    def for_call(self, rows: int, tokens: int, device: torch.device) -> Tensor:
        """The lengths of a call without pads."""
        return torch.full((rows,), 1 if self.is_relative else tokens, dtype=self.dtype, device=device)


def check_right_pads(name: str, mask: Tensor) -> None:
    """Raise `UnsupportedCallError` for a mask [row, token] with a pad before a real token."""
    if bool((mask.long().diff(dim=1) > 0).any()):
        raise UnsupportedCallError(f"its argument {name!r} has lengths, for pads on the right only")


def lengths_forms(name: str, example: Tensor, rows: int, tokens: int) -> list[LengthsArgument]:
    """The lengths of which an example input may be one: integers [row] up to the number of tokens, or parts."""
    if example.is_floating_point() and tuple(example.shape) == (rows,) and float(example.detach().max()) == 1.0:
        return [LengthsArgument(name, example.dtype, is_relative=True)] if bool((example > 0).all()) else []
    integers = example.dtype in (torch.int32, torch.int64)
    if not integers or tuple(example.shape) != (rows,) or not bool(((example >= 1) & (example <= tokens)).all()):
        return []
    return [LengthsArgument(name, example.dtype)]
