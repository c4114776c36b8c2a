"""Operands with labelled dimensions: bring them to one move for each label.

Pointwise operators (every label is in the result) and contractions (some labels are summed) rest on this. For each
label the operands must move in the same way. An operand that is uniform along it moves in every way. A constant moves
as required wherever its values satisfy C[move(e)] == C[e].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch.fx import Node

from orderproof.diagnosis.domain.axis_labels import Labels, align_to_labels, labels_of
from orderproof.diagnosis.domain.fact import (
    ALWAYS,
    DependenceArray,
    Fact,
    compress,
    generator_count,
    is_compatible,
    pull_back,
    with_ranges_widened,
)
from orderproof.diagnosis.domain.move import FREE, STILL, Move, is_permuted
from orderproof.diagnosis.domain.values import BoolArray, ValueRanges, same_numbers
from orderproof.diagnosis.rule import ArgumentRef, OperatorCall, RelationBreak

MAX_TRACKED_ELEMENTS = 4096  # constants up to this size keep their values when they are moved: they may be masks


@dataclass(slots=True)
class Operand:
    """One operand: its fact and the label of each of its dimensions."""

    fact: Fact
    labels: Labels
    node: Node | None = None  # None for a literal
    argument: ArgumentRef = None
    is_intermediate: bool = False  # computed inside a rule (attention scores): no node, but depends on the input

    def is_constant(self, call: OperatorCall) -> bool:
        """True if the operand has the same value in both runs."""
        return not self.is_intermediate and (self.node is None or self.node in call.constants)


def with_uniform_axes_of_constant(call: OperatorCall, node: Node) -> Fact:
    """The fact about an operand; a constant whose values may be used is FREE along axes where it is uniform."""
    fact = call.fact(node)
    if node in call.constants and fact.ranges is None:
        array = call.constants.array(node)
        if array is not None:
            small = compress(array)
            free = [s == 1 and n > 1 for s, n in zip(small.shape, fact.shape, strict=True)]
            if any(free):
                call.constants.mark_used(node)
                moves = tuple(FREE if f else m for f, m in zip(free, fact.moves, strict=True))
                return Fact(fact.shape, moves, fact.dependence)
    return fact


def with_constant_values(call: OperatorCall, node: Node) -> Fact:
    """The fact about an operand: a small constant with its values, a large one that may mask with unbounded ranges."""
    fact = call.fact(node)
    if fact.ranges is not None or node not in call.constants:
        return fact
    if math.prod(fact.shape) > MAX_TRACKED_ELEMENTS:
        return with_ranges_widened(fact) if call.may_mask(node) else fact
    array = call.constants.array(node)
    if array is None:
        return fact
    call.constants.mark_used(node)
    return Fact(fact.shape, fact.moves, fact.dependence, ValueRanges.of_constant(array))


def common_moves(call: OperatorCall, operands: Sequence[Operand]) -> dict[str, Move]:
    """One move for each label: that of the operands that depend on the input; constants follow."""
    moves: dict[str, Move] = {}
    for constant in (False, True):
        for operand in operands:
            if operand.is_constant(call) != constant:
                continue
            for label, move in zip(operand.labels, operand.fact.moves, strict=True):
                if not label:
                    continue
                current = moves.get(label, FREE)
                if current is FREE or (not constant and is_permuted(move) and not is_permuted(current)):
                    moves[label] = move
    return moves


def dependence_under_moves(call: OperatorCall, operand: Operand, moves: dict[str, Move]) -> DependenceArray:
    """The operand's dependence under `moves`; reports a break if the operand does not move so."""
    fact = operand.fact
    wrong = tuple(
        d
        for d, (label, move) in enumerate(zip(operand.labels, fact.moves, strict=True))
        if label and not is_compatible(move, moves[label])
    )
    if not wrong:
        return fact.dependence
    target = required_moves(operand, moves)
    # FREE claims that the operand is uniform: one without that fact cannot satisfy it by its values.
    symmetric = None if any(target[d] is FREE for d in wrong) else _invariant_elements(call, operand, target)
    if symmetric is not None and symmetric.all():
        return fact.dependence
    constant = operand.is_constant(call)
    dims = _dims_to_repair(fact, wrong) if constant else wrong
    call.breaks.append(
        RelationBreak(
            node=call.node,
            operand=operand.node,
            argument=operand.argument,
            dims=dims,
            moves=tuple(target[d] if is_permuted(target[d]) else _move_of_size(fact.shape[d], target) for d in dims),
            constant=constant,
            reason=_break_reason(fact, wrong, target, constant=constant),
        )
    )
    if call.continue_after_break:
        return fact.dependence
    if symmetric is None:
        return np.full((1,) * len(fact.shape), ALWAYS, dtype=np.int64)
    return compress(np.where(symmetric, fact.dependence, ALWAYS))


def required_moves(operand: Operand, moves: dict[str, Move]) -> tuple[Move, ...]:
    """The move that `moves` requires of each dimension of an operand."""
    return tuple(
        moves[label] if label else move for label, move in zip(operand.labels, operand.fact.moves, strict=True)
    )


def _invariant_elements(call: OperatorCall, operand: Operand, target: tuple[Move, ...]) -> BoolArray | None:
    """Elements whose exact values satisfy C[target(e)] == C[e]; None if no value is known."""
    fact = operand.fact
    if fact.ranges is None:
        array = call.constants.array(operand.node) if operand.node is not None and operand.is_constant(call) else None
        if array is None or array.shape != fact.shape:  # another shape: of heads that are repeated
            return None
        ranges = ValueRanges(array, array)
    else:
        ranges = fact.ranges
    agree: BoolArray = ranges.exact
    for g in range(generator_count(target) or generator_count(fact.moves)):
        for ends in (ranges.low, ranges.high)[: 1 if ranges.low is ranges.high else 2]:
            agree = agree & same_numbers(pull_back(ends, target, fact.shape, g), ends)
    if operand.node is not None and operand.is_constant(call) and agree.any():
        call.constants.mark_used(operand.node)
    return agree


def _dims_to_repair(fact: Fact, wrong: tuple[int, ...]) -> tuple[int, ...]:
    """The dimensions of a constant to make uniform: all that are as long as one that breaks the relation.

    A causal mask repaired along one axis only would still differ along the other, and each later layer would break.
    """
    sizes = {fact.shape[d] for d in wrong}
    return tuple(d for d, size in enumerate(fact.shape) if size in sizes and fact.moves[d] is not FREE and size > 1)


def _move_of_size(size: int, target: tuple[Move, ...]) -> Move:
    for move in target:
        if move.permutations is not None and move.permutations.shape[1] == size:
            return move
    return STILL


def _break_reason(fact: Fact, wrong: tuple[int, ...], target: tuple[Move, ...], *, constant: bool) -> str:
    dims = ", ".join(str(d) for d in wrong)
    many = "dimension" if len(wrong) == 1 else "dimensions"
    if constant:
        return f"a constant that is not the same for every token along {many} {dims} of {list(fact.shape)}"
    has = " and ".join(sorted({fact.moves[d].kind for d in wrong}))
    wants = " and ".join(sorted({target[d].kind for d in wrong}))
    places = f"{many} {dims} of {list(fact.shape)} is {has}, the other operand's is {wants}"
    return f"one operand has the tokens in another order than the other: {places}"


def labelled_operand(call: OperatorCall, node: Node, labels: Sequence[str], argument: ArgumentRef) -> Operand:
    """A tensor argument with one label for each of its dimensions."""
    fact = call.fact(node)
    return Operand(fact, labels_of(fact.shape, labels), node, argument)


def elementwise_dependence(
    call: OperatorCall, operands: Sequence[Operand], rank: int
) -> tuple[tuple[Move, ...], list[DependenceArray]]:
    """The moves of an elementwise result, and the dependence of each operand under them, aligned to the result."""
    moves = common_moves(call, operands)
    order = [str(d) for d in range(rank)]
    dependences = [align_to_labels(dependence_under_moves(call, o, moves), o.labels, order) for o in operands]
    return tuple(moves.get(label, STILL) for label in order), dependences  # type: ignore[return-value]
