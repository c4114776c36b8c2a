"""Other resolutions of the last dimensions: adaptive pooling, and upsampling by neighbours or by interpolation.

Lemma. Let C[b, o] = f(A[b, j] for all places j); which places f reads, o and the sizes decide.
  1. C[b, o] agrees in both runs where all A[b, j] do. Which of them it reads is not followed.
  2. Moved along b, a row or a channel, it moves. Moved along j, nothing follows, unless all of the last dimensions are
     pooled to one number, whose order does not matter; its place does.

Machine-checked (proofs/rules/scan_lemma.v): scan_dependence.
Machine-checked (proofs/symbolic/moved_axes.v): whole_row_function.
"""

from __future__ import annotations

from dataclasses import replace

from orderproof.theorems.facts.moved_fact import NOTHING, MovedFact
from orderproof.theorems.facts.open_fact import dims_of
from orderproof.theorems.facts.reindexing import with_dims
from orderproof.theorems.operators.convolution.pooling import window_rank
from orderproof.theorems.operators.convolution.windows import for_each_result, moved_rows
from orderproof.theorems.operators.reduction.reduction import reduction
from orderproof.theorems.walks.moved_operation import MovedFacts, MovedOperation
from orderproof.theorems.walks.open_operation import OpenFacts, OpenOperation
from orderproof.theorems.walks.operator_rules import operators

ADAPTIVE = operators(
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "_adaptive_avg_pool2d",
    "_adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d",
)  # fmt: skip
UPSAMPLE = operators(
    "upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", "_upsample_nearest_exact1d",
    "_upsample_nearest_exact2d", "_upsample_nearest_exact3d", "upsample_linear1d", "upsample_bilinear2d",
    "upsample_trilinear3d", "upsample_bicubic2d", "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa",
)  # fmt: skip


@ADAPTIVE.open
@UPSAMPLE.open
def resized(call: OpenOperation) -> OpenFacts:
    """Each element is computed from all places of the last dimensions."""
    first = call.rank - window_rank(call)
    whole = reduction(call, call.operand, range(first, call.rank), keep=True, zeros_vanish=False)
    return for_each_result(call, with_dims(whole, [*whole.dims[:first], *dims_of(call.shapes[0][first:])]))


@UPSAMPLE.moved
def moved_resized(call: MovedOperation) -> MovedFact:
    """The places are reached by their index; the other dimensions are those of the operand."""
    return moved_rows(call, call.operand, call.rank - window_rank(call))


@ADAPTIVE.moved
def moved_adaptive(call: MovedOperation) -> MovedFacts:
    """As other resolutions, if the result is more than one number for each row and channel."""
    fact, first = call.operand, call.rank - window_rank(call)
    sizes = call.shapes[0][first:]
    if not all(size.is_constant and size.constant == 1 for size in sizes):
        found = moved_rows(call, fact, first)
        return (found, found) if len(call.shapes) > 1 else found
    found = MovedFact((*fact.dims[:first], *[()] * len(sizes)))
    return (found, replace(found, written=NOTHING)) if len(call.shapes) > 1 else found
