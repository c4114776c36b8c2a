"""What a law is: a relation between two runs, and what it then asks of the outputs.

    if the inputs are related in this way, the outputs are related in that way

A law gives the prover the facts it starts from (`input_fact`) and decides whether the fact about an output
is what the law asks (`shortfall`). It gives the refuter changes to try, smallest first (`changes`), and says
what the second output should then be (`compare`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from orderproof.permutations import (
    Permutation,
    cycles_text,
    inverse,
    reversal,
    symmetric_generators,
    transposition,
)
from orderproof.prover.fact import NEVER, Fact, Levels, Shape, uniform
from orderproof.prover.move import FREE, STILL, is_moved, moved
from orderproof.record import Expectation, Remedy

Axis = int | tuple[int, ...] | None  # the axis of an input that runs over tokens; both axes of a mask


def along(axis: Axis) -> tuple[int, ...]:
    """The axes named, as a tuple."""
    return () if axis is None else (axis,) if isinstance(axis, int) else axis


@dataclass(frozen=True)
class TokenDim:
    """A dimension of an output that runs over tokens; `offset` entries stand before the first of them ([CLS]).

    What is left of the dimension stands behind the last token.
    """

    dim: int
    offset: int = 0


def extended(p: Permutation, offset: int, size: int) -> Permutation:
    """A permutation of tokens as one of a dimension that holds other entries before and behind them."""
    result = np.arange(size)
    result[offset : offset + len(p)] = p + offset
    return result


def spread(count: int, most: int = 16) -> list[int]:
    """At most this many of the indices below `count`, evenly spread, the first and the last among them."""
    return sorted({round(k * (count - 1) / (most - 1)) for k in range(most)}) if count > most else list(range(count))


@dataclass(frozen=True)
class Change:
    """What is done to the tokens of the first run to get the second."""

    text: str
    permutation: Permutation | None = None
    cut: int | None = None
    slots: NDArray[np.bool_] | None = None  # [row, token]: which are replaced

    def apply(self, x: Tensor, other: Tensor, axis: Axis) -> Tensor:
        """The second run's input; `other` supplies new tokens where tokens are replaced."""
        if self.permutation is not None:
            for d in along(axis):
                x = x.index_select(d, torch.from_numpy(inverse(self.permutation)))
            return x
        (axis,) = along(axis)
        if self.slots is not None:  # rows along axis 0, tokens along `axis`
            shape = [s if d in (0, axis) else 1 for d, s in enumerate(x.shape)]
            return torch.where(torch.tensor(self.slots).reshape(shape), other, x)
        assert self.cut is not None
        kept = torch.arange(x.shape[axis]) < self.cut
        return torch.where(kept.reshape([-1 if d == axis else 1 for d in range(x.dim())]), x, other)

    def labels(self, tokens: tuple[str, ...], others: tuple[str, ...]) -> tuple[str, ...]:
        """The second run's tokens, by name: those of the first row in which something is replaced."""
        if self.permutation is not None:
            return tuple(tokens[i] for i in inverse(self.permutation))
        if self.slots is not None:
            row = self.slots[int(self.slots.any(axis=1).argmax())]
            return tuple(y if new else x for x, y, new in zip(tokens, others, row, strict=True))
        assert self.cut is not None
        return tokens[: self.cut] + others[self.cut :]


@dataclass(frozen=True)
class Law(ABC):
    """One law: its code, its name, what it says, and when it should hold."""

    code: str
    name: str
    statement: str
    expectation: Mapping[str, Expectation]  # by kind of subject; a kind that is missing expects anything
    honest: Callable[[], nn.Module]  # a small module that obeys it; takes [batch, token, width 8]
    faulty: Callable[[], nn.Module]  # the same with a planted fault

    remedies: Mapping[Expectation, Remedy] = field(default_factory=dict)  # where it should hold, or fail, and does not
    settings: tuple[str, ...] = ("plain",)  # the ways of calling the subject in which the law is asked

    family = "permutation"
    whole_rows = False  # it replaces whole rows of the batch, whatever they are made of
    needs_mixing = True  # where no token's output depends on another, a proof says nothing

    def relations(self, rows: int) -> tuple[Law, ...]:
        """The relations that together are the law for a batch of so many rows, each settled by a walk of its own."""
        return (self,)

    def expected(self, kind: str) -> Expectation:
        """Whether the law should hold for this kind of subject."""
        return self.expectation.get(kind, "any")

    @abstractmethod
    def input_fact(self, shape: Shape, axis: Axis) -> Fact:
        """The fact about an input whose tokens run along `axis`."""

    @abstractmethod
    def shortfall(self, fact: Fact, dims: tuple[TokenDim, ...], tokens: int, rows: int | None = None) -> str | None:
        """Why the fact about an output is less than the law asks; None when it is enough.

        `rows` is the size of the batch; where it is not given, that of the output's first dimension.
        """

    @abstractmethod
    def relation(self, tokens: int, rows: int = 1) -> dict[str, Any]:
        """The relation between the runs, as data for a certificate."""

    @abstractmethod
    def changes(self, tokens: int, rows: int = 1) -> Iterator[Change]:
        """Changes to try, smallest first; `rows` is the size of the batch."""

    @abstractmethod
    def compare(
        self, first: Tensor, second: Tensor, dims: tuple[TokenDim, ...], change: Change
    ) -> tuple[Tensor, Tensor]:
        """What the law asks of the second output, and what came."""

    def place(
        self, index: tuple[int, ...], dims: tuple[TokenDim, ...], tokens: int, shape: Shape = ()
    ) -> tuple[int, ...]:
        """An index into what `compare` gives, as an index into the whole output of this shape."""
        return index

    def not_asked(self, dims: tuple[TokenDim, ...]) -> str | None:
        """Why the law asks nothing of an output with these token dimensions; None where it does."""
        return None

    def allowed(self, shape: Shape, tokens: int, rows: int) -> Levels | None:
        """The highest level each element of a tensor between input and output may have; None where it is not known."""
        return None

    def cases(self, tokens: int, rows: int = 1) -> Iterator[tuple[Change, int, int]]:
        """Changes that stand for a generator or a case of the facts: (change, generator, case)."""
        yield from ()


@dataclass(frozen=True)
class PermutationLaw(Law):
    """Tokens permuted by a group; the output is permuted alike, or unchanged where it has no tokens."""

    generators: Callable[[int], tuple[Permutation, ...]] = lambda n: (reversal(n),)
    last_only: bool = False  # the law speaks of the last token's output only

    def input_fact(self, shape: Shape, axis: Axis) -> Fact:
        rank = len(shape)
        if axis is None:
            return Fact(shape, (STILL,) * rank, uniform(rank, NEVER))
        move = moved(np.stack(self.generators(shape[along(axis)[0]])))
        return Fact(shape, tuple(move if d in along(axis) else STILL for d in range(rank)), uniform(rank, NEVER))

    def shortfall(self, fact: Fact, dims: tuple[TokenDim, ...], tokens: int, rows: int | None = None) -> str | None:
        group = np.stack(self.generators(tokens))
        token_dims = {t.dim: t.offset for t in dims}
        level = fact.level
        for d, move in enumerate(fact.moves):
            if d in token_dims and self.last_only:
                index = token_dims[d] + tokens - 1
                last = slice(index, index + 1) if level.shape[d] > 1 else slice(0, 1)
                level = level[(slice(None),) * d + (last,)]
                if move.permutations is not None and (move.permutations[:, index] != index).any():
                    return f"the last token of dimension {d} does not stay where it is"
            elif d in token_dims:
                wanted = np.stack([extended(p, token_dims[d], fact.shape[d]) for p in group])
                if move is not FREE and move is not moved(wanted):
                    return f"dimension {d} runs over tokens but does not move with them"
            elif is_moved(move):
                return f"dimension {d} is no token dimension but moves"
        if (level != NEVER).any():
            return "nothing follows for some of its elements" if (level == NEVER).any() else "nothing follows for it"
        return None

    def place(
        self, index: tuple[int, ...], dims: tuple[TokenDim, ...], tokens: int, shape: Shape = ()
    ) -> tuple[int, ...]:
        last = {t.dim: t.offset + tokens - 1 for t in dims} if self.last_only else {}
        return tuple(last.get(d, i) for d, i in enumerate(index))

    def relation(self, tokens: int, rows: int = 1) -> dict[str, Any]:
        generators = [p.tolist() for p in self.generators(tokens)]
        return {"tokens": tokens, "generators": generators, "last_only": self.last_only}

    def changes(self, tokens: int, rows: int = 1) -> Iterator[Change]:
        movable = tokens - 1 if self.last_only else tokens
        group = self.generators(tokens)
        if len(group) == 1 and np.array_equal(group[0], reversal(tokens)) and not self.last_only:
            yield Change("reverse the tokens", permutation=group[0])
            return
        # A transposition may be tried only where the group has it: where it is that of all orders.
        every_order = [p.tolist() for p in group] == [p.tolist() for p in symmetric_generators(tokens, movable)]
        for distance in range(1, movable if every_order else 1):
            for i in spread(movable - distance):
                j = i + distance
                yield Change(f"swap tokens {i} and {j}", permutation=transposition(tokens, i, j))
            if distance >= 2 and tokens > 8:
                break
        for p in group:
            yield Change(f"permute the tokens by {cycles_text(p)}", permutation=p)

    def compare(
        self, first: Tensor, second: Tensor, dims: tuple[TokenDim, ...], change: Change
    ) -> tuple[Tensor, Tensor]:
        assert change.permutation is not None
        for t in dims:
            if self.last_only:
                last = t.offset + len(change.permutation) - 1
                first, second = first.narrow(t.dim, last, 1), second.narrow(t.dim, last, 1)
            else:
                p = extended(change.permutation, t.offset, first.shape[t.dim])
                first = first.index_select(t.dim, torch.from_numpy(inverse(p)))
        return first, second

    def cases(self, tokens: int, rows: int = 1) -> Iterator[tuple[Change, int, int]]:
        for g, p in enumerate(self.generators(tokens)):
            yield Change(f"permute the tokens by {cycles_text(p)}", permutation=p), g, 0


@dataclass(frozen=True)
class InfluenceLaw(Law):
    """Some tokens replaced by anything; the output is unchanged where the law says so."""

    family = "influence"

    def relation(self, tokens: int, rows: int = 1) -> dict[str, Any]:
        return {"tokens": tokens, "generators": [], "last_only": False}

    def not_asked(self, dims: tuple[TokenDim, ...]) -> str | None:
        return None if dims else "the output has no token dimension"

    def cases(self, tokens: int, rows: int = 1) -> Iterator[tuple[Change, int, int]]:
        changes = list(self.changes(tokens, rows))
        for k in spread(len(changes), 8):
            change = changes[k]
            assert change.cut is not None
            yield change, 0, change.cut
