"""The relation between the two runs that each law compares, as data. The checker imports no law: it has its own table.

A permutation law permutes the tokens by each generator of a group. An independence law replaces tokens: those from j on
for each j (`causal`), or a set of slots [row, token]. In a padded batch `causal` speaks of the outputs at real tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from orderproof.recheck.fact import (
    IDENTITY,
    INDEPENDENT,
    TOP,
    UNIFORM,
    Array,
    BoolArray,
    Move,
    Permutation,
)
from orderproof.recheck.reading import MAX_ARRAY_ELEMENTS, require


def every_order(tokens: int) -> tuple[Permutation, ...]:
    """Generators of all permutations: a transposition and a cycle."""
    cycle = (*range(1, tokens), 0)
    return ((1, 0, *range(2, tokens)), cycle) if tokens > 2 else (cycle,)


def every_order_before_the_last(tokens: int) -> tuple[Permutation, ...]:
    """Generators of all permutations that keep the last token in place."""
    if tokens == 1:
        return ((0,),)
    return tuple((*permutation, tokens - 1) for permutation in every_order(tokens - 1))


def reversed_order(tokens: int) -> tuple[Permutation, ...]:
    """The reversal."""
    return (tuple(reversed(range(tokens))),)


def are_pads(replaced: BoolArray) -> bool:
    """True if the slots are a third of each row: left in even rows, right in odd ones; a single row has both sides."""
    rows, tokens = replaced.shape
    pads, place = max(1, tokens // 3), np.arange(tokens)
    if rows > 1:
        even = np.arange(rows)[:, None] % 2 == 0
        return np.array_equal(replaced, np.where(even, place < pads, place >= tokens - pads))
    left = pads - pads // 2 if tokens > 2 else pads
    return np.array_equal(replaced[0], (place < left) | (place >= tokens - pads + left))


def are_a_document(replaced: BoolArray) -> bool:
    """True if the slots are the first or the second half of every row."""
    tokens = replaced.shape[1]
    first = np.arange(tokens) < tokens // 2
    return bool((replaced == first).all() or (replaced == ~first).all())


def are_a_row(replaced: BoolArray) -> bool:
    """True if the slots are one whole row."""
    return bool((replaced == replaced[:, :1]).all() and replaced[:, 0].sum() == 1)


@dataclass(frozen=True)
class LawRelation:
    """The relation of one law."""

    law: str  # its name, as printed
    generators: Callable[[int], tuple[Permutation, ...]] | None = None  # of a permutation law, for a number of tokens
    are_replaced: Callable[[BoolArray], bool] | None = None  # True for the slots [row, token] that the law may replace
    replaced_unit: str = ""  # what is replaced, if there is a choice
    last_token_only: bool = False  # the last token stays, and the law speaks of the output at it
    whole_rows: bool = False  # the output needs no token dimension
    may_leave_out_pads: bool = False  # the law may speak of the outputs at real tokens only

    @property
    def family(self) -> str:
        """The kind of law, as the certificate names it."""
        return "permutation" if self.generators else "independence"


RELATIONS: dict[str, LawRelation] = {
    "OP101": LawRelation("permutation", generators=every_order),
    "OP102": LawRelation("prompt_permutation", generators=every_order_before_the_last, last_token_only=True),
    "OP103": LawRelation("reversal", generators=reversed_order),
    "OP104": LawRelation("position_ids", generators=every_order),
    "OP201": LawRelation("causal", may_leave_out_pads=True),
    "OP202": LawRelation("padding", are_replaced=are_pads),
    "OP203": LawRelation("packing", are_replaced=are_a_document, replaced_unit="document"),
    "OP204": LawRelation("batch", are_replaced=are_a_row, replaced_unit="row", whole_rows=True),
}


@dataclass(frozen=True)
class Relation:
    """The relation of a law for a number of tokens."""

    law: LawRelation
    tokens: int
    group: tuple[Permutation, ...]  # the generators; empty for an independence law
    replaced: BoolArray | None  # [row, token], for a law that replaces slots
    pads: BoolArray | None = None  # [row, token], at which nothing is claimed of the outputs

    def describe_replaced(self) -> str | None:
        """The document or row that is replaced, in words; None if the law leaves no choice."""
        if self.replaced is None or not self.law.replaced_unit:
            return None
        line = self.replaced[:, 0] if self.law.whole_rows else self.replaced[0]
        unit = self.law.replaced_unit
        if line[0]:
            return f"the first {unit}"
        return f"the last {unit}" if line[-1] else f"{unit} {line.argmax()}"

    def moves_and_dependence(
        self, shape: tuple[int, ...], dims: Mapping[int, int], replaced_level: int
    ) -> tuple[list[Move], Array]:
        """The moves of a tensor with these token dimensions, and the dependence of its elements.

        `dims` gives for each token dimension the number of elements before the first token. `replaced_level` is the
        dependence where slots are replaced: 0, the case of the law, for an input; TOP, no restriction, for an output.
        """
        is_output = replaced_level == TOP
        moves: list[Move] = [IDENTITY] * len(shape)
        dependence: Array = np.full((1,) * len(shape), INDEPENDENT)
        slots = self.replaced if self.replaced is not None else self.pads if is_output else None
        if slots is not None and (dims or is_output):
            require(shape[0] == len(slots), "its first dimension is not the batch dimension of the relation")
        for d, offset in dims.items():
            fits = type(d) is int and 0 <= d < len(shape)
            fits = fits and type(offset) is int and 0 <= offset <= shape[d] - self.tokens
            require(fits, f"it has no token dimension {str(d)[:9]} of the relation's size")
            moves[d] = self._extended(offset, shape[d])
            if not self.group:
                dependence = self._dependence_along(shape, d, offset, replaced_level)
        if self.law.whole_rows and is_output and not dims:
            assert self.replaced is not None
            rows = np.where(self.replaced[:, 0], TOP, INDEPENDENT)
            dependence = rows.reshape([-1] + [1] * (len(shape) - 1))
        return moves, dependence

    def _extended(self, offset: int, size: int) -> Move:
        """The generators as permutations of a dimension with `offset` elements before the first token."""
        end = offset + self.tokens
        return self.normal_move(
            tuple((*range(offset), *(offset + i for i in p), *range(end, size)) for p in self.group), size
        )

    def _dependence_along(self, shape: tuple[int, ...], d: int, offset: int, replaced_level: int) -> Array:
        if self.replaced is None:  # the largest token index that an element depends on
            line = np.maximum(np.arange(shape[d]) - offset, INDEPENDENT)[None]
            if self.pads is not None and replaced_level == TOP:
                require(d != 0, "its token dimension is the batch dimension of the relation")
                line = np.repeat(line, shape[0], axis=0)
                line[:, offset : offset + self.tokens][self.pads] = TOP
        else:  # elements before and behind the tokens are unrestricted
            line = np.full((shape[0], shape[d]), replaced_level)
            line[:, offset : offset + self.tokens] = np.where(self.replaced, replaced_level, INDEPENDENT)
        sizes = [shape[k] if k == d else len(line) if k == 0 else 1 for k in range(len(shape))]
        return line.reshape(sizes)

    def normal_move(self, move: object, size: int) -> Move:
        """A move of a dimension of this size, checked; IDENTITY if no generator moves anything."""
        if isinstance(move, str):
            require(move in (IDENTITY, UNIFORM), "expected a move: identity, uniform, or permutations")
            return move
        require(isinstance(move, list | tuple), "expected a move: identity, uniform, or permutations")
        permutations = tuple(tuple(p) for p in move)  # type: ignore[attr-defined]
        identity = tuple(range(size))
        valid = all(all(type(i) is int for i in p) and tuple(sorted(p)) == identity for p in permutations)
        require(valid and len(permutations) == len(self.group), "expected one permutation for each generator")
        return IDENTITY if all(p == identity for p in permutations) else permutations


def read_relation(certificate: Mapping[str, Any]) -> Relation:
    """The relation of a certificate. Raises `CertificateError` unless it is exactly that of its law."""
    law, claimed = RELATIONS.get(certificate["code"]), certificate["relation"]
    tokens = claimed["tokens"]
    require(law is not None and certificate["law"] == law.law, "its law is unknown, or has another code")
    assert law is not None
    require(type(tokens) is int and 1 <= tokens <= MAX_ARRAY_ELEMENTS, "its number of tokens is out of range")
    require(certificate["family"] == law.family, "its family is not that of its law")
    group = law.generators(tokens) if law.generators else ()
    expected: dict[str, object] = {
        "tokens": tokens,
        "generators": [list(p) for p in group],
        "last_only": law.last_token_only,
    }
    replaced: BoolArray | None = None
    if law.are_replaced is not None:
        replaced = np.array(claimed["replaced"]) == 1
        require(replaced.ndim == 2 and replaced.shape[1] == tokens and len(replaced), "its relation has no slots")
        require(law.are_replaced(replaced), "its relation between the runs replaces other slots than its law")
        require(not replaced.all(), "its relation replaces every slot, so that nothing is claimed")
        expected |= {"replaced": (replaced * 1).tolist(), "unchanged": (~replaced * 1).tolist()}
    pads: BoolArray | None = None
    if law.may_leave_out_pads and "unchanged" in claimed:
        pads = np.array(claimed["unchanged"]) != 1
        require(pads.ndim == 2 and pads.shape[1] == tokens and len(pads), "its relation has no slots")
        require(are_pads(pads), "its relation leaves out other outputs than those at pads")
        expected["unchanged"] = (~pads * 1).tolist()
    require(claimed == expected, "its relation between the runs is not that of its law")
    return Relation(law, tokens, group, replaced, pads)
