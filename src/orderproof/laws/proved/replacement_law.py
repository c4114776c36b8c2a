"""The base class of laws that replace some slots of the batch and require that others do not change.

A slot is a token of a row. The facts are those of an independence law with one case: elements that depend on a replaced
slot have dependence 0, all others NEVER. The outputs at the slots that must not change need NEVER.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from orderproof.diagnosis.domain.fact import ALWAYS, NEVER, DependenceArray, Fact, Shape, compress, constant_dependence
from orderproof.diagnosis.domain.move import STILL
from orderproof.errors import OutputShapeError
from orderproof.laws.proved.proved_law import (
    UNKNOWN_ROWS,
    IndependenceLaw,
    InputChange,
    TokenAxis,
    TokenDim,
    axis_tuple,
    rows_and_tokens,
)

SlotMask = NDArray[np.bool_]  # [row, token]


@dataclass(frozen=True, kw_only=True)
class ReplacementLaw(IndependenceLaw):
    """Some slots are replaced; the outputs at others must not change."""

    reads_rows = True

    @abstractmethod
    def replaced_slots(self, rows: int, tokens: int) -> SlotMask:
        """The slots that are replaced."""

    @abstractmethod
    def unchanged_slots(self, rows: int, tokens: int) -> SlotMask:
        """The slots whose outputs must not change."""

    def unchanged_rows(self, unchanged: SlotMask) -> SlotMask:
        """The rows whose outputs without tokens must not change, of the slots that must not [row, token]."""
        whole: SlotMask = np.logical_and.reduce(unchanged, axis=1)
        return whole

    @abstractmethod
    def change_description(self, tokens: int) -> str:
        """The change in words."""

    def input_fact(self, shape: Shape, axis: TokenAxis) -> Fact:
        rank = len(shape)
        if axis is None:
            return Fact(shape, (STILL,) * rank, constant_dependence(rank, NEVER))
        (axis,) = axis_tuple(axis)
        slots = self.replaced_slots(
            shape[0] if axis else 1, shape[axis]
        )  # rows are distinguished only if they are the first axis
        level = np.where(slots, 0, NEVER).astype(np.int64).reshape(rows_and_tokens(shape, axis))
        return Fact(shape, (STILL,) * rank, compress(level))

    def missing_property(self, fact: Fact, dims: tuple[TokenDim, ...], tokens: int) -> str | None:
        over = np.broadcast_to(fact.dependence, fact.shape) > NEVER
        unchanged = self._unchanged_entries(fact.shape, dims, tokens)
        if unchanged is None:
            return UNKNOWN_ROWS
        if not (over & unchanged).any():
            return None
        where = tuple(int(i) for i in np.argwhere(over & unchanged)[0])
        place = f", token {where[dims[0].dim] - dims[0].prefix_length}" if dims else ""
        level = int(np.broadcast_to(fact.dependence, fact.shape)[where])
        return f"the output at row {where[0]}{place} may depend on {self.dependence_text(level)}"

    def dependence_text(self, level: int) -> str:
        return "anything" if level >= ALWAYS else "a replaced token"

    def _unchanged_entries(self, shape: Shape, dims: tuple[TokenDim, ...], tokens: int) -> SlotMask | None:
        """The entries of an output that must not change; entries that are no tokens belong to the whole row.

        The first dimension runs over rows. None if it runs over tokens too, or if two dimensions do.
        """
        rank = len(shape)
        unchanged = self.unchanged_slots(shape[0], tokens)
        if not dims:
            return np.broadcast_to(self.unchanged_rows(unchanged).reshape([-1, *[1] * (rank - 1)]), shape)
        token = dims[0]
        if token.dim == 0 or len(dims) > 1:
            return None
        whole: SlotMask = np.all(unchanged, axis=1)  # rows in which no slot may change
        slots = np.repeat(whole[:, None], shape[token.dim], axis=1)
        slots[:, token.prefix_length : token.prefix_length + tokens] = unchanged
        return np.broadcast_to(slots.reshape(rows_and_tokens(shape, token.dim)), shape)

    def max_dependence(self, shape: Shape, tokens: int, rows: int) -> DependenceArray | None:
        dims = [d for d, size in enumerate(shape) if size == tokens]
        if len(dims) != 1 or (rows > 1 and (dims[0] == 0 or shape[0] != rows)):
            return None
        unchanged = self.unchanged_slots(rows, tokens)
        if rows == 1:  # which tensors without an axis of rows have too
            return np.where(unchanged[0], NEVER, ALWAYS).reshape(
                [tokens if d in dims else 1 for d in range(len(shape))]
            )
        return np.where(unchanged, NEVER, ALWAYS).reshape(rows_and_tokens(shape, dims[0]))

    def forbidden_pairs(self, tokens: int, rows: int = 1) -> SlotMask:
        unchanged, replaced = self.unchanged_slots(rows, tokens)[0], self.replaced_slots(rows, tokens)[0]
        pairs: SlotMask = unchanged[:, None] & replaced[None, :]
        return pairs

    def input_changes(self, tokens: int, rows: int = 1) -> Iterator[InputChange]:
        slots = self.replaced_slots(rows, tokens)
        if slots.any() and self.unchanged_slots(rows, tokens).any():
            yield InputChange(self.change_description(tokens), replaced_slots=slots)

    def proof_cases(self, tokens: int, rows: int = 1) -> Iterator[tuple[InputChange, int, int]]:
        for change in self.input_changes(tokens, rows):
            yield change, 0, 0

    def expected_and_actual(
        self, first: Tensor, second: Tensor, dims: tuple[TokenDim, ...], change: InputChange
    ) -> tuple[Tensor, Tensor]:
        assert change.replaced_slots is not None
        rows, tokens = change.replaced_slots.shape
        has_rows = first.shape[:1] == (rows,)  # a witness is searched for where the axes are not known too
        unchanged = self._unchanged_entries(tuple(first.shape), dims, tokens) if has_rows else None
        if unchanged is None:
            raise OutputShapeError(UNKNOWN_ROWS)
        mask = torch.from_numpy(np.array(unchanged))
        return first[mask], second[mask]

    def output_index(
        self, index: tuple[int, ...], dims: tuple[TokenDim, ...], tokens: int, shape: Shape = ()
    ) -> tuple[int, ...]:
        unchanged = self._unchanged_entries(shape, dims, tokens)
        assert unchanged is not None
        return tuple(int(i) for i in np.argwhere(unchanged)[index[0]])
