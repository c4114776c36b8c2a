"""A sum of products is invariant to a permutation of the summed index in all operands.

Lemma (contraction_equivariant). Let C[b,i,k] = sum_j A[b,i,j] B[b,j,k].
  1. A moved along i gives C moved along i (likewise k in B, and b in both).
  2. A and B moved along j by the same permutation give C unchanged.
  3. Only one of them moved along j: C is not determined.
  4. Where A[b,i,j] is zero in both runs, C[b,i,k] does not depend on B[b,j,k]. Of a constant the zeros are used if it
     is a mask: decay that is zero in the future.
Proof. 1: i, k, b are free in the sum. 2: substitute j -> pi(j); a finite sum over all j does not depend on
the order of its terms. 3: A = [1 2], B = [1 3]^T give 7; A = [2 1] gives 5. 4: the term is zero.
Arithmetic: over the reals; in floating point case 2 may differ by the order of the sum. Case 4 needs finite B.
Machine-checked (proofs/rules/contraction_lemma.v): contraction_equivariant, contraction_not_determined.
Not machine-checked: floating point.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

import numpy as np
from numpy.typing import NDArray
from torch.fx import Node

from orderproof.diagnosis.domain.axis_labels import Labels, align_to_labels, broadcast_labels, join, project
from orderproof.diagnosis.domain.fact import NEVER, Fact, Shape, fact_with_ranges, with_ranges, with_ranges_widened
from orderproof.diagnosis.domain.move import STILL, Move
from orderproof.diagnosis.domain.values import ValueRanges, may_be_masking_or_infinite
from orderproof.diagnosis.operands import (
    Operand,
    common_moves,
    dependence_under_moves,
    elementwise_dependence,
    labelled_operand,
    required_moves,
    with_constant_values,
)
from orderproof.diagnosis.rule import OperatorCall, RuleNotApplicable, dtype_of, rule, shape_of
from orderproof.diagnosis.value_transfer import add

LEMMA = "contraction_equivariant"
MAX_PRODUCT_ELEMENTS = 1 << 27  # elements of a product of dependence arrays; above it, exact zeros are not used


def contract(call: OperatorCall, operands: Sequence[Operand], output: Labels, shape: Shape) -> Fact:
    """The fact about the sum, over every label not in the output, of the product of the operands."""
    moves = common_moves(call, operands)
    dependences = [dependence_under_moves(call, o, moves) for o in operands]
    out_moves = tuple(moves.get(label, STILL) for label in output)
    if any(_may_be_nonfinite(call, o) for o in operands):  # 0 * inf is NaN, and the sum is not ordinary
        total = join([project(x, o.labels, output) for x, o in zip(dependences, operands, strict=True)])
        return with_ranges_widened(Fact(shape, out_moves, total))
    zeros = [_zeros(call, o, required_moves(o, moves)) for o in operands]
    names = list(dict.fromkeys([*output, *(x for o in operands for x in o.labels if x)]))
    aligned = [align_to_labels(x, o.labels, names) for x, o in zip(dependences, operands, strict=True)]
    zero_terms = [align_to_labels(z, o.labels, names) for z, o in zip(zeros, operands, strict=True) if z is not None]
    elements = math.prod(np.broadcast_shapes(*[x.shape for x in [*aligned, *zero_terms]]))
    if not zero_terms or elements > MAX_PRODUCT_ELEMENTS:
        total = join([project(x, o.labels, output) for x, o in zip(dependences, operands, strict=True)])
        return Fact(shape, out_moves, total)
    zero = reduce(np.logical_or, zero_terms)
    dependence = np.where(zero, NEVER, join(aligned))  # type: ignore[arg-type]
    summed = tuple(range(len(output), len(names)))
    dependence, all_zero = dependence.max(axis=summed), zero.all(axis=summed)
    return fact_with_ranges(shape, out_moves, dependence, ValueRanges.ordinary(len(output)).with_exact(all_zero, 0))


def _zeros(call: OperatorCall, operand: Operand, moves: tuple[Move, ...]) -> NDArray[np.bool_] | None:
    """Elements of an operand that are exactly zero in both runs: of a constant, if it is a mask to multiply with."""
    fact, node = operand.fact, operand.node
    if fact.ranges is None and node is not None and node in call.constants and _is_mask(call, node):
        call.constants.mark_used(node)
        fact = with_ranges(fact, ValueRanges.of_constant(call.constants.array(node)))
    return fact.zeros(moves)


def _is_mask(call: OperatorCall, node: Node) -> bool:
    return not call.constants.is_opaque(node) and call.constants.is_multiplicative_mask(node)


def _may_be_nonfinite(call: OperatorCall, operand: Operand) -> bool:
    return may_be_masking_or_infinite(operand.fact.ranges) or (operand.node is not None and call.may_mask(operand.node))


def add_bias(call: OperatorCall, product: Fact, bias: Operand, shape: Shape) -> Fact:
    """A bias added to a product; a bias that masks entries gives masked entries."""
    rank = len(shape)
    operands = [Operand(product, broadcast_labels(product.shape, rank), is_intermediate=True), bias]
    moves, dependences = elementwise_dependence(call, operands, rank)
    result = Fact(shape, moves, join(dependences))
    if not may_be_masking_or_infinite(product.ranges) and not _may_be_nonfinite(call, bias):
        return result
    known = None if bias.node is None else with_constant_values(call, bias.node).ranges
    if known is None or {call.node.kwargs.get("beta", 1), call.node.kwargs.get("alpha", 1)} != {1}:
        return with_ranges_widened(result)
    order = [str(d) for d in range(rank)]
    added = known.map(lambda x: align_to_labels(x, bias.labels, order))
    ranges = add(product.ranges or ValueRanges.ordinary(rank), added, dtype_of(call.node))
    return fact_with_ranges(shape, moves, result.dependence, ranges)


@rule(LEMMA, "linear")
def linear(call: OperatorCall) -> Fact:
    """y[..., o] = sum_i x[..., i] W[o, i] + b[o]."""
    x, weight = call.args[0], call.args[1]
    bias = call.argument(2, "bias")
    rank = len(call.shape)
    outer = [str(d) for d in range(rank - 1)]
    out = str(rank - 1)
    weight_labels = [out, "sum"] if len(shape_of(weight)) == 2 else ["sum"]
    if len(weight_labels) == 1:
        outer, rank = [str(d) for d in range(rank)], rank + 1
    result = contract(
        call,
        [labelled_operand(call, x, [*outer, "sum"], 0), labelled_operand(call, weight, weight_labels, 1)],
        tuple(str(d) for d in range(len(call.shape))),
        call.shape,
    )
    if bias is None:
        return result
    return add_bias(call, result, labelled_operand(call, bias, [out][: len(shape_of(bias))], 2), call.shape)


@rule(LEMMA, "matmul", "mm", "bmm", "mv", "dot")
def matmul(call: OperatorCall) -> Fact:
    """Matrix products, with broadcasting over the leading dimensions."""
    return _matrix_product(call, call.args[0], call.args[1], (0, 1))


def _matrix_product(call: OperatorCall, left: Node, right: Node, arguments: tuple[int, int]) -> Fact:
    p, q = len(shape_of(left)), len(shape_of(right))
    batch = max(p, q, 2) - 2
    leading = [f"b{d}" for d in range(batch)]
    left_labels = ["sum"] if p == 1 else [*leading[batch - (p - 2) :], "row", "sum"]
    right_labels = ["sum"] if q == 1 else [*leading[batch - (q - 2) :], "sum", "column"]
    output = (*leading, *(["row"] if p > 1 else []), *(["column"] if q > 1 else []))
    return contract(
        call,
        [
            labelled_operand(call, left, left_labels, arguments[0]),
            labelled_operand(call, right, right_labels, arguments[1]),
        ],
        output,
        call.shape,
    )


@rule(LEMMA, "addmm", "baddbmm")
def addmm(call: OperatorCall) -> Fact:
    """A matrix product plus a tensor."""
    product = _matrix_product(call, call.args[1], call.args[2], (1, 2))
    added = call.args[0]
    fact = call.fact(added)
    return add_bias(call, product, Operand(fact, broadcast_labels(fact.shape, len(call.shape)), added, 0), call.shape)


@rule(LEMMA, "einsum")
def einsum(call: OperatorCall) -> Fact:
    """A sum of products given by an equation."""
    nodes = call.args[1]
    terms, output = parse_einsum(str(call.args[0]), [len(shape_of(n)) for n in nodes])
    if any(len(set(t)) != len(t) for t in terms):
        raise RuleNotApplicable(f"einsum {call.args[0]!r}: an index repeated in one operand has no lemma")
    operands = [labelled_operand(call, n, t, (1, k)) for k, (n, t) in enumerate(zip(nodes, terms, strict=True))]
    return contract(call, operands, tuple(output), call.shape)


def parse_einsum(equation: str, ranks: Sequence[int]) -> tuple[list[list[str]], list[str]]:
    """The labels of each operand and of the result; dimensions under an ellipsis are numbered from the right."""
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    written = inputs.split(",")
    ellipsis_rank = [rank - len(t.replace("...", "")) for t, rank in zip(written, ranks, strict=True)]

    def labels(term: str, count: int) -> list[str]:
        before, dots, after = term.partition("...")
        return [*before, *(f"...{k}" for k in reversed(range(count if dots else 0))), *after]

    widest = max((h for t, h in zip(written, ellipsis_rank, strict=True) if "..." in t), default=0)
    if not arrow:  # the ellipsis, then the labels that occur once, in alphabetical order
        letters = "".join(written).replace(".", "")
        output = "..." * ("..." in inputs) + "".join(sorted(x for x in set(letters) if letters.count(x) == 1))
    if any(h < 0 or (h > 0 and "..." not in t) for t, h in zip(written, ellipsis_rank, strict=True)):
        raise RuleNotApplicable(f"einsum {equation!r} does not fit its operands")
    return [labels(t, h) for t, h in zip(written, ellipsis_rank, strict=True)], labels(output, widest)
