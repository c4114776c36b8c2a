"""The elements of another tensor, in the shape of the first.

Lemma. Nothing of the first tensor is kept.
  1. An element agrees in both runs where that of the source does.
  2. The result moves as the source does; repeated dimensions are the same for every index.

Machine-checked (proofs/rules/scatter_lemma.v): write_dependence.
Not machine-checked: conversions to another dtype.
"""

from __future__ import annotations

from torch.fx import Node

from orderproof.theorems.facts.frame import frame
from orderproof.theorems.facts.moved_fact import Motion, MovedFact, uniform
from orderproof.theorems.facts.open_fact import OpenFact
from orderproof.theorems.walks.moved_operation import MovedOperation
from orderproof.theorems.walks.open_operation import OpenOperation
from orderproof.theorems.walks.operator_rules import operators

COPY = operators("copy", "copy_", "fill")


@COPY.open
def copy(call: OpenOperation) -> OpenFact:
    """The elements of another tensor in this shape."""
    fact, source = call.operand, call.fact(call.node.args[1])
    rank = len(fact.dims)
    own = range(rank - len(source.dims), rank)
    whole = OpenFact(fact.dims, call.dtype)
    common = frame([(whole, range(rank)), (source, own)], range(rank))
    placed = common.place(source, own)
    if source.dtype == call.dtype:
        return placed
    ranges = placed.ranges()
    if not call.dtype.is_floating_point and not call.dtype.is_complex:  # a large number wraps around
        unbounded = ranges.hidden | ranges.unbounded
        return OpenFact(fact.dims, call.dtype, placed.same, zero=ranges.zero, unbounded=unbounded)
    return OpenFact(fact.dims, call.dtype, placed.same, None, ranges.hidden, ranges.zero, ranges.unbounded)


@COPY.moved
def moved_copy(call: MovedOperation) -> MovedFact:
    """A tensor in the shape of another one, of which nothing is kept."""
    whole = uniform(call.shape, Motion.FREE)
    source = call.node.args[1]
    return call.broadcast([whole, call.fact(source)]) if isinstance(source, Node) else whole
