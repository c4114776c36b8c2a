"""Convolutions: each element of the result reads a window of places, at all channels of its group.

Lemma. Let C[b, o, i] = sum_ck A[b, c, i + k] W[o, c, k].
  1. C[b, o, i] agrees in both runs where A[b, c, j] does for all channels c and all j in the window. With as many
     groups as channels, only the channel o is read. A transposed one reads the places j of which
     the window has i, at every channel. Taps at which W is zero do not count, if A is finite.
  2. Moved along the rows b, it moves. Moved along a channel or a place, nothing follows: tokens are reached by their
     distance.

Machine-checked (proofs/rules/scan_lemma.v): scan_dependence, convolution_reads_window.
Machine-checked (proofs/symbolic/steps.v): product_step.
Not machine-checked: the windows of transposed and grouped convolutions.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch.fx import Node

from orderproof.logic.terms import FALSE, TRUE
from orderproof.theorems.facts.moved_fact import MovedFact
from orderproof.theorems.facts.open_fact import NotCovered, OpenFact, size_of
from orderproof.theorems.operators.convolution.windows import Window, moved_rows, windowed, windows
from orderproof.theorems.walks.moved_operation import MovedOperation
from orderproof.theorems.walks.open_operation import OpenOperation
from orderproof.theorems.walks.operation import Operation, number
from orderproof.theorems.walks.operator_rules import operators

CONVOLUTION = operators("conv1d", "conv2d", "conv3d", "convolution")
TRANSPOSED = operators("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")


def _first_place(call: Operation[Any]) -> int:
    """The first of the dimensions with windows; a row and a channel come before, or only a channel."""
    weight = call.argument(1, "weight")
    first = call.rank - call.rank_of(weight) + 2
    if first not in (1, 2):
        raise NotCovered("a convolution of an input of another rank")
    return first


@CONVOLUTION.open
@TRANSPOSED.open
def convolution(call: OpenOperation) -> OpenFact:
    """A convolution with zeros around its input [batch, channel, place, ...]."""
    first, weight = _first_place(call), call.fact(call.argument(1, "weight"))
    others = [call.fact(x) for x in call.node.args[1:] if isinstance(x, Node)]
    if any(other.same is not TRUE for other in others):
        raise NotCovered("a convolution whose weights depend on tokens")
    transposed = call.name.startswith("conv_transpose") or (call.name == "convolution" and call.node.args[6])
    taken = _windows(call, weight, transposed=bool(transposed))
    if transposed:
        found = windowed(call, call.operand, taken, channels=True, transposed=True)
    else:
        groups = number(call.argument(8 if call.name == "convolution" else 6, "groups", 1))
        channels = (size_of(call.operand.dims[first - 1]), call.shape[first - 1])
        apart = groups is not None and all(call.context.equal_sizes(groups, size) for size in channels)
        found = windowed(call, call.operand, taken, channels=not apart, weight=weight)
    ranges = [other.ranges() for other in others]
    large = any(r.hidden is not FALSE or r.unbounded is not FALSE for r in ranges)
    return replace(found, unbounded=TRUE) if large else found


def _windows(call: OpenOperation, weight: OpenFact, *, transposed: bool) -> list[Window]:
    width = [size_of(axes) for axes in weight.dims[2:]]
    dilation_at = 7 if transposed and call.name != "convolution" else 5
    stride, padding, dilation = (
        call.argument(k, name, default)
        for k, name, default in ((3, "stride", 1), (4, "padding", 0), (dilation_at, "dilation", 1))
    )
    if isinstance(padding, str):
        if not all(extent.is_constant for extent in width):
            raise NotCovered("the window of a convolution is not known")
        gaps = [
            w.dilation * (extent.constant - 1)
            for w, extent in zip(windows(width, 1, 0, dilation, len(width)), width, strict=True)
        ]
        padding = [gap // 2 if padding == "same" else 0 for gap in gaps]
    return windows(width, stride, padding, dilation, len(width))


@CONVOLUTION.moved
@TRANSPOSED.moved
def moved_convolution(call: MovedOperation) -> MovedFact:
    """Windows of the last dimensions; the rows are those of the input."""
    if not all(call.fact(x).is_unmoved for x in call.node.args[1:] if isinstance(x, Node)):
        raise NotCovered("a convolution with weights that depend on tokens")
    return moved_rows(call, call.operand, _first_place(call) - 1)
