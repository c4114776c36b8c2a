"""Tensors one after the other, or side by side along a new dimension.

Lemma. Which operand an element comes from is a condition on its index.
  1. It agrees in both runs where the element of that operand does.
  2. Moved along another dimension, all operands give the result moved. Along the joined one, a single operand may move.

Machine-checked (proofs/symbolic/steps.v): piecewise_step.
Machine-checked (proofs/rules/movement_lemma.v): concatenation_fact.
Not machine-checked: the arithmetic of positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from torch.fx import Node

from orderproof.logic.terms import TRUE, Formula, Term, as_term, at_most, less
from orderproof.theorems.facts.frame import converted, frame
from orderproof.theorems.facts.moved_fact import Axis, Dim, Motion, MovedFact, size, uniform
from orderproof.theorems.facts.open_fact import NotCovered, OpenFact, size_of
from orderproof.theorems.facts.piecewise import piecewise
from orderproof.theorems.facts.reindexing import with_single_axis
from orderproof.theorems.walks.moved_operation import MovedOperation
from orderproof.theorems.walks.open_operation import OpenOperation
from orderproof.theorems.walks.operation import tensors
from orderproof.theorems.walks.operator_rules import operators

CAT = operators("cat", "concat", "concatenate")


@CAT.open
def cat(call: OpenOperation) -> OpenFact:
    """Tensors one after the other."""
    nodes = [x for x in call.argument(0, "tensors") if isinstance(x, Node)]
    facts = [call.fact(x) for x in nodes]
    dim = int(call.argument(1, "dim", 0)) % len(call.shape)
    facts = [f for f in facts if len(f.dims) == len(call.shape)]  # torch skips an empty tensor of one dimension
    return joined(call, facts, dim)


def joined(call: OpenOperation, facts: Sequence[OpenFact], dim: int) -> OpenFact:
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


@CAT.moved
def moved_cat(call: MovedOperation) -> MovedFact:
    """Tensors one after the other."""
    facts = [call.fact(x) for x in tensors(call.argument(0, "tensors"))]
    place = int(call.argument(1, "dim", 0)) % len(call.shape)
    return _moved_joined(call, [fact for fact in facts if len(fact.dims) == len(call.shape)], place)


STACK = operators("stack")


@STACK.open
def stack(call: OpenOperation) -> OpenFact:
    """Tensors side by side along a new dimension."""
    dim = int(call.argument(1, "dim", 0)) % len(call.shape)
    facts = [call.fact(x) for x in call.argument(0, "tensors")]
    return joined(call, [replace(f, dims=(*f.dims[:dim], (), *f.dims[dim:])) for f in facts], dim)


@STACK.moved
def moved_stack(call: MovedOperation) -> MovedFact:
    """Tensors along a new dimension."""
    place = int(call.argument(1, "dim", 0)) % len(call.shape)
    facts = [call.fact(x) for x in call.argument(0, "tensors")]
    return _moved_joined(call, [MovedFact((*f.dims[:place], (), *f.dims[place:])) for f in facts], place)


def _moved_joined(call: MovedOperation, facts: Sequence[MovedFact], place: int) -> MovedFact:
    if len(facts) == 1:
        return facts[0]
    whole = one_after_the_other([fact.dims[place] for fact in facts], call.shape[place])
    return call.broadcast([fact.with_dim(place, ()) for fact in facts]).with_dim(place, whole)


def one_after_the_other(dims: Sequence[Dim], total: Term) -> Dim:
    """A dimension of several, of which one may move. Raises `NotCovered`."""
    moving = [k for k, dim in enumerate(dims) if any(axis.motion is Motion.MOVED for axis in dim)]
    if not moving:
        return uniform([total], Motion.STILL).dims[0]
    before = as_term(0)
    for dim in dims[: moving[0]]:
        before = before + size(dim)
    if len(moving) > 1 or len(dims[moving[0]]) > 1 or not before.is_constant:
        raise NotCovered("tokens are joined with others")
    return (Axis(total, Motion.MOVED, before.constant + dims[moving[0]][0].before),)
