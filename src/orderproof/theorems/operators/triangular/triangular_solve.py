"""Triangular systems: a row of the solution reads the triangle and the right-hand side up to that row.

Let A X = B with A lower triangular. Then X[i, k] agrees in both runs if A[i', j] does for all j <= i' <= i (j < i' in a
unitriangular system, whose diagonal is not read), and B[i', k] for all i' <= i. For an upper triangle the order of the
rows is reversed; X A = B is A^T X^T = B^T. A diagonal that is read may be zero, and then X is anything, unless the
matrix is the identity plus one with zeros on the diagonal. Right-hand sides that move give solutions that move with
them; nothing may move along the rows.

Machine-checked (proofs/rules/triangular_lemma.v): triangular_solve_dependence.
"""

from __future__ import annotations

from orderproof.logic.terms import FALSE, TRUE, Formula, Term, at_most, implication, less
from orderproof.theorems.facts.frame import frame
from orderproof.theorems.facts.moved_fact import MovedFact, still
from orderproof.theorems.facts.open_fact import NotCovered, OpenFact
from orderproof.theorems.facts.reindexing import with_single_axis
from orderproof.theorems.operators.triangular.unit_diagonal import has_unit_diagonal
from orderproof.theorems.walks.moved_operation import MovedOperation
from orderproof.theorems.walks.open_operation import OpenOperation
from orderproof.theorems.walks.operator_rules import operators

SOLVE_TRIANGULAR = operators("linalg_solve_triangular")


@SOLVE_TRIANGULAR.open
def solve_triangular(call: OpenOperation) -> OpenFact:
    """A X = B, or X A = B."""
    system, right = call.operand, call.fact(call.node.args[1])
    if len(system.dims) != len(right.dims):
        raise NotCovered("a triangular system is repeated for several right-hand sides")
    upper, left = bool(call.argument(2, "upper")), bool(call.argument(3, "left", True))
    batch = list(range(len(system.dims) - 2))
    for dim in (-2, -1):
        system = with_single_axis(system, dim % len(system.dims))
    solved = -2 if left else -1  # the dimension of B along which the rows are solved
    right = with_single_axis(right, solved % len(right.dims))
    result = [*batch, "i", "k"] if left else [*batch, "k", "i"]
    of_right = ["p" if label == "i" else label for label in result]
    of_system = [*batch, *(("p", "j") if left else ("j", "p"))]
    whole = OpenFact(tuple(right.dims), call.dtype)
    common = frame([(whole, result), (system, of_system), (right, of_right)], result)
    a, b = common.place(system, of_system), common.place(right, of_right)
    sizes = tuple(size for axes in common.dims for size in axes)
    i, p, j = (_index(common.indices(label)) for label in ("i", "p", "j"))
    first_to_last = upper != left
    before: Formula = at_most(p, i) if first_to_last else at_most(i, p)
    strictly = bool(call.argument(4, "unitriangular", False))
    compare = less if strictly else at_most
    read = before & (compare(j, p) if first_to_last else compare(p, j))
    first_bound = sum(len(common.axes[label]) for label in result)
    same = call.context.for_all(implication(read, a.same) & implication(before, b.same), sizes, first_bound)
    r, s = a.ranges(), b.ranges()
    loose = (read & (r.hidden | r.unbounded)) | (before & (s.hidden | s.unbounded))
    unbounded = TRUE
    if strictly or has_unit_diagonal(call, call.node.args[0]):
        unbounded = FALSE if loose is FALSE else ~call.context.for_all(~loose, sizes, first_bound)
    return OpenFact(tuple(common.axes[label] for label in result), call.dtype, same, unbounded=unbounded)


@SOLVE_TRIANGULAR.moved
def moved_system(call: MovedOperation) -> MovedFact:
    """A X = B, or X A = B: each column of the one side is the solution for that of the other."""
    system, right = call.operand, call.fact(call.node.args[1])
    rank = len(right.dims)
    if len(system.dims) != rank:
        raise NotCovered("a triangular system is repeated for several right-hand sides")
    solved = rank - 2 if call.argument(3, "left", True) else rank - 1
    what = "the rows of a triangular system"
    right = right.with_dim(solved, still(right.dims[solved], what))
    for dim in system.dims[rank - 2 :]:
        still(dim, what)
    return call.combined([(right, range(rank)), (system, [*range(rank - 2), "row", "column"])], range(rank))


def _index(indices: list[Term]) -> Term:
    (found,) = indices
    return found
