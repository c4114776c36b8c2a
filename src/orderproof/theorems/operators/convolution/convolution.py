"""Convolutions: each element of the result reads a window of places, at all channels of its group.

Lemma. Let C[b, o, i] = sum_ck A[b, c, i + k] W[o, c, k].
  1. C[b, o, i] agrees in both runs where A[b, c, j] does for all channels c and all j in the window.
  2. Moved along the rows b, it moves. Moved along a channel or a place, nothing follows: tokens are reached by their
     distance.

Machine-checked (proofs/rules/scan_lemma.v): scan_dependence, convolution_reads_window.
Not machine-checked: the windows of transposed and grouped convolutions.
"""

from __future__ import annotations

from dataclasses import replace

from torch.fx import Node

from orderproof.logic.terms import FALSE, TRUE
from orderproof.theorems.facts.moved_fact import Motion, MovedFact, still, uniform
from orderproof.theorems.facts.open_fact import NotCovered, OpenFact, size_of
from orderproof.theorems.operators.convolution.windows import per_place, windowed
from orderproof.theorems.walks.moved_operation import MovedOperation
from orderproof.theorems.walks.open_operation import OpenOperation
from orderproof.theorems.walks.operation import number
from orderproof.theorems.walks.operator_rules import operators

CONVOLUTION = operators("conv1d", "conv2d", "conv3d", "convolution")


@CONVOLUTION.open
def convolution(call: OpenOperation) -> OpenFact:
    """A convolution with zeros around its input [batch, channel, place, ...]."""
    fact, weight = call.operand, call.fact(call.argument(1, "weight"))
    places = len(weight.dims) - 2
    if len(fact.dims) != len(weight.dims):
        raise NotCovered("a convolution of an input without rows")
    if weight.same is not TRUE or call.argument(6, "transposed", False) is True:
        raise NotCovered("a convolution whose weights depend on tokens, or a transposed one")
    bias = call.argument(2, "bias")
    if isinstance(bias, Node) and call.fact(bias).same is not TRUE:
        raise NotCovered("a convolution whose bias depends on tokens")
    stride, padding, dilation = (
        per_place(call.argument(k, name, default), places)
        for k, name, default in ((3, "stride", 1), (4, "padding", 0), (5, "dilation", 1))
    )
    found = windowed(call, fact, _sizes(weight, places), stride, padding, dilation, channels=True)
    parameters = [weight.ranges(), *([call.fact(bias).ranges()] if isinstance(bias, Node) else [])]
    large = any(r.hidden is not FALSE or r.unbounded is not FALSE for r in parameters)
    return replace(found, unbounded=TRUE) if large else found


def _sizes(weight: OpenFact, places: int) -> list[int]:
    sizes = [number(size_of(axes)) for axes in weight.dims[len(weight.dims) - places :]]
    if any(s is None or not s.is_constant for s in sizes):
        raise NotCovered("the window of a convolution is not known")
    return [s.constant for s in sizes if s is not None]


@CONVOLUTION.moved
def moved_convolution(call: MovedOperation) -> MovedFact:
    """Windows of the last dimensions; the rows are those of the input."""
    fact, weight = call.operand, call.fact(call.argument(1, "weight"))
    if len(fact.dims) != len(weight.dims):
        raise NotCovered("a convolution of an input without rows")
    for dim in fact.dims[1:]:
        still(dim, "tokens are reached by their distance")
    if not all(call.fact(x).is_unmoved for x in call.node.args[1:] if isinstance(x, Node)):
        raise NotCovered("a convolution with weights that depend on tokens")
    return MovedFact((fact.dims[0], *uniform(call.shape[1:], Motion.STILL).dims))
