"""Laws of one kind: replace some slots of the batch by anything, and others are unchanged.

A slot is a token of a row. The facts are those of any influence law, with one case: what depends on a replaced
slot has level 0, what depends on none has level NEVER, and the slots the law asks about must have the latter.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from orderproof.laws.law import Axis, Change, InfluenceLaw, TokenDim, along
from orderproof.prover.fact import ALWAYS, NEVER, Fact, Levels, Shape, compress, uniform
from orderproof.prover.move import STILL

Slots = NDArray[np.bool_]  # [row, token]


@dataclass(frozen=True)
class ReplacementLaw(InfluenceLaw):
    """Some slots replaced, others asked about; see the module's text."""

    @abstractmethod
    def replaced(self, rows: int, tokens: int) -> Slots:
        """The slots that are replaced."""

    @abstractmethod
    def asked(self, rows: int, tokens: int) -> Slots:
        """The slots whose outputs must not change."""

    @abstractmethod
    def told(self, tokens: int) -> str:
        """What is done, in words."""

    def input_fact(self, shape: Shape, axis: Axis) -> Fact:
        rank = len(shape)
        if axis is None:
            return Fact(shape, (STILL,) * rank, uniform(rank, NEVER))
        (axis,) = along(axis)
        slots = self.replaced(shape[0] if axis else 1, shape[axis])  # rows that do not come first are not told apart
        level = np.where(slots, 0, NEVER).astype(np.int64).reshape(_laid(shape, axis))
        return Fact(shape, (STILL,) * rank, compress(level))

    def shortfall(self, fact: Fact, dims: tuple[TokenDim, ...], tokens: int) -> str | None:
        over = np.broadcast_to(fact.level, fact.shape) > NEVER
        asked = self._asked(fact.shape, dims, tokens)
        if asked is None:
            return "which row each entry of the output belongs to is not known"
        if not (over & asked).any():
            return None
        where = tuple(int(i) for i in np.argwhere(over & asked)[0])
        place = f", token {where[dims[0].dim] - dims[0].offset}" if dims else ""
        anything = int(np.broadcast_to(fact.level, fact.shape)[where]) >= ALWAYS
        return f"the output at row {where[0]}{place} may depend on {'anything' if anything else 'what is replaced'}"

    def _asked(self, shape: Shape, dims: tuple[TokenDim, ...], tokens: int) -> Slots | None:
        """The entries of an output that are asked about; entries beside the tokens belong to the whole row."""
        rank = len(shape)
        if not dims:
            rows = self.asked(shape[0], tokens).all(axis=1)
            return np.broadcast_to(rows.reshape([-1, *[1] * (rank - 1)]), shape)
        token = dims[0]
        if token.dim == 0 or len(dims) > 1:
            return None
        slots = np.zeros((shape[0], shape[token.dim]), dtype=bool)
        slots[:, token.offset : token.offset + tokens] = self.asked(shape[0], tokens)
        return np.broadcast_to(slots.reshape(_laid(shape, token.dim)), shape)

    def allowed(self, shape: Shape, tokens: int, rows: int) -> Levels | None:
        dims = [d for d, size in enumerate(shape) if size == tokens]
        if len(dims) != 1 or dims[0] == 0 or shape[0] != rows:
            return None
        asked = self.asked(rows, tokens)
        return np.where(asked, NEVER, ALWAYS).reshape(_laid(shape, dims[0]))

    def relation(self, tokens: int, rows: int = 1) -> dict[str, Any]:
        slots = {
            name: made(rows, tokens).astype(int).tolist()
            for name, made in (("replaced", self.replaced), ("asked", self.asked))
        }
        return {"tokens": tokens, "generators": [], "last_only": False, **slots}

    def changes(self, tokens: int, rows: int = 1) -> Iterator[Change]:
        slots = self.replaced(rows, tokens)
        if slots.any() and self.asked(rows, tokens).any():
            yield Change(self.told(tokens), slots=slots)

    def cases(self, tokens: int, rows: int = 1) -> Iterator[tuple[Change, int, int]]:
        for change in self.changes(tokens, rows):
            yield change, 0, 0

    def compare(
        self, first: Tensor, second: Tensor, dims: tuple[TokenDim, ...], change: Change
    ) -> tuple[Tensor, Tensor]:
        asked = self._asked(tuple(first.shape), dims, self._tokens(change))
        assert asked is not None
        mask = torch.from_numpy(np.array(asked))
        return first[mask], second[mask]

    @staticmethod
    def _tokens(change: Change) -> int:
        assert change.slots is not None
        return int(change.slots.shape[1])

    def place(
        self, index: tuple[int, ...], dims: tuple[TokenDim, ...], tokens: int, shape: Shape = ()
    ) -> tuple[int, ...]:
        asked = self._asked(shape, dims, tokens)
        assert asked is not None
        return tuple(int(i) for i in np.argwhere(asked)[index[0]])


def _laid(shape: Shape, axis: int) -> list[int]:
    """The shape that lays [row, token] along axis 0 and `axis`; or, where tokens come first, [1, token] there."""
    return [s if d in (0, axis) else 1 for d, s in enumerate(shape)]
