"""Pooling: a mean of each window of the last dimensions.

Lemma (scan_dependence, for windows). Let C[b, w] = h(A[b, j] for the j in window w), with h the same for every b.
  1. C[b, w] depends on what A[b, j] depends on, for j in the window.
  2. A moved along b gives C moved along b.
  3. A moved along a pooled dimension: nothing follows. Means of pairs of [1, 2, 3, 4] are 1.5 and 3.5, of
     [1, 3, 2, 4] they are 2 and 3.
Proof. 1 and 2: C[b, w] reads nothing else. Which places a window reads is seen by running the operator on ones.
Arithmetic: any.
"""

from __future__ import annotations

import numpy as np
import torch

from orderproof.prover.fact import NEVER, Fact, compress
from orderproof.prover.move import STILL, is_moved
from orderproof.prover.rule import Application, NothingFollows, rule


@rule("scan_dependence", "avg_pool1d", "avg_pool2d")
def pool(a: Application) -> Fact:
    """One number for each window."""
    fact = a.fact(a.args[0])
    count = int(a.target.split(".")[1][-2])  # of avg_pool2d: 2
    lead = len(fact.shape) - count
    if any(is_moved(m) for m in fact.moves[lead:]):
        raise NothingFollows("windows of a dimension that moves: what they hold depends on the order")
    level = np.broadcast_to(fact.level, (*fact.level.shape[:lead], *fact.shape[lead:]))
    seen = np.full((*fact.level.shape[:lead], *a.shape[lead:]), NEVER, dtype=np.int64)
    for v in (int(x) for x in np.unique(level) if x != NEVER):
        reads = a.node.target(torch.from_numpy((level >= v) * 1.0), *a.args[1:], **a.node.kwargs)  # type: ignore[operator]
        seen = np.where(reads.numpy() != 0, v, seen)  # what it divides by may be negative
    return Fact(a.shape, (*fact.moves[:lead], *(STILL,) * count), compress(seen))
