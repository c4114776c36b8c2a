"""A rotary function in one form: vectors [row, head, token, width] and positions [token]."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import torch
from torch import Tensor

from orderproof.errors import UnsupportedCallError
from orderproof.records.conventions import FunctionKind

WIDTH = 8  # of the vectors
FIRST_POSITION = 1


@dataclass(frozen=True)
class RotaryFunction:
    """A function that rotates.

    Attributes:
        name: Its name.
        version: The version of its library, or the file of the user's function.
        layout: The axes of its vectors, in words.
        rotate: (vectors, positions) -> rotated vectors.
        takes: `rows`: also positions [row, token]; `table`: the number of positions of its table.

    """

    name: str
    version: str
    layout: str
    rotate: Callable[..., Tensor]
    takes: frozenset[str] = frozenset()

    kind: ClassVar[FunctionKind] = "rotation"

    def matrix(self, position: int, dtype: torch.dtype = torch.float32) -> Tensor:
        """The rotation at a position: row i is what a unit vector along i becomes [element, element].

        The function is given positions 0 to 3, or those from three before ``position`` on, for each unit vector.
        """
        first = max(0, position - 3) if position >= 0 else position
        positions = torch.arange(first, first + 4)
        given = torch.eye(WIDTH, dtype=dtype)[:, None, None].expand(WIDTH, 1, 4, WIDTH).contiguous()
        found = self.rotate(given, positions)
        if found.shape != given.shape:
            raise UnsupportedCallError(f"expected vectors of shape {[*given.shape]}; got {[*found.shape]}")
        return found[:, 0, position - first].detach().double()

    @cached_property
    def partners(self) -> tuple[int | None, ...]:
        """For each element, the one that it is rotated with; None for one that is not rotated."""
        moved = self.matrix(FIRST_POSITION).abs()
        rest = moved - moved.diag().diag()
        return tuple(int(row.argmax()) if float(row.max()) > 1e-6 else None for row in rest)

    def angles(self, position: int, dtype: torch.dtype = torch.float32) -> list[float]:
        """The angle [rad] of each pair, in the order of its first element; positive from it to its partner."""
        matrix = self.matrix(position, dtype)
        pairs = [(i, j) for i, j in enumerate(self.partners) if j is not None and i < j]
        return [math.atan2(float(matrix[i, j]), float(matrix[i, i])) for i, j in pairs]
