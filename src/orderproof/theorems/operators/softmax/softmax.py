"""Softmax: entries as negative as a mask become zero, next to one that is visible.

Lemma. Let C[i, j] = exp(A[i, j]) / sum_k exp(A[i, k]).
  1. Row i agrees in both runs where each of its entries agrees or is hidden in both, if some entry of the row is
     visible: the entry of the token itself, or the first one. In a row without a visible entry nothing is claimed of
     hidden entries.
  2. Any motion passes through: the sum has the same terms in another order.

Machine-checked (proofs/symbolic/hidden_scores.v): hidden_weight_is_zero, softmax_step, row_without_visible_entry.
Machine-checked (proofs/symbolic/moved_axes.v): softmax_of_moved_scores.
Not machine-checked: that scores are small next to the mask, which is assumed.
"""

from __future__ import annotations

from orderproof.logic.terms import FALSE, TRUE, Formula
from orderproof.theorems.facts.moved_fact import MovedFact
from orderproof.theorems.facts.open_fact import OpenFact
from orderproof.theorems.facts.reindexing import From, rearranged
from orderproof.theorems.operators.softmax.masked_rows import MaskedRows
from orderproof.theorems.walks.largest_scores import largest_is_kept
from orderproof.theorems.walks.moved_operation import MovedOperation
from orderproof.theorems.walks.open_operation import OpenOperation
from orderproof.theorems.walks.operator_rules import operators

SOFTMAX = operators("softmax", "_softmax", "_safe_softmax", "log_softmax", "_log_softmax")


@SOFTMAX.open
def softmax(call: OpenOperation) -> OpenFact:
    """Softmax along a dimension."""
    dim = call.dim(1, default=-1)
    fact = softmax_fact(call, call.operand, dim, largest_is_kept(call, call.node.args[0], dim))
    if "log" in call.name:  # the logarithm of a hidden entry differs from row to row
        return OpenFact(fact.dims, call.dtype, fact.same & ~fact.zero, unbounded=TRUE)
    return fact


def softmax_fact(call: OpenOperation, scores: OpenFact, dim: int, seen: Formula = FALSE) -> OpenFact:
    """The fact about the softmax of scores along a dimension; rows where `seen` is true have a visible entry."""
    rows = MaskedRows.of(call.context, scores, dim, seen)
    zero = rows.vanishing
    fact = OpenFact(rows.placed.dims, scores.dtype, rows.agrees | zero, None, FALSE, zero, ~rows.bounded)
    order = [*(d for d in range(len(scores.dims)) if d != dim), dim]
    back = [order.index(d) for d in range(len(scores.dims))]
    return rearranged(fact, [From(fact.dims[d], d) for d in back])


@SOFTMAX.moved
def moved_softmax(call: MovedOperation) -> MovedFact:
    """Each element is divided by the sum along a dimension, whose terms are the same in another order."""
    return call.operand
