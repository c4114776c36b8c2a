"""Extremes of lines with a visible entry: what is masked there counts for nothing.

Lemma (extreme_of_visible). Let C[i] = max_j A[i, j], or log sum_j exp A[i, j]. Where a line holds an ordinary entry,
an entry masked in both runs is not the largest and adds nothing, so that C[i] does not depend on it; and C[i] is
ordinary, where no other entry is large: max of [a, 1e9] is 1e9. A line wholly masked keeps all its dependences: max
of [m, m] is m; but what comes of it is as negative as a mask itself, by log n less for log sum exp of n.
Proof. max(a, m) = a, and exp(m) = 0 beside exp(a), for m below every a. Where the mask is finite, that the scores are
above it is an assumption. Everything else is reduction_invariant.
"""

from __future__ import annotations

import math

import numpy as np
import torch

from orderproof.prover.fact import (
    EXACT,
    FLOAT16_LARGE,
    LARGE,
    MASKED,
    NEVER,
    UNKNOWN,
    UNSURE,
    Fact,
    Known,
    both_ends,
    with_known,
)
from orderproof.prover.masking import BOUNDED, lines_of, mask_like
from orderproof.prover.rule import Application, Facts, dtype_of, rule
from orderproof.prover.rules.reduction import dims_of, extreme_of, reduction_of


@rule("extreme_of_visible", "amax", "logsumexp", "max.dim")
def extreme_of_visible(a: Application) -> Facts:
    """The largest of each line, or the logarithm of the sum of its exponentials."""
    fact = a.fact(a.args[0])
    plain = extreme_of if "max.dim" in a.target else reduction_of
    if fact.known is None:
        return plain(a, fact)
    dims, keep = dims_of(a, len(fact.shape))
    _, alive, gone, finite, _ = lines_of(fact.known, dtype_of(a.args[0]), dims)
    if (gone & finite).any():
        a.assume(BOUNDED)
    level, gone = np.broadcast_arrays(fact.level, both_ends(gone, fact.moves, fact.shape))
    made = plain(a, Fact(fact.shape, fact.moves, np.where(gone, NEVER, level)))
    # An entry as large as a mask is the largest, and one as low may be: neither is ordinary.
    number, value = fact.known.where(EXACT), fact.known.value.astype(np.float64)
    usual = ((fact.known.status == UNKNOWN) | (number & (np.abs(value) < FLOAT16_LARGE))).any(axis=dims, keepdims=True)
    large = (number & ~(value < FLOAT16_LARGE)).any(axis=dims, keepdims=True)
    dtype, count = dtype_of(a.args[0]), math.prod(fact.shape[d] for d in dims)
    bound = np.where(mask_like(fact.known, dtype), value, np.inf).max(axis=dims, keepdims=True)
    bound = bound + (math.log(count) if "logsumexp" in a.target else 0.0)
    limit = FLOAT16_LARGE if dtype is torch.float16 else LARGE
    status = np.where(alive & usual & ~large, UNKNOWN, np.where(bound <= -limit, MASKED, UNSURE)).astype(np.uint8)
    bound = np.where(status == MASKED, bound, 0.0)
    if dims and not keep:
        status, bound = (x.reshape([s for d, s in enumerate(x.shape) if d not in dims]) for x in (status, bound))

    def ordinary_where_visible(found: Fact) -> Fact:
        return with_known(found.shape, found.moves, found.level, Known(status, bound))

    if isinstance(made, tuple):  # an index is a place, and as ordinary as ever
        return (ordinary_where_visible(made[0]), *made[1:])
    return ordinary_where_visible(made)
