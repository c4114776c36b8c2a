"""The maximum of a row with a visible entry does not depend on the masked entries.

Lemma (extreme_of_visible). Let C[i] = max_j A[i, j], or log sum_j exp A[i, j]. If a row has an ordinary entry, an
entry that is masked in both runs is not the largest and adds nothing, so C[i] does not depend on it. C[i] is ordinary
if no other entry is large: max of [a, 1e9] is 1e9. A wholly masked row keeps all its dependences: max of [m, m] is m;
C[i] is then as negative as a mask itself, up to log n for log sum exp of n entries.
Proof. max(a, m) = a, and exp(m) = 0 next to exp(a), for m below every a. If the mask is finite, that the scores are
above it is an assumption. Everything else is reduction_invariant.
Machine-checked (proofs/rules/maximum_lemma.v): maximum_of_visible, log_sum_exp_of_visible, maximum_all_masked.
Not machine-checked: how negative the log sum exp of n masks is.
"""

from __future__ import annotations

import math

import numpy as np

from orderproof.diagnosis.domain.fact import NEVER, Fact, fact_with_ranges, holds_at_image_too
from orderproof.diagnosis.domain.values import ValueRanges, rounded, row_visibility
from orderproof.diagnosis.rule import Facts, OperatorCall, dtype_of, rule
from orderproof.diagnosis.rules.reduction import extremum_fact, reduced_dims, reduction_fact
from orderproof.number_limits import FINITE_SCORES_ASSUMPTION


@rule("extreme_of_visible", "amax", "logsumexp", "max.dim")
def masked_maximum(call: OperatorCall) -> Facts:
    """The largest entry of each row, or the logarithm of the sum of its exponentials."""
    fact = call.fact(call.args[0])
    unmasked_rule = extremum_fact if "max.dim" in call.target else reduction_fact
    if fact.ranges is None:
        return unmasked_rule(call, fact)
    dims, keep = reduced_dims(call, len(fact.shape))
    rows = row_visibility(fact.ranges, dtype_of(call.args[0]), dims)
    if rows.by_assumption.any():
        call.assume(FINITE_SCORES_ASSUMPTION)
    masked_in_both = holds_at_image_too(rows.masked_out, fact.moves, fact.shape)
    dependence, masked_in_both = np.broadcast_arrays(fact.dependence, masked_in_both)
    result = unmasked_rule(call, Fact(fact.shape, fact.moves, np.where(masked_in_both, NEVER, dependence)))
    # The largest entry is between the largest lower and the largest upper end.
    low, high = (end.astype(np.float64).max(axis=dims, keepdims=keep) for end in (fact.ranges.low, fact.ranges.high))
    excess = math.log(math.prod(fact.shape[d] for d in dims)) if "logsumexp" in call.target else 0.0
    ranges = rounded(low, high + excess, dtype_of(call.args[0]))
    if isinstance(result, tuple):  # the index of the maximum is an ordinary number
        return (_with(result[0], ranges), *result[1:])
    return _with(result, ranges)


def _with(fact: Fact, ranges: ValueRanges) -> Fact:
    return fact_with_ranges(fact.shape, fact.moves, fact.dependence, ranges)
