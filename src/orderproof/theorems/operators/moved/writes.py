"""Operators that write to a part of a tensor, and memory that was not written.

Machine-checked (proofs/rules/scatter_lemma.v): write_dependence.
Not machine-checked: memory that was not written.
"""

from __future__ import annotations

from dataclasses import replace

from torch.fx import Node

from orderproof.theorems.facts.moved_fact import NOTHING, Motion, MovedFact, size, still, uniform
from orderproof.theorems.facts.open_fact import NotCovered
from orderproof.theorems.walks.moved_operation import MovedOperation, moved_rule
from orderproof.theorems.walks.operation import Operation

_JOINED = "tokens are joined with others"


@moved_rule("empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted")
def empty(call: MovedOperation) -> MovedFact:
    """Memory that was not written."""
    return replace(uniform(call.shape, Motion.FREE), written=NOTHING)


@moved_rule("copy", "copy_", "fill")
def copy(call: MovedOperation) -> MovedFact:
    """A tensor in the shape of another one, of which nothing is kept."""
    whole = uniform(call.shape, Motion.FREE)
    source = call.node.args[1]
    return call.broadcast([whole, call.fact(source)]) if isinstance(source, Node) else whole


@moved_rule("slice_scatter", "select_scatter")
def write_part(call: MovedOperation) -> MovedFact:
    """A tensor with a range of a dimension, or one index of it, replaced."""
    target = Operation.fact(call, call.node.args[0])  # a part of it may not have been written
    source, place = call.fact(call.argument(1, "src")), call.dim(2)
    (whole,) = uniform([call.shape[place]], Motion.STILL).dims
    if call.name == "select_scatter":
        source, first, step = MovedFact((*source.dims[:place], (), *source.dims[place:])), call.argument(3, "index"), 1
    else:
        first, step = call.argument(3, "start") or 0, call.argument(5, "step", 1)
    if step == 1 and call.context.equal_sizes(size(source.dims[place]), size(target.dims[place])):
        return call.broadcast([uniform(call.shape, Motion.FREE), source])
    still(target.dims[place], _JOINED)
    still(source.dims[place], _JOINED)
    both = [target.with_dim(place, ()), source.with_dim(place, ())]
    found = call.broadcast(both).with_dim(place, whole)
    if target.written is None:
        return found
    extent, total = size(source.dims[place]), size(whole)
    if not isinstance(first, int) or step != 1 or not extent.is_constant or not total.is_constant:
        raise NotCovered("a range of memory is written whose size is not known")
    start = first % total.constant
    dim, ranges = target.written
    if ranges and dim != place - call.rank:
        raise NotCovered("memory is written along several dimensions")
    ranges = tuple(sorted([*ranges, (start, start + extent.constant)]))
    covered = 0
    for begin, end in ranges:
        covered = max(covered, end) if begin <= covered else covered
    return found if covered >= total.constant else replace(found, written=(place - call.rank, ranges))
