"""Functions of whole matrices: determinants, roots of covariances, matrix exponentials.

Lemma. Let C[i] = f(A[i]), with A[i] a matrix.
  1. Each number of C[i] agrees in both runs where all of A[i] does. It may be NaN or infinite: nothing says if the
     matrix is regular, or positive definite.
  2. Of the rows and columns of A[i] that move, nothing is claimed.

Machine-checked (proofs/symbolic/steps.v): reduction_step.
"""

from __future__ import annotations

from orderproof.logic.terms import TRUE
from orderproof.theorems.facts.open_fact import NotCovered, OpenFact, dims_of
from orderproof.theorems.operators.reduction.reduction import reduction
from orderproof.theorems.walks.open_operation import OpenFacts, OpenOperation
from orderproof.theorems.walks.operator_rules import operators

MATRIX_FUNCTIONS = operators("linalg_cholesky_ex", "_linalg_slogdet", "_linalg_det", "linalg_matrix_exp")


@MATRIX_FUNCTIONS.open
def matrix_function(call: OpenOperation) -> OpenFacts:
    """Numbers, vectors or matrices, each computed from a whole matrix."""
    batch = len(call.operand.dims) - 2
    if batch < 0:
        raise NotCovered("a matrix was expected")
    whole = reduction(call, call.operand, [batch, batch + 1], keep=False, zeros_vanish=False)
    values = call.node.meta["val"]
    dtypes = [v.dtype for v in (values if isinstance(values, list | tuple) else [values])]
    results = tuple(
        OpenFact((*whole.dims, *dims_of(shape[batch:])), dtype, whole.same, unbounded=TRUE)
        for shape, dtype in zip(call.shapes, dtypes, strict=True)
    )
    return results if isinstance(values, list | tuple) else results[0]
