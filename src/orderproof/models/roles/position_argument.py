"""The argument of a module that takes position ids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from orderproof.errors import UnsupportedCallError

POSITION_NAMES = (
    "position_ids", "positions", "pos_ids", "position", "pos", "cache_position", "input_pos", "positions_ids",
)  # fmt: skip


@dataclass(frozen=True)
class PositionArgument:
    """The name of position ids among the arguments of a forward, and their values.

    Attributes:
        name: Its name.
        first: The position id of the first token in a call without position ids of its own.
        dtype: Its dtype.
        has_rows: Its axes are [row, token]; otherwise [token], for all rows.

    """

    name: str
    first: int = 0
    dtype: torch.dtype = torch.int64
    has_rows: bool = True

    @classmethod
    def of_example(cls, name: str, example: Tensor) -> Self:
        """The argument of which this is an example."""
        return cls(name, int(example.min()), example.dtype, example.dim() > 1)

    def value(self, ids: Tensor) -> Tensor:
        """Position ids [row, token] as this argument takes them. Raises `UnsupportedCallError`."""
        if not self.has_rows:
            if not bool((ids == ids[:1]).all()):
                raise UnsupportedCallError(f"its argument {self.name!r} has the same position ids for all rows")
            ids = ids[0]
        return ids.to(self.dtype)

    def for_call(self, rows: int, tokens: int, device: torch.device) -> Tensor:
        """The position ids of a call from its first token on."""
        ids = torch.arange(self.first, self.first + tokens, dtype=self.dtype, device=device)
        return ids.expand(rows, tokens) if self.has_rows else ids
