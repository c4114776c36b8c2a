"""A tensor with a range of a dimension, or one index of it, replaced.

Lemma. An element in the range is one of the written tensor, any other is as it was.
  1. It agrees in both runs where that element does.
  2. Both tensors moved along another dimension give the result moved. Along the dimension itself nothing may move,
     unless the whole of it is replaced.

Machine-checked (proofs/symbolic/steps.v): piecewise_step.
Machine-checked (proofs/rules/scatter_lemma.v): write_dependence.
Not machine-checked: the arithmetic of positions; memory that was not written.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from orderproof.logic.terms import (
    FALSE,
    Formula,
    Term,
    as_term,
    at_most,
    conjunction,
    equal,
    floor_division,
    implication,
    less,
    negation,
    remainder,
)
from orderproof.theorems.facts.frame import converted, frame
from orderproof.theorems.facts.moved_fact import Motion, MovedFact, size, still, uniform
from orderproof.theorems.facts.open_fact import NotCovered, OpenFact, size_of
from orderproof.theorems.facts.piecewise import piecewise
from orderproof.theorems.facts.reindexing import with_single_axis
from orderproof.theorems.walks.context import Context
from orderproof.theorems.walks.moved_operation import MovedOperation
from orderproof.theorems.walks.open_operation import OpenOperation
from orderproof.theorems.walks.operation import Operation, number
from orderproof.theorems.walks.operator_rules import operators

NESTED = 40  # nodes of a formula from which on a simpler one is looked for


REPLACED = operators("slice_scatter", "select_scatter")


@REPLACED.open
def scatter_part(call: OpenOperation) -> OpenFact:
    """A tensor with a part replaced."""
    dim = call.dim(2)
    fact, source = with_single_axis(call.operand, dim), call.fact(call.argument(1, "src"))
    size = size_of(fact.dims[dim])
    if call.name == "select_scatter":
        start = number(call.argument(3, "index"))
        step: Any = 1
        extent = as_term(1)
        source = replace(source, dims=(*source.dims[:dim], (), *source.dims[dim:]))
    else:
        given = call.argument(3, "start")
        start = as_term(0) if given is None else number(given)
        step = call.argument(5, "step", 1)
        source = with_single_axis(source, dim)
        extent = size_of(source.dims[dim])
    if start is None or not isinstance(step, int) or step < 1:
        raise NotCovered("a part of a tensor is replaced at an unknown place")
    if start.is_constant and start.constant < 0:
        start = start + size
    common = frame([(fact, list(range(len(fact.dims))))], list(range(len(fact.dims))))
    at = (common.indices(dim) or [as_term(0)])[0]
    terms: list[Term] = []
    for d, axes in enumerate(source.dims):
        if d == dim:
            terms += [floor_division(at - start, step)] if axes else []
        elif axes:
            terms += converted(axes, common.axes[d], common.indices(d), used=source.uses(d))
    if not call.context.proves(conjunction(at_most(0, start), less(start + (extent - 1) * step, size)), ()):
        raise NotCovered("a part of a tensor is replaced that may leave it")
    inside = conjunction(at_most(start, at), less(at, start + extent * step), equal(remainder(at - start, step), 0))
    written = source.at(fact.dims, terms)
    found = piecewise([(inside, written), (negation(inside), fact)], fact.dtype)
    return found if found.value is not None else _without_nesting(call.context, found, fact, written, inside)


def _without_nesting(
    context: Context, found: OpenFact, before: OpenFact, written: OpenFact, inside: Formula
) -> OpenFact:
    """The fact about a tensor in which a part was replaced, as it was before if it says the same.

    A loop that writes row after row would else nest the formulas once for each row.
    """

    def simpler(formula: Formula, old: Formula, new: Formula) -> Formula:
        if formula.size <= NESTED or old is FALSE:
            return formula
        equal_inside = conjunction(implication(old, new), implication(new, old))
        return old if context.proves(equal_inside, found.sizes, inside) else formula

    return replace(
        found,
        same=simpler(found.same, before.same, written.same),
        zero=simpler(found.zero, before.ranges().zero, written.ranges().zero),
    )


_JOINED = "tokens are joined with others"


@REPLACED.moved
def moved_scatter_part(call: MovedOperation) -> MovedFact:
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
