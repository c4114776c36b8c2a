"""OP204 batch: the outputs of a row are independent of the other rows of the batch.

    X_r = X'_r for every row r but one  implies  f(X)_r = f(X')_r for those rows.

Each row is replaced in turn: one relation and one pass over the graph per row.
Source: elementary; broken by batch statistics, by experts with a capacity, and by scales taken over a whole tensor.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from orderproof.diagnosis.domain.fact import ALWAYS, NEVER, DependenceArray, Shape
from orderproof.laws.mixing_kinds import (
    ATTENTION,
    CHOICE,
    CONVOLUTION,
    POOLING,
    RECURRENCE,
    RUNNING_SUM,
)
from orderproof.laws.proved.proved_law import TokenDim
from orderproof.laws.proved.replacement_law import ReplacementLaw, SlotMask
from orderproof.logic.terms import Formula, Term, as_term, at_most, equal, less, variable
from orderproof.records.audit import Remedy
from orderproof.theorems.statement import BATCH, MASKS_IN_WORDS, REAL_TOKENS, Statement


@dataclass(frozen=True, kw_only=True)
class BatchLaw(ReplacementLaw):
    """The law of this module."""

    replaced_row: int = 0  # its index; -1 is the last

    replaces_whole_rows = True
    requires_token_mixing = False

    def subrelations(self, rows: int) -> tuple[BatchLaw, ...]:
        return tuple(replace(self, replaced_row=row) for row in (*range(max(rows, 2) - 1), -1))

    def replaced_slots(self, rows: int, tokens: int) -> SlotMask:
        slots = np.zeros((rows, tokens), dtype=bool)
        slots[self.replaced_row if self.replaced_row < rows else slice(None)] = (
            True  # all rows of an input with fewer rows may change
        )
        return slots

    def unchanged_slots(self, rows: int, tokens: int) -> SlotMask:
        return ~self.replaced_slots(rows, tokens)

    def change_description(self, tokens: int) -> str:
        name = {0: "the first row", -1: "the last row"}.get(self.replaced_row, f"row {self.replaced_row}")
        return f"replace {name} of the batch"

    def dependence_text(self, level: int) -> str:
        return "anything" if level >= ALWAYS else "another row"

    def open_statement(self, shared: frozenset[str]) -> Statement | None:
        if len(shared) > 1 or not shared <= REAL_TOKENS.keys():
            return None
        mask = next(iter(shared), "")
        own = variable("row")

        def in_row(row: Term, _token: Term) -> Formula:
            return equal(row, own)

        premises = (at_most(0, own), less(own, BATCH))
        return Statement(
            in_row, in_row, lambda row, token: [in_row(row, token), *([REAL_TOKENS[mask](row, token)] if mask else [])],
            premises, covers=(MASKS_IN_WORDS[mask],) if mask else (), per_token=False,
            pooled=as_term(0),
        )  # fmt: skip

    def inapplicable_reason(self, dims: tuple[TokenDim, ...]) -> str | None:
        return None

    def max_dependence(self, shape: Shape, tokens: int, rows: int) -> DependenceArray | None:
        if not shape or shape[0] != rows or rows == 1:
            return None
        level = np.where(np.arange(rows) == self.replaced_row % rows, ALWAYS, NEVER)
        return level.reshape([-1, *[1] * (len(shape) - 1)])


LAW = BatchLaw(
    code="OP204",
    name="batch",
    statement="Replacing one row of the batch leaves the outputs of the other rows unchanged.",
    trait="keeps batch rows independent",
    expectation={"encoder": "holds", "causal_lm": "holds", "vision": "holds"},
    remedies={
        "holds": Remedy(
            text="Compute statistics, scales and capacities per row, not over the batch.",
            diff="-scale = x.abs().amax()\n+scale = x.abs().amax(dim=tuple(range(1, x.dim())), keepdim=True)",
        )
    },
    remedies_by_mixing={
        ATTENTION: Remedy(
            text="Attend within a row: the first axis of queries, keys and values must run over rows.",
            diff="-attention(x)  # [token, row, width] expected\n+attention(x.transpose(0, 1)).transpose(0, 1)",
        ),
        RUNNING_SUM: Remedy(
            text="Count within a row: a running sum over the rows lets one row use up the capacity that another needs.",
            diff="-queue = chosen.reshape(batch * tokens, -1).cumsum(0)\n"
            "+queue = chosen.reshape(batch, tokens, -1).cumsum(1)",
        ),
        CHOICE: Remedy(text="Choose within a row: no row may use up the capacity that another needs."),
        CONVOLUTION: Remedy(text="Convolve within a row: the first axis of the input must run over rows."),
        POOLING: Remedy(text="Pool within a row: no window may reach over the axis of rows."),
        RECURRENCE: Remedy(
            text="Give each row its own state: the recurrence runs over the axis of rows.",
            diff="-nn.LSTM(width, width)\n+nn.LSTM(width, width, batch_first=True)",
        ),
    },
    call_modes_without_theorem=("padded",),
    call_modes_of_other_masks=("padded right",),  # of several lengths, by which a model may sort its rows
)
