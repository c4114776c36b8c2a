"""Operands whose dimensions are labelled, as in einsum: bring them to one move for each label.

Two lemmas rest on this: pointwise operators (every label is in the result) and contractions (some labels
are summed). For each label the operands must move alike; an operand that is constant along it may be said
to move in any way; an operand whose values are known may be said to move as required wherever
C[move(e)] == C[e] holds for those values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch.fx import Node

from orderproof.prover.fact import (
    ALWAYS,
    EXACT,
    NEVER,
    Fact,
    Known,
    Levels,
    agrees,
    carry,
    compress,
    generators_of,
    unsure,
)
from orderproof.prover.move import FREE, STILL, Move, is_moved
from orderproof.prover.rule import Application, Break, Place

Labels = tuple[str, ...]
SMALL = 4096  # constants up to this size are moved about with their values: they may be masks


@dataclass(slots=True)
class Operand:
    """One operand: its fact, the label of each dimension ('' for a dimension of size 1 that broadcasts)."""

    fact: Fact
    labels: Labels
    node: Node | None = None  # None for a literal
    argument: Place = None
    derived: bool = False  # made inside a rule: depends on the input although no node stands for it

    def is_constant(self, a: Application) -> bool:
        """Whether the operand is the same in both runs whatever the input."""
        return not self.derived and (self.node is None or self.node in a.constants)


def refined(a: Application, node: Node) -> Fact:
    """The fact about an operand; for a constant whose values may be used, with what they show to be free."""
    fact = a.fact(node)
    if node in a.constants and fact.known is None:
        array = a.constants.array(node)
        if array is not None:
            small = compress(array)
            free = [s == 1 and n > 1 for s, n in zip(small.shape, fact.shape, strict=True)]
            if any(free):
                a.constants.consult(node)
                moves = tuple(FREE if f else m for f, m in zip(free, fact.moves, strict=True))
                return Fact(fact.shape, moves, fact.level)
    return fact


def with_values(a: Application, node: Node) -> Fact:
    """The fact about an operand; of a small constant with its values, of a large one with what they could mask."""
    fact = a.fact(node)
    if fact.known is not None or node not in a.constants:
        return fact
    if math.prod(fact.shape) > SMALL:
        return unsure(fact) if a.may_mask(node) else fact
    array = a.constants.array(node)
    if array is None:
        return fact
    a.constants.consult(node)
    return Fact(fact.shape, fact.moves, fact.level, Known(np.ones((1,) * array.ndim, dtype=np.uint8), array))


def common_moves(a: Application, operands: Sequence[Operand]) -> dict[str, Move]:
    """One move for each label: what the operands that depend on the input do; constants follow."""
    moves: dict[str, Move] = {}
    for constant in (False, True):
        for operand in operands:
            if operand.is_constant(a) != constant:
                continue
            for label, move in zip(operand.labels, operand.fact.moves, strict=True):
                if not label:
                    continue
                current = moves.get(label, FREE)
                if current is FREE or (not constant and is_moved(move) and not is_moved(current)):
                    moves[label] = move
    return moves


def settle(a: Application, operand: Operand, moves: dict[str, Move]) -> Levels:
    """The operand's levels when it is said to move by `moves`; reports a break where it does not."""
    fact = operand.fact
    wrong = tuple(
        d
        for d, (label, move) in enumerate(zip(operand.labels, fact.moves, strict=True))
        if label and not agrees(move, moves[label])
    )
    if not wrong:
        return fact.level
    target = target_moves(operand, moves)
    # "Free" is a claim of constancy: an operand that does not make it cannot be said to satisfy it.
    symmetric = None if any(target[d] is FREE for d in wrong) else _symmetric(a, operand, target)
    if symmetric is not None and symmetric.all():
        return fact.level
    constant = operand.is_constant(a)
    dims = _dims_to_repair(fact, wrong, target) if constant else wrong
    a.report(
        Break(
            node=a.node,
            operand=operand.node,
            argument=operand.argument,
            dims=dims,
            moves=tuple(target[d] if is_moved(target[d]) else _move_of_size(fact.shape[d], target) for d in dims),
            constant=constant,
            reason=_reason(fact, wrong, target, constant=constant),
        )
    )
    if a.repairing:
        return fact.level
    if symmetric is None:
        return np.full((1,) * len(fact.shape), ALWAYS, dtype=np.int64)
    return compress(np.where(symmetric, fact.level, ALWAYS))


def target_moves(operand: Operand, moves: dict[str, Move]) -> tuple[Move, ...]:
    """How each dimension of an operand is to move."""
    return tuple(
        moves[label] if label else move for label, move in zip(operand.labels, operand.fact.moves, strict=True)
    )


def _symmetric(a: Application, operand: Operand, target: tuple[Move, ...]) -> NDArray[np.bool_] | None:
    """Where the operand's known values satisfy C[target(e)] == C[e]; None where no value is known."""
    fact = operand.fact
    if fact.known is None:
        array = a.constants.array(operand.node) if operand.node is not None and operand.is_constant(a) else None
        if array is None:
            return None
        known = Known(np.full((1,) * array.ndim, EXACT, dtype=np.uint8), array)
    else:
        known = fact.known
    agree: NDArray[np.bool_] = known.where(EXACT)
    for g in range(generators_of(target) or generators_of(fact.moves)):
        image = carry(known.value, target, fact.shape, g)
        same = image == known.value
        if known.value.dtype.kind in "fc":
            same |= (image != image) & (known.value != known.value)
        agree = agree & same & (carry(known.status, target, fact.shape, g) == EXACT)
    if operand.node is not None and operand.is_constant(a) and agree.any():
        a.constants.consult(operand.node)
    return agree


def _dims_to_repair(fact: Fact, wrong: tuple[int, ...], target: tuple[Move, ...]) -> tuple[int, ...]:
    """The dimensions of a constant to make uniform: every one as long as a dimension at fault.

    Repairing only the ones at fault would leave a causal mask uneven along the other axis, and each later
    layer would break again.
    """
    sizes = {fact.shape[d] for d in wrong}
    return tuple(d for d, size in enumerate(fact.shape) if size in sizes and fact.moves[d] is not FREE and size > 1)


def _move_of_size(size: int, target: tuple[Move, ...]) -> Move:
    for move in target:
        if move.permutations is not None and move.permutations.shape[1] == size:
            return move
    return STILL


def _reason(fact: Fact, wrong: tuple[int, ...], target: tuple[Move, ...], *, constant: bool) -> str:
    dims = ", ".join(str(d) for d in wrong)
    many = "dimension" if len(wrong) == 1 else "dimensions"
    if constant:
        return f"a constant that is not the same for every token along {many} {dims} of {list(fact.shape)}"
    has = " and ".join(sorted({fact.moves[d].kind for d in wrong}))
    wants = " and ".join(sorted({target[d].kind for d in wrong}))
    return f"operands move differently: {many} {dims} of {list(fact.shape)} is {has}, the other operand's is {wants}"


def align(array: NDArray[np.generic], labels: Labels, order: Sequence[str]) -> NDArray[np.generic]:
    """Put an array's dimensions in the order of the labels, with size 1 for the labels it lacks."""
    named = [d for d, label in enumerate(labels) if label]
    dropped = tuple(d for d, label in enumerate(labels) if not label)
    if dropped:
        array = array[tuple(0 if d in dropped else slice(None) for d in range(array.ndim))]
    labels = tuple(labels[d] for d in named)
    position = {label: k for k, label in enumerate(labels)}
    present = [position[label] for label in order if label in position]
    if present != list(range(len(present))):
        array = array.transpose(present)
    sizes = iter(array.shape)
    return array.reshape([next(sizes) if label in position else 1 for label in order])


def highest(levels: Sequence[Levels]) -> Levels:
    """The larger level of each element; an empty sequence gives `NEVER`."""
    result = levels[0]
    for level in levels[1:]:
        if level.size == 1 and level.flat[0] == NEVER:
            continue
        result = np.maximum(result, level)
    return result
