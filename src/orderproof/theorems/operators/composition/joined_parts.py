"""Operators that put tensors or numbers together: concatenation, padding, triangles, replaced parts.

Machine-checked (proofs/symbolic/steps.v): piecewise_step.
Not machine-checked: the arithmetic of positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.fx import Node

from orderproof.logic.terms import (
    FALSE,
    TRUE,
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
from orderproof.theorems.facts.open_fact import Cases, NotCovered, OpenFact, size_of
from orderproof.theorems.facts.piecewise import piecewise
from orderproof.theorems.facts.reindexing import index_along, reindexed, with_single_axis
from orderproof.theorems.walks.context import Context
from orderproof.theorems.walks.open_operation import Application, open_rule
from orderproof.theorems.walks.operation import number

NESTED = 40  # nodes of a formula from which on a simpler one is looked for


@open_rule("cat", "concat", "concatenate")
def cat(call: Application) -> OpenFact:
    """Tensors one after the other."""
    nodes = [x for x in call.argument(0, "tensors") if isinstance(x, Node)]
    facts = [call.fact(x) for x in nodes]
    dim = int(call.argument(1, "dim", 0)) % len(call.shape)
    facts = [f for f in facts if len(f.dims) == len(call.shape)]  # torch skips an empty tensor of one dimension
    return joined(call, facts, dim)


def joined(call: Application, facts: Sequence[OpenFact], dim: int) -> OpenFact:
    """The fact about tensors one after the other along a dimension."""
    if len(facts) == 1:
        return facts[0]
    facts = [with_single_axis(f, dim) for f in facts]
    labels = [[f"part {k}" if d == dim else d for d in range(len(f.dims))] for k, f in enumerate(facts)]
    total = call.shape[dim]
    result = list(range(len(facts[0].dims)))
    whole = OpenFact(tuple((total,) if d == dim else () for d in result), call.dtype)
    common = frame([(whole, result), *zip(facts, labels, strict=True)], result)
    (at,) = common.indices(dim)
    parts: list[tuple[Formula, OpenFact]] = []
    start = as_term(0)
    dims = tuple(common.axes[d] for d in result)
    for k, fact in enumerate(facts):
        size = size_of(fact.dims[dim])
        terms: list[Term] = []
        for d, axes in enumerate(fact.dims):
            if d == dim:
                terms += [at - start] if axes else []
            elif axes:
                terms += converted(axes, common.axes[d], common.indices(d), used=fact.uses(d))
        condition = TRUE if not parts else at_most(start, at)
        last = k == len(facts) - 1  # the same fact may be at several places
        condition = condition if last else condition & less(at, start + size)
        parts.append((condition, fact.at(dims, terms)))
        start = start + size
    if len({(f.same, f.value, f.hidden, f.zero, f.unbounded, f.low) for _, f in parts}) == 1:
        return parts[0][1]
    return piecewise(parts, call.dtype)


@open_rule("stack")
def stack(call: Application) -> OpenFact:
    """Tensors side by side along a new dimension."""
    dim = int(call.argument(1, "dim", 0)) % len(call.shape)
    facts = [call.fact(x) for x in call.argument(0, "tensors")]
    return joined(call, [replace(f, dims=(*f.dims[:dim], (), *f.dims[dim:])) for f in facts], dim)


@open_rule("pad", "constant_pad_nd")
def pad(call: Application) -> OpenFact:
    """A tensor with numbers around it."""
    if call.argument(2, "mode", "constant") not in ("constant", 0, None) and call.name == "pad":
        raise NotCovered("padding repeats elements")
    value = call.argument(3, "value", None) if call.name == "pad" else call.argument(2, "value", 0)
    widths = list(call.argument(1, "pad"))
    fact = call.operand
    for k in range(len(widths) // 2):
        before, after = number(widths[2 * k]), number(widths[2 * k + 1])
        if before is None or after is None:
            raise NotCovered("the width of a padding is not known")
        dim = len(fact.dims) - 1 - k
        if not (before.is_constant and after.is_constant and before.constant == 0 and after.constant == 0):
            fact = _padded(call, with_single_axis(fact, dim), dim, before, value or 0)
    return fact


def _padded(call: Application, fact: OpenFact, dim: int, before: Term, value: float) -> OpenFact:
    size, total = size_of(fact.dims[dim]), call.shape[dim]
    at = index_along(fact, dim, total)
    inner = reindexed(fact, dim, total, at - before)
    inside = conjunction(at_most(before, at), less(at, before + size))
    return piecewise([(inside, inner), (negation(inside), _of_number(inner, value))], fact.dtype)


def _of_number(fact: OpenFact, value: float) -> OpenFact:
    """The fact about a tensor of one number."""
    if fact.dtype is torch.bool:
        return OpenFact(fact.dims, fact.dtype, value=TRUE if value else ~TRUE)
    if not fact.dtype.is_floating_point and not fact.dtype.is_complex:
        return OpenFact(fact.dims, fact.dtype, value=as_term(int(value)))
    return OpenFact(fact.dims, fact.dtype, value=Cases(((TRUE, float(value)),)))


@open_rule("tril", "triu")
def triangle(call: Application) -> OpenFact:
    """A matrix with zeros on one side of a diagonal."""
    rank = len(call.operand.dims)
    fact = with_single_axis(with_single_axis(call.operand, rank - 2), rank - 1)
    row, column = fact.indices(rank - 2) or [as_term(0)], fact.indices(rank - 1) or [as_term(0)]
    offset = number(call.argument(1, "diagonal", 0))
    if offset is None:
        raise NotCovered("a diagonal is not known")
    kept = at_most(column[0], row[0] + offset) if call.name == "tril" else at_most(row[0] + offset, column[0])
    return piecewise([(kept, fact), (negation(kept), _of_number(fact, 0))], fact.dtype)


@open_rule("slice_scatter", "select_scatter")
def scatter_part(call: Application) -> OpenFact:
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
