"""Pooling: the mean or the largest element of a window of the last dimensions.

Lemma. Let C[b, o] = f(A[b, j] for j in window o).
  1. C[b, o] agrees in both runs where all A[b, j] in the window do.

Machine-checked (proofs/rules/scan_lemma.v): scan_dependence, convolution_reads_window.
"""

from __future__ import annotations

from dataclasses import replace

from orderproof.logic.terms import TRUE
from orderproof.theorems.facts.open_fact import OpenFact
from orderproof.theorems.operators.convolution.windows import per_place, windowed
from orderproof.theorems.walks.open_operation import OpenOperation
from orderproof.theorems.walks.operator_rules import operators

POOL = operators("avg_pool1d", "avg_pool2d", "max_pool1d", "max_pool2d", "max_pool3d", "avg_pool3d")


@POOL.open
def pool(call: OpenOperation) -> OpenFact:
    """The mean or the largest element of a window."""
    places = int(call.name[-2])
    width = per_place(call.argument(1, "kernel_size"), places)
    stride = per_place(call.argument(2, "stride", None) or width, places)
    padding = per_place(call.argument(3, "padding", 0), places)
    dilation = per_place(call.argument(4, "dilation", 1) if "max" in call.name else 1, places)
    found = windowed(call, call.operand, width, stride, padding, dilation, channels=False)
    # Torch bounds the padding by half of a window without gaps: one with gaps may read padding only, which is -inf.
    padding_only = any(p > 0 and d > 1 for p, d in zip(padding, dilation, strict=True))
    return replace(found, unbounded=TRUE) if padding_only else found
