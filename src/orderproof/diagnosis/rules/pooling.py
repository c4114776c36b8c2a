"""Pooling and upsampling: each number of the result reads a window of the last dimensions.

Lemma (scan_dependence), for pooling. Let C[b, w] = h_w(A[b, j] for the j in window w), with h_w the same for every b:
a mean, a maximum and its index, or a weighted sum (upsampling).
  1. C[b, w] depends on what A[b, j] depends on, for j in the window.
  2. A moved along b gives C moved along b.
  3. A moved along a pooled dimension: C is not determined. Means of pairs of [1, 2, 3, 4] are 1.5 and 3.5, of
     [1, 3, 2, 4] they are 2 and 3.
  4. A mean over all of the pooled dimensions (adaptive pooling to one number) has no windows: a move along them does
     not change it.
Proof. 1 and 2: C[b, w] reads nothing else. The positions that a window reads are found by applying the operator to
ones: the result is not zero, because all weights have one sign. Weights of an interpolation may be zero (and zero times
infinity is NaN), or of both signs with sum zero: there every position counts as read. 4: a sum does not depend on the
order of its terms.
Arithmetic: any. A dilated window may contain padding only: its maximum is -inf, and not an ordinary number.
Machine-checked (proofs/rules/scan_lemma.v): scan_dependence.
Not machine-checked: the windows, which are found by applying the operator to ones.
"""

from __future__ import annotations

import re

import numpy as np
import torch

from orderproof.diagnosis.domain.fact import NEVER, Fact, compress
from orderproof.diagnosis.domain.move import STILL, is_permuted
from orderproof.diagnosis.rule import Facts, OperatorCall, RuleNotApplicable, rule


@rule(
    "scan_dependence", "avg_pool1d", "avg_pool2d", "max_pool1d", "max_pool2d", "max_pool2d_with_indices",
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "_adaptive_avg_pool2d",
    "upsample_nearest2d", "upsample_bilinear2d", "upsample_bicubic2d",
)  # fmt: skip
def pool(call: OperatorCall) -> Facts:
    """One number for each window; the index of a maximum has the same dependence."""
    fact = call.fact(call.args[0])
    lead = len(fact.shape) - window_rank(call.target)
    if "adaptive_avg" in call.target and set(call.shape[lead:]) == {1}:
        whole = fact.dependence.max(axis=tuple(range(lead, fact.dependence.ndim)), keepdims=True)
        return Fact(call.shape, (*fact.moves[:lead], *(STILL,) * (len(call.shape) - lead)), compress(whole))
    if any(is_permuted(m) for m in fact.moves[lead:]):
        raise RuleNotApplicable("windows of a dimension that moves: their content depends on the order")
    values = call.node.meta["val"]
    size = tuple(int(s) for s in (values if isinstance(values, torch.Tensor) else values[0]).shape)
    dependence = fact.dependence
    if "linear" in call.target or "cubic" in call.target:
        dependence = dependence.max(axis=tuple(range(lead, dependence.ndim)), keepdims=True)
    dependence = np.broadcast_to(dependence, (*dependence.shape[:lead], *fact.shape[lead:]))
    window_dependence = np.full((*dependence.shape[:lead], *size[lead:]), NEVER, dtype=np.int64)
    for v in (int(x) for x in np.unique(dependence) if x != NEVER):
        reads = call.node.target(torch.from_numpy((dependence >= v) * 1.0), *call.args[1:], **call.node.kwargs)  # type: ignore[operator]
        reads = reads if isinstance(reads, torch.Tensor) else reads[0]
        window_dependence = np.where(reads.numpy() != 0, v, window_dependence)  # the divisor of a mean may be negative
    result = Fact(size, (*fact.moves[:lead], *(STILL,) * (len(size) - lead)), compress(window_dependence))
    return result if isinstance(values, torch.Tensor) else (result, result)


def window_rank(target: str) -> int:
    """The number of dimensions of a window: 2 for avg_pool2d."""
    found = re.search(r"(\d)d", target)
    assert found is not None, target
    return int(found[1])
