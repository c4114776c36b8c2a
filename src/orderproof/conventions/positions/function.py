"""A table of positions in one form: positions [token] to vectors [token, width]."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from orderproof.conventions.question import OTHER, same
from orderproof.records.conventions import FunctionKind

LENGTH = 16  # positions of a table
WIDTH = 8  # of its vectors


@dataclass(frozen=True)
class PositionTable:
    """A function that gives vectors of positions.

    Attributes:
        name: Its name.
        version: The version of its library, or the file of the user's function.
        layout: The axes of its result, in words.
        look_up: Positions [token] -> vectors [token, width].
        length: The number of its positions [tokens].

    """

    name: str
    version: str
    layout: str
    look_up: Callable[[Tensor], Tensor]
    length: int = LENGTH

    kind: ClassVar[FunctionKind] = "positions"
    takes: ClassVar[frozenset[str]] = frozenset()

    def meaning(self, position: float) -> str:
        """The vector of a position outside the table, in words. Raises what the function raises."""
        vector = self.look_up(torch.tensor([position]))[0].detach()
        table = self.look_up(torch.arange(self.length)).detach()
        if bool(vector.isnan().any()):
            return "NaN"
        if same(vector, torch.zeros_like(vector)):
            return "zeros"
        for place, text in ((0, "that of position 0"), (self.length - 1, "that of the last position")):
            if same(vector, table[place], 1e-5):
                return text
        if any(same(vector, row, 1e-5) for row in table):
            return "that of another position"
        return "a vector of its own" if bool(vector.isfinite().all()) else OTHER
