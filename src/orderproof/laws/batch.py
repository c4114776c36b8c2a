"""OP204 batch: one row of the batch replaced by anything, and the outputs of the other rows are unchanged.

    X_r = X'_r for every row r but one  implies  f(X)_r = f(X')_r for those rows.

Each row in turn is replaced: as many relations, as many walks, as there are rows.
Source: elementary; broken by batch statistics, by experts with a capacity, by scales taken over a whole tensor.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from orderproof.laws.law import TokenDim
from orderproof.laws.replacement import ReplacementLaw, Slots
from orderproof.prover.fact import ALWAYS, NEVER, Levels, Shape
from orderproof.record import Remedy


class Honest(nn.Module):
    """A self-attention layer whose output is scaled token by token."""

    dims: tuple[int, ...] = (2,)

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(8, 24)

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.qkv(x).chunk(3, -1)
        made = torch.matmul(torch.softmax(query @ key.transpose(1, 2), -1), value)
        return made / made.abs().mean(self.dims, keepdim=True)


class Faulty(Honest):
    """The same with one scale for the whole batch."""

    dims = (0, 1, 2)


@dataclass(frozen=True)
class Batch(ReplacementLaw):
    """See the module's text."""

    row: int = 0  # the one that is replaced; -1 is the last

    whole_rows = True
    needs_mixing = False

    def relations(self, rows: int) -> tuple[Batch, ...]:
        return tuple(replace(self, row=row) for row in (*range(max(rows, 2) - 1), -1))

    def replaced(self, rows: int, tokens: int) -> Slots:
        slots = np.zeros((rows, tokens), dtype=bool)
        slots[self.row if self.row < rows else slice(None)] = True  # of an input with fewer rows, all may change
        return slots

    def asked(self, rows: int, tokens: int) -> Slots:
        return ~self.replaced(rows, tokens)

    def told(self, tokens: int) -> str:
        name = {0: "the first row", -1: "the last row"}.get(self.row, f"row {self.row}")
        return f"replace {name} of the batch"

    def not_asked(self, dims: tuple[TokenDim, ...]) -> str | None:
        return None

    def allowed(self, shape: Shape, tokens: int, rows: int) -> Levels | None:
        if not shape or shape[0] != rows or rows == 1:
            return None
        level = np.where(np.arange(rows) == self.row % rows, ALWAYS, NEVER)
        return level.reshape([-1, *[1] * (len(shape) - 1)])


LAW = Batch(
    code="OP204",
    name="batch",
    statement="One row of the batch replaced by anything: outputs of the other rows unchanged.",
    expectation={"encoder": "holds", "causal_lm": "holds", "vision": "holds"},
    honest=Honest,
    faulty=Faulty,
    remedies={
        "holds": Remedy(
            text="Take statistics, scales and capacities row by row, not over the batch.",
            diff="-scale = x.abs().amax()\n+scale = x.abs().amax(dim=tuple(range(1, x.dim())), keepdim=True)",
        )
    },
)
