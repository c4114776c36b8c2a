"""The argument of a module that takes position ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from orderproof.batch_layout import second_document_start
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
        restarts: They restart in the example: they say where packed documents begin.
        in_documents: Calls have two documents, in all rows the same, and they restart at the second.
        separates: A call shows that they hide documents from each other, so ids with gaps are other documents.

    """

    name: str
    first: int = 0
    dtype: torch.dtype = torch.int64
    has_rows: bool = True
    restarts: bool = False
    in_documents: bool = False
    separates: bool = False

    @classmethod
    def of_example(cls, name: str, example: Tensor) -> Self:
        """The argument of which this is an example."""
        restarts = bool((example.diff(dim=-1) != 1).any()) and counts_in_documents(example)
        return cls(name, int(example.min()), example.dtype, example.dim() > 1, restarts)

    def value(self, ids: Tensor) -> Tensor:
        """Position ids [row, token] as this argument takes them. Raises `UnsupportedCallError`."""
        if not self.has_rows:
            if not self.in_documents and not bool((ids == ids[:1]).all()):
                raise UnsupportedCallError(f"its argument {self.name!r} has the same position ids for all rows")
            ids = ids[0]
        return ids.to(self.dtype)

    def for_call(self, rows: int, tokens: int, device: torch.device) -> Tensor:
        """The position ids of a call from its first token on."""
        start = second_document_start(tokens)
        return self.for_documents((start, tokens - start) if self.in_documents else (tokens,), rows, device)

    def for_documents(self, lengths: Sequence[int], rows: int, device: torch.device) -> Tensor:
        """The position ids of packed documents of these lengths, from the first position id on in each."""
        parts = [torch.arange(self.first, self.first + n, dtype=self.dtype, device=device) for n in lengths]
        ids = parts[0] if len(parts) == 1 else torch.cat(parts)
        return ids.expand(rows, sum(lengths)) if self.has_rows else ids


def counts_in_documents(ids: Tensor) -> bool:
    """True if integers count up along the tokens, from the same number again at each document."""
    steps = ids.diff(dim=-1)
    first = ids[..., :1]
    return bool((first == ids.min()).all()) and bool(((steps == 1) | (ids[..., 1:] == first)).all())
