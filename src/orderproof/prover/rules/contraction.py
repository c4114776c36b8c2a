"""Sums of products: a permutation that acts on both sides of a sum disappears.

Lemma (contraction_equivariant). Let C[b,i,k] = sum_j A[b,i,j] B[b,j,k].
  1. A moved along i gives C moved along i (likewise k in B, and b in both).
  2. A and B moved along j by the same permutation give C unchanged.
  3. Only one of them moved along j: nothing follows.
  4. Where A[b,i,j] is zero in both runs, C[b,i,k] does not depend on B[b,j,k].
Proof. 1: i, k, b are free in the sum. 2: substitute j -> pi(j); a finite sum over all j does not depend on
the order of its terms. 3: A = [1 2], B = [1 3]^T give 7; A = [2 1] gives 5. 4: the term is zero.
Over the reals; in floating point case 2 may differ by the order of the sum, and case 4 needs finite B.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any

import numpy as np
from torch.fx import Node

from orderproof.prover.fact import EXACT, NEVER, Fact, Known, Levels, Shape, may_mask, unsure, with_known
from orderproof.prover.labelled import Labels, Operand, align, common_moves, highest, settle, target_moves
from orderproof.prover.move import STILL
from orderproof.prover.rule import Application, NothingFollows, rule, shape_of
from orderproof.prover.rules.pointwise import broadcast_labels

LEMMA = "contraction_equivariant"
LARGEST = 1 << 27  # elements of one product of levels; past it, known zeros are not used


def contract(a: Application, operands: Sequence[Operand], output: Labels, shape: Shape) -> Fact:
    """The fact about the sum, over every label not in the output, of the product of the operands."""
    moves = common_moves(a, operands)
    levels = [settle(a, o, moves) for o in operands]
    out_moves = tuple(moves.get(label, STILL) for label in output)
    if any(_not_finite(a, o) for o in operands):  # zero times infinity is no zero, and the sum is not ordinary
        return unsure(
            Fact(shape, out_moves, highest([_reduced(x, o.labels, output) for x, o in _both(levels, operands)]))
        )
    zeros = [o.fact.zeros(target_moves(o, moves)) for o in operands]
    names = list(dict.fromkeys([*output, *(x for o in operands for x in o.labels if x)]))
    aligned = [align(level, o.labels, names) for level, o in _both(levels, operands)]
    gone = [align(z, o.labels, names) for z, o in zip(zeros, operands, strict=True) if z is not None]
    if not gone or math.prod(np.broadcast_shapes(*[x.shape for x in [*aligned, *gone]])) > LARGEST:
        return Fact(shape, out_moves, highest([_reduced(x, o.labels, output) for x, o in _both(levels, operands)]))
    zero = reduce(np.logical_or, gone)
    level = np.where(zero, NEVER, highest(aligned))  # type: ignore[arg-type]
    summed = tuple(range(len(output), len(names)))
    level, empty = level.max(axis=summed), zero.all(axis=summed)
    known = Known(np.where(empty, EXACT, 0).astype(np.uint8), np.zeros((1,) * len(output)))
    return with_known(shape, out_moves, level, known)


def _both(levels: Sequence[Levels], operands: Sequence[Operand]) -> Iterator[tuple[Levels, Operand]]:
    return zip(levels, operands, strict=True)


def _not_finite(a: Application, operand: Operand) -> bool:
    return may_mask(operand.fact.known) or (operand.node is not None and a.may_mask(operand.node))


def _reduced(level: Levels, labels: Labels, output: Labels) -> Levels:
    summed = tuple(d for d, label in enumerate(labels) if label and label not in output)
    if summed:
        level = level.max(axis=summed)
        labels = tuple(x for d, x in enumerate(labels) if d not in summed)
    return align(level, labels, output)  # type: ignore[return-value]


def plus(a: Application, first: Fact, second: Operand, shape: Shape) -> Fact:
    """A bias added to a product."""
    rank = len(shape)
    operands = [Operand(first, broadcast_labels(first.shape, rank), derived=True), second]
    moves = common_moves(a, operands)
    order = [str(d) for d in range(rank)]
    level = highest([align(settle(a, o, moves), o.labels, order) for o in operands])  # type: ignore[misc]
    result = Fact(shape, tuple(moves.get(x, STILL) for x in order), level)
    return unsure(result) if may_mask(first.known) or _not_finite(a, second) else result


def _operand(a: Application, node: Node, labels: Sequence[str], place: Any) -> Operand:
    fact = a.fact(node)
    return Operand(fact, tuple(x if s > 1 else "" for x, s in zip(labels, fact.shape, strict=True)), node, place)


@rule(LEMMA, "linear")
def linear(a: Application) -> Fact:
    """y[..., o] = sum_i x[..., i] W[o, i] + b[o]."""
    x, weight = a.args[0], a.args[1]
    bias = a.argument(2, "bias")
    rank = len(a.shape)
    outer = [str(d) for d in range(rank - 1)]
    out = str(rank - 1)
    weight_labels = [out, "sum"] if len(shape_of(weight)) == 2 else ["sum"]
    if len(weight_labels) == 1:
        outer, rank = [str(d) for d in range(rank)], rank + 1
    result = contract(
        a,
        [_operand(a, x, [*outer, "sum"], 0), _operand(a, weight, weight_labels, 1)],
        tuple(str(d) for d in range(len(a.shape))),
        a.shape,
    )
    if bias is None:
        return result
    return plus(a, result, _operand(a, bias, [out][: len(shape_of(bias))], 2), a.shape)


@rule(LEMMA, "matmul", "mm", "bmm", "mv", "dot")
def matmul(a: Application) -> Fact:
    """Matrix products, with broadcasting over the leading dimensions."""
    return _product(a, a.args[0], a.args[1], (0, 1))


def _product(a: Application, left: Node, right: Node, places: tuple[int, int]) -> Fact:
    p, q = len(shape_of(left)), len(shape_of(right))
    batch = max(p, q, 2) - 2
    leading = [f"b{d}" for d in range(batch)]
    left_labels = ["sum"] if p == 1 else [*leading[batch - (p - 2) :], "row", "sum"]
    right_labels = ["sum"] if q == 1 else [*leading[batch - (q - 2) :], "sum", "column"]
    output = (*leading, *(["row"] if p > 1 else []), *(["column"] if q > 1 else []))
    return contract(
        a, [_operand(a, left, left_labels, places[0]), _operand(a, right, right_labels, places[1])], output, a.shape
    )


@rule(LEMMA, "addmm", "baddbmm")
def addmm(a: Application) -> Fact:
    """A product with something added to it."""
    product = _product(a, a.args[1], a.args[2], (1, 2))
    added = a.args[0]
    fact = a.fact(added)
    return plus(a, product, Operand(fact, broadcast_labels(fact.shape, len(a.shape)), added, 0), a.shape)


@rule(LEMMA, "einsum")
def einsum(a: Application) -> Fact:
    """Any sum of products written as an equation."""
    nodes = a.args[1]
    terms, output = parsed(str(a.args[0]), [len(shape_of(n)) for n in nodes])
    if any(len(set(t)) != len(t) for t in terms):
        raise NothingFollows(f"einsum {a.args[0]!r}: an index repeated in one operand has no lemma")
    operands = [_operand(a, n, t, (1, k)) for k, (n, t) in enumerate(zip(nodes, terms, strict=True))]
    return contract(a, operands, tuple(output), a.shape)


def parsed(equation: str, ranks: Sequence[int]) -> tuple[list[list[str]], list[str]]:
    """The labels of each operand and of the result: dimensions under an ellipsis are numbered from the right."""
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    written = inputs.split(",")
    hidden = [rank - len(t.replace("...", "")) for t, rank in zip(written, ranks, strict=True)]

    def labels(term: str, count: int) -> list[str]:
        before, dots, after = term.partition("...")
        return [*before, *(f"...{k}" for k in reversed(range(count if dots else 0))), *after]

    widest = max((h for t, h in zip(written, hidden, strict=True) if "..." in t), default=0)
    if not arrow:  # the ellipsis, then what is written once, in the order of the alphabet
        letters = "".join(written).replace(".", "")
        output = "..." * ("..." in inputs) + "".join(sorted(x for x in set(letters) if letters.count(x) == 1))
    if any(h < 0 or (h > 0 and "..." not in t) for t, h in zip(written, hidden, strict=True)):
        raise NothingFollows(f"einsum {equation!r} does not fit its operands")
    return [labels(t, h) for t, h in zip(written, hidden, strict=True)], labels(output, widest)
