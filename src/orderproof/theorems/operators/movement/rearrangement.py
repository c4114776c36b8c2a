"""Operators that reorder, merge, take apart or repeat dimensions: each element is one of the operand.

Machine-checked (proofs/rules/movement_lemma.v): fact_moved.
Not machine-checked: the arithmetic of positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from orderproof.logic.terms import (
    Term,
    as_term,
)
from orderproof.theorems.facts.frame import converted, refined
from orderproof.theorems.facts.open_fact import Axes, NotCovered, OpenFact, dims_of, index, size_of
from orderproof.theorems.facts.reindexing import From, rearranged, with_single_axis
from orderproof.theorems.operators.movement.parts import selected
from orderproof.theorems.walks.open_operation import Application, open_rule
from orderproof.theorems.walks.operation import number


@open_rule("numpy_T")
def numpy_transpose(call: Application) -> OpenFact:
    """All dimensions in reverse."""
    fact = call.operand
    return rearranged(fact, [From(fact.dims[d], d) for d in reversed(range(len(fact.dims)))])


@open_rule("transpose", "swapaxes", "swapdims", "t", "mT", "adjoint")
def transpose(call: Application) -> OpenFact:
    """Two dimensions exchanged."""
    fact = call.operand
    rank = len(fact.dims)
    first, second = call.argument(1, "dim0", -2), call.argument(2, "dim1", -1)
    order = list(range(rank))
    if rank > 1:
        a, b = int(first) % rank, int(second) % rank
        order[a], order[b] = order[b], order[a]
    return rearranged(fact, [From(fact.dims[d], d) for d in order])


@open_rule("permute")
def permute(call: Application) -> OpenFact:
    """Dimensions in another order."""
    fact = call.operand
    order = [int(d) % len(fact.dims) for d in call.argument(1, "dims")]
    return rearranged(fact, [From(fact.dims[d], d) for d in order])


@open_rule("movedim", "moveaxis")
def movedim(call: Application) -> OpenFact:
    """One dimension at another place."""
    fact = call.operand
    source, target = call.argument(1, "source"), call.argument(2, "destination")
    source, target = ([x] if isinstance(x, int) else list(x) for x in (source, target))
    rank = len(fact.dims)
    order: list[int | None] = [None] * rank
    for s, t in zip(source, target, strict=True):
        order[t % rank] = s % rank
    rest = iter(d for d in range(rank) if d not in order)
    return rearranged(fact, [From(fact.dims[d], d) for d in (next(rest) if o is None else o for o in order)])


@open_rule("unsqueeze")
def unsqueeze(call: Application) -> OpenFact:
    """A new dimension of size one."""
    fact = call.operand
    dim = int(call.argument(1, "dim")) % (len(fact.dims) + 1)
    return replace(fact, dims=(*fact.dims[:dim], (), *fact.dims[dim:]))


@open_rule("squeeze")
def squeeze(call: Application) -> OpenFact:
    """Without dimensions of size one."""
    fact, rank = call.operand, len(call.operand.dims)
    dims = call.argument(1, "dim", list(range(rank)))
    chosen = {int(d) % rank for d in ([dims] if isinstance(dims, int) else dims)} if rank else set()
    return replace(fact, dims=tuple(axes for d, axes in enumerate(fact.dims) if axes or d not in chosen))


@open_rule("expand", "broadcast_to", "expand_as")
def expand(call: Application) -> OpenFact:
    """Dimensions of size one repeated."""
    fact, new = call.operand, len(call.shape) - len(call.operand.dims)
    plan = [
        From(fact.dims[d - new], d - new) if d >= new and fact.dims[d - new] else From(dims_of([size])[0])
        for d, size in enumerate(call.shape)
    ]
    return rearranged(fact, plan)


@open_rule(
    "view", "reshape", "_unsafe_view", "flatten", "unflatten", "view_as", "reshape_as", "ravel", "_reshape_alias"
)
def view(call: Application) -> OpenFact:
    """The same elements in the same order in another shape."""
    if isinstance(call.argument(1, "size"), torch.dtype):
        raise NotCovered("the bits of a tensor are read as another dtype")
    return reshaped(call, call.operand, call.shape)


def reshaped(call: Application, fact: OpenFact, shape: Sequence[Term]) -> OpenFact:
    """The fact about a tensor with the same elements in the same order in another shape. Raises `NotCovered`."""
    targets = [axes for (axes,) in (dims_of([size]) for size in shape)]
    wanted = tuple(size for axes in targets for size in axes)
    equal_sizes = call.context.equal_sizes
    common = refined(fact.sizes, wanted, equal_sizes)
    groups: list[Axes] = []
    rest = list(common)
    for axes in targets:
        group: list[Term] = []
        while axes and not (group and equal_sizes(size_of(tuple(group)), axes[0])):
            if not rest:
                raise NotCovered("the axes of two shapes do not fit each other")
            group.append(rest.pop(0))
        groups.append(tuple(group))
    if rest:
        raise NotCovered("the axes of two shapes do not fit each other")
    new = [index(k) for k in range(len(common))]
    used = frozenset().union(*(part.variables for part in fact.parts))
    if not any(index(k).variables & used for k in range(len(fact.sizes))):
        return fact.at(groups, [as_term(0)] * len(fact.sizes))
    try:
        return fact.at(groups, converted(fact.sizes, common, new, used=True, equal=equal_sizes))
    except NotCovered:
        if fact.value is None:
            raise
    return reshaped(call, fact.without_value(), shape)


@open_rule("repeat", "tile")
def repeat(call: Application) -> OpenFact:
    """The tensor several times along each dimension."""
    fact = call.operand
    times = list(call.argument(1, "repeats", call.argument(1, "dims")))
    times = [1] * (len(call.shape) - len(times)) + times
    fact = replace(fact, dims=((),) * (len(call.shape) - len(fact.dims)) + fact.dims)
    groups, terms, place = [], [], 0
    for axes, given in zip(fact.dims, times, strict=True):
        count = number(given)
        if count is None:
            raise NotCovered("a tensor is repeated an unknown number of times")
        copies = dims_of([count])[0]
        groups.append((*copies, *axes))
        terms += [index(place + len(copies) + k) for k in range(len(axes))]
        place += len(copies) + len(axes)
    return fact.at(groups, terms)


@open_rule("repeat_interleave")
def repeat_interleave(call: Application) -> OpenFact:
    """Each element several times."""
    count = number(call.argument(1, "repeats"))
    dim = call.argument(2, "dim")
    if count is None or dim is None or not isinstance(dim, int):
        raise NotCovered("elements are repeated an unknown number of times")
    fact, dim = call.operand, dim % len(call.operand.dims)
    copies = dims_of([count])[0]
    groups = [(*axes, *copies) if d == dim else axes for d, axes in enumerate(fact.dims)]
    terms, place = [], 0
    for d, axes in enumerate(fact.dims):
        terms += [index(place + k) for k in range(len(axes))]
        place += len(groups[d])
    return fact.at(groups, terms)


@open_rule("view_as_complex", "view_as_real")
def complex_view(call: Application) -> OpenFact:
    """Pairs of real numbers as complex ones, and back."""
    fact = call.operand
    if call.name == "view_as_real":
        return OpenFact((*fact.dims, (as_term(2),)), call.dtype, fact.same, None, fact.hidden, unbounded=fact.unbounded)
    last = len(fact.dims) - 1
    fact = with_single_axis(fact, last)
    parts = [selected(call, fact, last, as_term(k)) for k in range(2)]
    ranges = [part.ranges() for part in parts]
    return OpenFact(
        parts[0].dims, call.dtype, parts[0].same & parts[1].same,
        unbounded=ranges[0].unbounded | ranges[1].unbounded | ranges[0].hidden | ranges[1].hidden,
    )  # fmt: skip
