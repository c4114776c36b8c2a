"""Linear algebra: each matrix of a batch is decomposed, inverted or solved by itself.

Lemma (dense_dependence), for matrices: see slicewise.py. The matrix A[b, :, :] and the right-hand side B[b, :, :] are
slices; rows and columns are read by position.
An inverse or a solution need not be an ordinary number: its matrix may be close to singular. A product that rests on
its finiteness is therefore not derived. The other results are finite where the matrix is.
Proof. As there. Arithmetic: any; torch decomposes the matrices of a batch one by one.
Machine-checked (proofs/rules/slicewise_lemma.v): dense_dependence.
Not machine-checked: that torch reads no other matrix of the batch.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from torch.fx import Node

from orderproof.diagnosis.domain.fact import ALWAYS, Fact, Shape, unmoved_fact, with_ranges_widened
from orderproof.diagnosis.operands import labelled_operand
from orderproof.diagnosis.rule import Facts, OperatorCall, RuleNotApplicable, rule, shape_of
from orderproof.diagnosis.rules.slicewise import LEMMA, dependence_on_slices


@rule(
    LEMMA, "linalg_qr", "_linalg_svd", "_linalg_eigh", "linalg_cholesky_ex", "linalg_inv_ex", "_linalg_det",
    "_linalg_slogdet", "linalg_matrix_exp", "linalg_lu_factor_ex",
)  # fmt: skip
def matrix_function(call: OperatorCall) -> Facts:
    """A decomposition, an inverse, a determinant or an exponential of every matrix."""
    return _of_each_matrix(call, [call.args[0]], [2])


@rule(LEMMA, "_linalg_solve_ex", "cholesky_solve")
def solution(call: OperatorCall) -> Facts:
    """The solution of a linear system for every matrix; batches broadcast."""
    nodes = [n for n in call.args if isinstance(n, Node)]
    vectors = "solve_ex" in call.target and _is_vector(shape_of(nodes[0]), shape_of(nodes[1]))
    return _of_each_matrix(call, nodes, [2, 1 if vectors else 2])


def _is_vector(matrix: Shape, right: Shape) -> bool:
    """True if torch reads the right-hand sides as vectors."""
    return len(right) == 1 or right == matrix[:-1]


def _of_each_matrix(call: OperatorCall, nodes: Sequence[Node], inner: Sequence[int]) -> Facts:
    """Results that read the last `inner` dimensions of each operand whole."""
    sizes = np.broadcast_shapes(*(shape_of(n)[: len(shape_of(n)) - own] for n, own in zip(nodes, inner, strict=True)))
    leading = tuple(f"batch {d}" for d in range(len(sizes)))
    operands, by_position = [], set()
    for k, (node, own) in enumerate(zip(nodes, inner, strict=True)):
        read = [f"in {k} {d}" for d in range(own)]
        labels = [*leading, *read][-len(shape_of(node)) :] if shape_of(node) else []
        operands.append(labelled_operand(call, node, labels, k))
        by_position.update(read)
    values = call.node.meta["val"]
    several = isinstance(values, list | tuple)
    results = []
    for value in values if several else [values]:
        shape = tuple(int(s) for s in value.shape)
        if shape[: len(sizes)] != sizes:  # the factors of a matrix that several right-hand sides share
            fact = with_ranges_widened(unmoved_fact(shape, ALWAYS))
        else:
            outer = tuple(f"out {d}" for d in range(len(shape) - len(sizes)))
            fact = dependence_on_slices(call, operands, leading + outer, shape, {*by_position, *outer})
        results.append(fact)
    return tuple(results) if several else results[0]


@rule(LEMMA, "_cdist_forward")
def distances(call: OperatorCall) -> Fact:
    """The distance of every row of one matrix to every row of another; batches broadcast."""
    rank = len(call.shape)
    leading = [str(d) for d in range(rank - 2)]
    operands = []
    for k, row in enumerate(("first", "second")):
        labels = [*leading, row, "coordinate"]
        own = len(shape_of(call.args[k]))
        operands.append(labelled_operand(call, call.args[k], labels[len(labels) - own :], k))
    return dependence_on_slices(call, operands, (*leading, "first", "second"), call.shape, ())


@rule(LEMMA, "bucketize", "searchsorted")
def bucket(call: OperatorCall) -> Fact:
    """The place of each number among sorted boundaries: of one row, or of the row with the same leading indices."""
    schema = [x.name for x in call.node.target._schema.arguments]  # type: ignore[union-attr]
    numbers, edges = call.argument(schema.index("self"), "self"), None
    for name in ("boundaries", "sorted_sequence"):
        if name in schema:
            edges = call.argument(schema.index(name), name)
    if not isinstance(edges, Node):
        raise RuleNotApplicable(f"{call.target} without boundaries has no lemma")
    rank = len(call.shape)
    labels = [str(d) for d in range(rank)]
    rows = [*labels[:-1], "edge"] if len(shape_of(edges)) > 1 else ["edge"]
    operands = [labelled_operand(call, edges, rows, "edges")]
    if isinstance(numbers, Node):
        operands.append(labelled_operand(call, numbers, labels, "self"))
    sorter = call.node.kwargs.get("sorter")
    if isinstance(sorter, Node):
        operands.append(labelled_operand(call, sorter, rows, "sorter"))
    return dependence_on_slices(call, operands, tuple(labels), call.shape, {"edge"})
