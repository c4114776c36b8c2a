"""Pooling and its inverse: each number is made of a window of the last dimensions.

Lemma (scan_dependence, for windows). Let C[b, w] = h_w(A[b, j] for the j in window w), with h_w the same for every b:
a mean, a maximum and its place, or a weighted sum (a map made larger).
  1. C[b, w] depends on what A[b, j] depends on, for j in the window.
  2. A moved along b gives C moved along b.
  3. A moved along a pooled dimension: nothing follows. Means of pairs of [1, 2, 3, 4] are 1.5 and 3.5, of
     [1, 3, 2, 4] they are 2 and 3.
Proof. 1 and 2: C[b, w] reads nothing else. Which places a window reads is seen by running the operator on ones: what
it gives there is no zero, as weights are all of one sign. In a map made larger by interpolation weights may be zero
(and zero times infinity is no number), or of both signs and add up to zero: there every place is taken to be read.
Arithmetic: any. A dilated window may hold border alone: its largest is minus infinity, and no ordinary number.
"""

from __future__ import annotations

import re

import numpy as np
import torch

from orderproof.prover.fact import NEVER, Fact, compress
from orderproof.prover.move import STILL, is_moved
from orderproof.prover.rule import Application, Facts, NothingFollows, rule


@rule(
    "scan_dependence", "avg_pool1d", "avg_pool2d", "max_pool1d", "max_pool2d", "max_pool2d_with_indices",
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "_adaptive_avg_pool2d",
    "upsample_nearest2d", "upsample_bilinear2d", "upsample_bicubic2d",
)  # fmt: skip
def pool(a: Application) -> Facts:
    """One number for each window; the place of a largest one depends on the same."""
    fact = a.fact(a.args[0])
    lead = len(fact.shape) - windowed(a.target)
    if any(is_moved(m) for m in fact.moves[lead:]):
        raise NothingFollows("windows of a dimension that moves: what they hold depends on the order")
    values = a.node.meta["val"]
    size = tuple(int(s) for s in (values if isinstance(values, torch.Tensor) else values[0]).shape)
    given = fact.level
    if "linear" in a.target or "cubic" in a.target:
        given = given.max(axis=tuple(range(lead, given.ndim)), keepdims=True)
    level = np.broadcast_to(given, (*given.shape[:lead], *fact.shape[lead:]))
    seen = np.full((*level.shape[:lead], *size[lead:]), NEVER, dtype=np.int64)
    for v in (int(x) for x in np.unique(level) if x != NEVER):
        reads = a.node.target(torch.from_numpy((level >= v) * 1.0), *a.args[1:], **a.node.kwargs)  # type: ignore[operator]
        reads = reads if isinstance(reads, torch.Tensor) else reads[0]
        seen = np.where(reads.numpy() != 0, v, seen)  # what it divides by may be negative
    made = Fact(size, (*fact.moves[:lead], *(STILL,) * (len(size) - lead)), compress(seen))
    return made if isinstance(values, torch.Tensor) else (made, made)


def windowed(target: str) -> int:
    """How many dimensions the windows have: 2 of avg_pool2d."""
    found = re.search(r"(\d)d", target)
    assert found is not None, target
    return int(found[1])
