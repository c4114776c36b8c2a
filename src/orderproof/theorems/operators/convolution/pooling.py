"""Pooling: the mean or the largest element of a window of the last dimensions.

Lemma. Let C[b, o] = f(A[b, j] for j in window o), and the place of the largest element.
  1. C[b, o] agrees in both runs where all A[b, j] in the window do.
  2. Moved along b, a row or a channel, it moves. Moved along j, nothing follows: means of pairs of [1, 2, 3, 4] are 1.5
     and 3.5, of [1, 3, 2, 4] they are 2 and 3.

Machine-checked (proofs/rules/scan_lemma.v): scan_dependence, convolution_reads_window.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from orderproof.logic.terms import TRUE
from orderproof.theorems.facts.open_fact import NotCovered
from orderproof.theorems.operators.convolution.windows import for_each_result, moved_rows, windowed, windows
from orderproof.theorems.walks.moved_operation import MovedFacts, MovedOperation
from orderproof.theorems.walks.open_operation import OpenFacts, OpenOperation
from orderproof.theorems.walks.operation import Operation
from orderproof.theorems.walks.operator_rules import operators

POOL = operators(
    "avg_pool1d", "avg_pool2d", "avg_pool3d", "max_pool1d", "max_pool2d", "max_pool3d", "max_pool1d_with_indices",
    "max_pool2d_with_indices", "max_pool3d_with_indices",
)  # fmt: skip


def window_rank(call: Operation[Any]) -> int:
    """The number of dimensions of a window, which the name of the operator says: 2 for avg_pool2d."""
    found = re.search(r"(\d)d", call.name)
    if found is None:
        raise NotCovered("the window of an operator is not known")
    return int(found[1])


@POOL.open
def pool(call: OpenOperation) -> OpenFacts:
    """The mean or the largest element of a window."""
    width, padding = call.argument(1, "kernel_size"), call.argument(3, "padding", 0)
    dilation = call.argument(4, "dilation", 1) if "max" in call.name else 1
    taken = windows(width, call.argument(2, "stride", None) or width, padding, dilation, window_rank(call))
    found = windowed(call, call.operand, taken, channels=False)
    # Torch bounds the padding by half of a window without gaps: one with gaps may read padding only, which is -inf.
    padding_only = any(window.padding > 0 and window.dilation > 1 for window in taken)
    return for_each_result(call, replace(found, unbounded=TRUE) if padding_only else found)


@POOL.moved
def moved_pool(call: MovedOperation) -> MovedFacts:
    """Windows of the last dimensions; the others are those of the operand."""
    found = moved_rows(call, call.operand, call.rank - window_rank(call))
    return (found,) * len(call.shapes) if len(call.shapes) > 1 else found
