"""The base classes of proved laws: relations between two runs of one graph.

    if the inputs are related in one way, the outputs are related in another

A law gives the prover the facts of the inputs (`input_fact`) and decides whether the fact about an output is sufficient
(`missing_property`). It gives the search for a witness the changes to try, smallest first (`input_changes`), and the
expected output of the second run (`expected_and_actual`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from orderproof.diagnosis.domain.fact import ALWAYS, NEVER, DependenceArray, Fact, Shape, constant_dependence
from orderproof.diagnosis.domain.move import FREE, STILL, is_permuted, permuted_axis
from orderproof.laws.law import Law
from orderproof.laws.mixing_kinds import ATTENTION, OTHER
from orderproof.permutations import (
    Permutation,
    cycle_notation,
    inverse,
    reversal,
    symmetric_generators,
    transposition,
)
from orderproof.records.audit import Expectation, Remedy
from orderproof.theorems.statement import BLOCKS, POSITIONS, REAL_TOKENS, Equivariance, Statement

TokenAxis = int | tuple[int, ...] | None  # the axis of an input that runs over tokens; both axes of a mask


def axis_tuple(axis: TokenAxis) -> tuple[int, ...]:
    """The axes as a tuple."""
    return () if axis is None else (axis,) if isinstance(axis, int) else axis


@dataclass(frozen=True)
class TokenDim:
    """A dimension of an output that runs over tokens, after `prefix_length` other entries ([CLS]).

    All further entries follow the last token. Whether the other entries precede or follow the tokens is known only
    if that is stated (`is_known`).
    """

    dim: int
    prefix_length: int = 0
    is_known: bool = False


UNKNOWN_ROWS = (
    "which row each entry of the output belongs to is not known: state its axes with --output-axes (in Python "
    "outputs=) or return the rows along an axis of their own"
)


def rows_and_tokens(shape: Shape, axis: int) -> list[int]:
    """The shape that puts [row, token] on axis 0 and `axis`; [1, token] if tokens are the first axis."""
    return [size if d in (0, axis) else 1 for d, size in enumerate(shape)]


def extend_permutation(p: Permutation, offset: int, size: int) -> Permutation:
    """A permutation of tokens as a permutation of a dimension with other entries before and after them."""
    result = np.arange(size)
    result[offset : offset + len(p)] = p + offset
    return result


def evenly_spaced(count: int, most: int = 16) -> list[int]:
    """At most `most` of the indices below `count`, evenly spaced, including the first and the last."""
    return sorted({round(k * (count - 1) / (most - 1)) for k in range(most)}) if count > most else list(range(count))


@dataclass(frozen=True)
class InputChange:
    """The change of the tokens from the first run to the second."""

    description: str
    permutation: Permutation | None = None
    first_replaced: int | None = None
    replaced_slots: NDArray[np.bool_] | None = None  # [row, token]

    def apply(self, x: Tensor, other: Tensor, axis: TokenAxis) -> Tensor:
        """The input of the second run; replaced tokens are taken from `other`."""
        if self.permutation is not None:
            for d in axis_tuple(axis):
                x = x.index_select(d, torch.from_numpy(inverse(self.permutation)))
            return x
        (axis,) = axis_tuple(axis)
        if self.replaced_slots is not None:  # rows along axis 0, tokens along `axis`
            shape = [s if d in (0, axis) else 1 for d, s in enumerate(x.shape)]
            return torch.where(torch.tensor(self.replaced_slots).reshape(shape), other, x)
        assert self.first_replaced is not None
        kept = torch.arange(x.shape[axis]) < self.first_replaced
        return torch.where(kept.reshape([-1 if d == axis else 1 for d in range(x.dim())]), x, other)

    def labels(self, tokens: tuple[str, ...], others: tuple[str, ...]) -> tuple[str, ...]:
        """The names of the tokens of the second run, in the first row with a replaced token."""
        if self.permutation is not None:
            return tuple(tokens[i] for i in inverse(self.permutation))
        if self.replaced_slots is not None:
            row = self.replaced_slots[int(self.replaced_slots.any(axis=1).argmax())]
            return tuple(y if new else x for x, y, new in zip(tokens, others, row, strict=True))
        assert self.first_replaced is not None
        return tokens[: self.first_replaced] + others[self.first_replaced :]


@dataclass(frozen=True, kw_only=True)
class ProvedLaw(Law):
    """A law that the prover can decide: a relation between two runs of one graph."""

    remedies: Mapping[Expectation, Remedy] = field(default_factory=dict)  # by the expectation that is not met
    remedies_by_mixing: Mapping[str, Remedy] = field(default_factory=dict)  # by the kind of the operator that leaks
    call_modes: tuple[str, ...] = ("plain",)  # the ways to call the subject for this law
    call_modes_without_theorem: tuple[str, ...] = ()  # further ways to call it, where no theorem covers them
    call_modes_of_other_masks: tuple[str, ...] = ()  # in which runs are compared, where no theorem covers every mask

    call_modes_of_one_side: tuple[str, ...] = ()  # tried where `one_call_mode_suffices`, or if it has no other

    maps_entries: bool = False  # its breaks are the entry map, whose completeness is proved

    family = "permutation"  # how a certificate names the kind of relation
    permutes_tokens = False  # the second run has the tokens in another order
    last_token_only = False  # the law concerns only the output of the last token
    can_replace_with_pad = False  # the pad token is tried as a replacement too
    replaces_whole_rows = False  # the law replaces whole rows of the batch, whether they have tokens or not
    reads_rows = False  # which row each entry of an output belongs to matters
    requires_token_mixing = True  # a proof is vacuous if no token's output depends on another token

    def in_call_mode(self, call_mode: str) -> ProvedLaw:
        """The law as it is decided in a call mode."""
        del call_mode
        return self

    def remedy_of_mixing(self, kind: str) -> Remedy | None:
        """The remedy where an operator of this kind mixes tokens; None if `remedies` says what to do."""
        return self.remedies_by_mixing.get(kind, self.remedies_by_mixing.get(OTHER) if kind != ATTENTION else None)

    def subrelations(self, rows: int) -> tuple[ProvedLaw, ...]:
        """The relations that together are the law for a batch with this number of rows; each is proved separately."""
        return (self,)

    @abstractmethod
    def input_fact(self, shape: Shape, axis: TokenAxis) -> Fact:
        """The fact about an input whose tokens run along `axis`."""

    @abstractmethod
    def missing_property(self, fact: Fact, dims: tuple[TokenDim, ...], tokens: int) -> str | None:
        """Why the fact about an output [row, ...] is not sufficient for the law; None if it is."""

    def open_statement(self, shared: frozenset[str]) -> Statement | Equivariance | None:
        """The law for every number of tokens and rows; None if it has none for these inputs that both runs share."""
        del shared
        return None

    @abstractmethod
    def input_changes(self, tokens: int, rows: int = 1) -> Iterator[InputChange]:
        """The changes to try, smallest first; `rows` is the number of rows of the batch."""

    def every_change(self, tokens: int, rows: int = 1) -> Iterator[InputChange]:
        """The changes of which each may be the only one that shows a violation, smallest first."""
        return self.input_changes(tokens, rows)

    @abstractmethod
    def expected_and_actual(
        self, first: Tensor, second: Tensor, dims: tuple[TokenDim, ...], change: InputChange
    ) -> tuple[Tensor, Tensor]:
        """The output that the law expects of the second run, and the actual one."""

    def output_index(
        self, index: tuple[int, ...], dims: tuple[TokenDim, ...], tokens: int, shape: Shape = ()
    ) -> tuple[int, ...]:
        """The index into an output of this shape for an index into the tensors of `expected_and_actual`."""
        return index

    def inapplicable_reason(self, dims: tuple[TokenDim, ...]) -> str | None:
        """Why the law has no meaning for an output with these token dimensions; None if it has one."""
        return None

    def one_call_mode_suffices(self, dims: tuple[TokenDim, ...]) -> bool:
        """True if an output with these token dimensions has to obey the law in one of `call_modes_of_one_side` only."""
        del dims
        return False

    def max_dependence(self, shape: Shape, tokens: int, rows: int) -> DependenceArray | None:
        """The largest dependence that each element of an intermediate tensor may have; None if that is not known."""
        return None

    def forbidden_pairs(self, tokens: int, rows: int = 1) -> NDArray[np.bool_] | None:
        """The pairs [query, key] of tokens in the first row that must not see each other; None if the law has none."""
        del tokens, rows
        return None

    def expectation_from_mask(self, visible: NDArray[np.bool_]) -> tuple[Expectation, str]:
        """The result that a mask [query, key] of the model suggests, and what the mask does; ("any", "") if none.

        It is asked of a model of which nothing is known, with the mask of each place that violates the law.
        """
        del visible
        return "any", ""

    def line_change(self, line: str, visible: NDArray[np.bool_] | None, form: str, *, applied: bool) -> str:
        """The diff of a line of the model that repairs a violation; empty if there is none.

        ``visible`` is the mask [query, key] that the line computes, None if it computes none. ``form`` says how the
        mask is read: true is "visible", true is "hidden", or it is "added" to the scores. ``applied`` says that the
        line applies the mask to scores, and does not only compute it.
        """
        del line, visible, form, applied
        return ""

    def proof_cases(self, tokens: int, rows: int = 1) -> Iterator[tuple[InputChange, int, int]]:
        """Changes that correspond to a generator or a case of the facts: (change, generator, case)."""
        yield from ()


@dataclass(frozen=True, kw_only=True)
class EquivarianceLaw(ProvedLaw):
    """Tokens are permuted by a group; the output is permuted in the same way, or unchanged if it has no tokens."""

    permutes_tokens = True

    generators: Callable[[int], tuple[Permutation, ...]] = lambda n: (reversal(n),)
    last_token_only: bool = False  # the law concerns only the output of the last token

    def open_statement(self, shared: frozenset[str]) -> Equivariance | None:
        """Equivariance to every permutation, from which that to a group, or of the last token, follows."""
        if shared & REAL_TOKENS.keys():
            return None
        covers = ["every permutation of the tokens"] * (self.generators is symmetric_generators)
        covers += ["all position ids"] * (POSITIONS in shared) + ["every mask [query, key]"] * (BLOCKS in shared)
        return Equivariance(tuple(covers))

    def input_fact(self, shape: Shape, axis: TokenAxis) -> Fact:
        rank = len(shape)
        if axis is None:
            return Fact(shape, (STILL,) * rank, constant_dependence(rank, NEVER))
        move = permuted_axis(np.stack(self.generators(shape[axis_tuple(axis)[0]])))
        return Fact(
            shape,
            tuple(move if d in axis_tuple(axis) else STILL for d in range(rank)),
            constant_dependence(rank, NEVER),
        )

    def missing_property(self, fact: Fact, dims: tuple[TokenDim, ...], tokens: int) -> str | None:
        group = np.stack(self.generators(tokens))
        token_dims = {t.dim: t.prefix_length for t in dims}
        level = fact.dependence
        for d, move in enumerate(fact.moves):
            if d in token_dims and self.last_token_only:
                index = token_dims[d] + tokens - 1
                last = slice(index, index + 1) if level.shape[d] > 1 else slice(0, 1)
                level = level[(slice(None),) * d + (last,)]
                if move.permutations is not None and (move.permutations[:, index] != index).any():
                    return f"the last token of dimension {d} is moved"
            elif d in token_dims:
                wanted = np.stack([extend_permutation(p, token_dims[d], fact.shape[d]) for p in group])
                if move is not FREE and move is not permuted_axis(wanted):
                    return f"dimension {d} runs over tokens but does not move with them"
            elif is_permuted(move):
                return f"dimension {d} is no token dimension but moves"
        if (level != NEVER).any():
            return "nothing follows for some of its elements" if (level == NEVER).any() else "nothing follows for it"
        return None

    def output_index(
        self, index: tuple[int, ...], dims: tuple[TokenDim, ...], tokens: int, shape: Shape = ()
    ) -> tuple[int, ...]:
        last = {t.dim: t.prefix_length + tokens - 1 for t in dims} if self.last_token_only else {}
        return tuple(last.get(d, i) for d, i in enumerate(index))

    def input_changes(self, tokens: int, rows: int = 1) -> Iterator[InputChange]:
        movable = tokens - 1 if self.last_token_only else tokens
        group = self.generators(tokens)
        if len(group) == 1 and np.array_equal(group[0], reversal(tokens)) and not self.last_token_only:
            yield InputChange("reverse the tokens", permutation=group[0])
            return
        # Transpositions may be tried only if the group contains all permutations.
        every_order = [p.tolist() for p in group] == [p.tolist() for p in symmetric_generators(tokens, movable)]
        for distance in range(1, movable if every_order else 1):
            for i in evenly_spaced(movable - distance):
                j = i + distance
                yield InputChange(f"swap tokens {i} and {j}", permutation=transposition(tokens, i, j))
            if distance >= 2 and tokens > 8:
                break
        for p in group:
            yield InputChange(f"permute the tokens by {cycle_notation(p)}", permutation=p)

    def expected_and_actual(
        self, first: Tensor, second: Tensor, dims: tuple[TokenDim, ...], change: InputChange
    ) -> tuple[Tensor, Tensor]:
        assert change.permutation is not None
        for t in dims:
            if self.last_token_only:
                last = t.prefix_length + len(change.permutation) - 1
                first, second = first.narrow(t.dim, last, 1), second.narrow(t.dim, last, 1)
            else:
                p = extend_permutation(change.permutation, t.prefix_length, first.shape[t.dim])
                first = first.index_select(t.dim, torch.from_numpy(inverse(p)))
        return first, second

    def proof_cases(self, tokens: int, rows: int = 1) -> Iterator[tuple[InputChange, int, int]]:
        for g, p in enumerate(self.generators(tokens)):
            yield InputChange(f"permute the tokens by {cycle_notation(p)}", permutation=p), g, 0


@dataclass(frozen=True, kw_only=True)
class IndependenceLaw(ProvedLaw):
    """Some tokens are replaced; certain outputs are unchanged."""

    family = "independence"

    def inapplicable_reason(self, dims: tuple[TokenDim, ...]) -> str | None:
        return None if dims else "the output has no token dimension"

    def dependence_text(self, level: int) -> str:
        """The tokens on which an element with this level of dependence depends."""
        return "anything" if level >= ALWAYS else f"token {level}"

    def proof_cases(self, tokens: int, rows: int = 1) -> Iterator[tuple[InputChange, int, int]]:
        changes = list(self.input_changes(tokens, rows))
        for k in evenly_spaced(len(changes), 8):
            change = changes[k]
            assert change.first_replaced is not None
            yield change, 0, change.first_replaced
