"""Softmax is permutation-equivariant along its rows, and exact zeros cut a masked entry's dependence.

Lemma (softmax_equivariant). Let C[i, :] = h(A[i, :]) with h the softmax or the log-softmax of a row. It satisfies
h(P a) = P h(a) for every permutation P.
  1. A moved along i gives C moved along i.
  2. A moved along the row gives C moved along the row.
  3. If any entry of a row of A depends on a token, every entry of that row of C may depend on it.
  4. An entry of -inf gives exactly zero and contributes nothing to its row, if the row has an ordinary entry. A row
     that is wholly masked keeps all its dependences: the softmax of [m, m] is [1/2, 1/2] for every m. A row of -inf
     gives NaN: that a row which may be one is none, since each token sees a key, is an assumption, which no program
     gets that repairs NaN. A safe softmax gives zeros for a row of -inf: there an entry of -inf gives zero in any row.
Proof. 1: i is free. 2: sum_j exp(a_j) does not depend on the order of j. 3: every entry of C reads the whole row.
4: exp(-inf) = 0.
Arithmetic: over the reals; a floating-point sum depends on its order. An entry masked by a large finite number is zero
in floating point only if the scores are small compared with that number: an assumption, which the proof lists.
Machine-checked (proofs/rules/softmax_lemma.v): softmax_equivariant, softmax_hidden, softmax_hidden_is_zero,
softmax_all_hidden.
Not machine-checked: that a large finite mask underflows.
"""

from __future__ import annotations

import numpy as np
import torch

from orderproof.diagnosis.domain.fact import NEVER, Fact, fact_with_ranges, holds_at_image_too, with_ranges_widened
from orderproof.diagnosis.domain.values import may_be_masking_or_infinite, rounded, row_visibility
from orderproof.diagnosis.rule import OperatorCall, dtype_of, rule
from orderproof.number_limits import FINITE_SCORES_ASSUMPTION, VISIBLE_ROW_ASSUMPTION

_OF_NAN = ("nan", "isinf", "isfinite")  # in the names of operators


@rule("softmax_equivariant", "softmax", "_softmax", "_safe_softmax", "log_softmax", "_log_softmax")
def softmax(call: OperatorCall) -> Fact:
    """exp(a_j) / sum_k exp(a_k), or its logarithm."""
    fact = call.fact(call.args[0])
    dim = int(call.argument(1, "dim")) % max(len(fact.shape), 1)
    logarithm, safe = "log_softmax" in call.target, "_safe_softmax" in call.target
    return softmax_along(call, fact, dim, dtype_of(call.args[0]), logarithm=logarithm, safe=safe)


def _repairs_nan(call: OperatorCall) -> bool:
    """True if the program asks for NaN or replaces it, as where a token may see no key."""
    for node in call.node.graph.nodes:
        name = str(node.target)
        compares_with_itself = "aten.ne." in name or "aten.eq." in name
        if any(word in name for word in _OF_NAN) or (compares_with_itself and node.args[0] is node.args[1]):
            return True
    return False


def softmax_along(
    call: OperatorCall, fact: Fact, dim: int, dtype: torch.dtype, *, logarithm: bool = False, safe: bool = False
) -> Fact:
    """The fact about a softmax of `fact` along `dim`; a safe softmax gives zeros for a row of -inf."""
    ranges = fact.ranges
    if ranges is None:
        return Fact(fact.shape, fact.moves, fact.dependence.max(axis=dim, keepdims=True))
    rows = row_visibility(ranges, dtype, dim)
    is_number = (np.isfinite(ranges.low).any(axis=dim, keepdims=True) | safe) & ~rows.may_be_nonfinite
    absent = ranges.exactly(-np.inf) & ~rows.may_be_nonfinite
    in_doubt = ~is_number & ~rows.may_be_nonfinite & ~absent.all(axis=dim, keepdims=True)
    if absent.any() and in_doubt.any() and not _repairs_nan(call):
        call.assume(VISIBLE_ROW_ASSUMPTION)
        is_number = is_number | in_doubt
    masked_out = rows.masked_out | (absent & (safe | in_doubt & is_number))
    zero_in_both = holds_at_image_too(masked_out, fact.moves, fact.shape)  # at e in run 1, at move(e) in run 2
    dependence, zero_in_both = np.broadcast_arrays(fact.dependence, zero_in_both)
    row_dependence = np.where(zero_in_both, NEVER, dependence).max(axis=dim, keepdims=True)
    if logarithm and may_be_masking_or_infinite(ranges):
        # The logarithm of a masked entry is as negative as the entry, and still a function of its score.
        return with_ranges_widened(Fact(fact.shape, fact.moves, np.maximum(row_dependence, fact.dependence)))
    if rows.by_assumption.any():
        call.assume(FINITE_SCORES_ASSUMPTION)
    low = np.where(is_number, -1.0, -np.inf)
    weights = rounded(low, -low, dtype).with_exact(masked_out, 0)
    return fact_with_ranges(fact.shape, fact.moves, row_dependence, weights)
