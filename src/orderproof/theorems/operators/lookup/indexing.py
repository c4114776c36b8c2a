"""Operators that choose elements by integer indices: embedding, indexing.

Lemma. Let C[i] = A[I[i]], with I the indices.
  1. Where the value of I[i] is known as a term, C[i] agrees in both runs if I[i] does, and A at the term.
  2. Where it is not known, C[i] agrees if I[i] does, and all elements of A that it may choose. If a run has I[i] as a
     term over functions of that run, these are the elements at its values, whatever the functions are.
  3. Moved with its indices, C moves, if A does not move along the dimension in which they choose. If A moves along
     it, nothing follows: the index of a token is the place of another one.

Machine-checked (proofs/symbolic/steps.v): lookup_known_step, lookup_any_step.
Machine-checked (proofs/symbolic/moved_axes.v): moved_lookup.
Machine-checked (proofs/rules/lookup_lemma.v): lookup_equivariant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.fx import Node

from orderproof.logic.terms import (
    FALSE,
    TRUE,
    Formula,
    Term,
    Variable,
    at_most,
    conditional,
    equal,
    negation,
)
from orderproof.theorems.facts.frame import Frame, Labels, frame
from orderproof.theorems.facts.moved_fact import Dim, Motion, MovedFact, still
from orderproof.theorems.facts.open_fact import Axes, NotCovered, OpenFact, axis_variable, index, size_of
from orderproof.theorems.facts.reindexing import with_single_axis
from orderproof.theorems.walks.moved_operation import MovedOperation
from orderproof.theorems.walks.open_operation import OpenOperation
from orderproof.theorems.walks.operation import Operation
from orderproof.theorems.walks.operator_rules import operators
from orderproof.theorems.walks.values_of_a_run import certain, value_of_a_run

LOOKUP = operators("embedding", "index", "_unsafe_index", "index_select")
FROM_START = {"embedding", "gather", "take_along_dim"}  # which take no negative index
BY_INDEX = "a token is chosen by its index"


@dataclass(frozen=True)
class Choice:
    """`tensor[indices]`, with a label for each dimension.

    Attributes:
        chosen: The indices, by the dimension along which they choose, with the labels of their own dimensions.
        whole: The labels of the tensor.
        result: The labels of the result.

    """

    chosen: dict[int, tuple[Node, Labels]]
    whole: Labels
    result: Labels


def choice(call: Operation[Any]) -> Choice:
    """The labels of an operator that chooses elements by indices."""
    if call.name == "embedding":
        chosen = {0: call.node.args[1]}
    elif call.name == "index_select":
        chosen = {call.dim(1): call.argument(2, "index")}
    else:
        chosen = {d: x for d, x in enumerate(call.argument(1, "indices")) if isinstance(x, Node)}
    nodes = {d: x for d, x in chosen.items() if isinstance(x, Node)}
    if any(x.meta["val"].dtype is torch.bool for x in nodes.values()):
        raise NotCovered("elements are chosen by a mask")
    rank = max(map(call.rank_of, nodes.values()))
    new, dims = [f"index {k}" for k in range(rank)], sorted(nodes)
    place = dims[0] if dims == list(range(dims[0], dims[-1] + 1)) else 0
    kept = [d for d in range(call.rank) if d not in nodes]
    return Choice(
        {d: (x, new[rank - call.rank_of(x) :]) for d, x in nodes.items()},
        [f"chosen {d}" if d in nodes else d for d in range(call.rank)],
        [*[d for d in kept if d < place], *new, *[d for d in kept if d >= place]],
    )


@LOOKUP.open
def lookup(call: OpenOperation) -> OpenFact:
    """Elements at indices given for some dimensions."""
    found, fact = choice(call), call.operand
    for dim in found.chosen:
        fact = with_single_axis(fact, dim)
    chosen = {d: (call.fact(node), labels) for d, (node, labels) in found.chosen.items()}
    common = frame([(fact, found.whole), *chosen.values()], found.result)
    placed = common.place(fact, found.whole)
    first_bound = sum(len(common.axes[label]) for label in found.result)
    same = TRUE
    substitution: dict[Variable, Term] = {}
    unknown, elsewhere = False, FALSE
    for d, (indices, labels) in chosen.items():
        at = common.place(indices, labels)
        same = same & at.same
        if not fact.dims[d]:
            continue
        (axis,) = common.indices(f"chosen {d}")
        (variable,) = axis.variables
        if isinstance(at.value, Term):
            substitution[variable] = from_start(call, at.value, size_of(fact.dims[d]), placed.sizes)
        else:
            unknown = True
            elsewhere |= not_chosen(call, common, found.chosen[d][0], labels, f"chosen {d}")
    out = tuple(common.axes[label] for label in found.result)
    if unknown or not substitution:
        placed = replace(placed, same=placed.same | elsewhere) if elsewhere is not FALSE else placed
        return of_any(call, placed, out, first_bound, same, substitution)
    terms = [substitution.get(axis_variable(k), index(k)) for k in range(len(placed.sizes))]
    element = placed.at(out, terms)
    return replace(element, same=element.same & same)


@LOOKUP.moved
def moved_lookup(call: MovedOperation) -> MovedFact:
    """Elements at indices given for some dimensions, along which the tensor may not move."""
    found, fact = choice(call), call.operand
    for dim in found.chosen:
        still(fact.dims[dim], BY_INDEX)
    chosen = [(chosen_from(fact.dims[d], call.fact(node)), labels) for d, (node, labels) in found.chosen.items()]
    return call.combined([(fact, found.whole), *chosen], found.result)


def from_start(call: OpenOperation, value: Term, size: Term, sizes: tuple[Term, ...]) -> Term:
    """An index counted from the start: negative ones count from the end."""
    if call.name in FROM_START or call.context.proves(at_most(0, value), sizes):
        return value
    return conditional(at_most(0, value), value, value + size)


def not_chosen(call: OpenOperation, common: Frame, node: Node, labels: Labels, along: str) -> Formula:
    """Where an element is not the one at an index of either run, of which something is known."""
    fact, value = call.fact(node), value_of_a_run(call, node)
    if call.context.loops or not isinstance(value, Term) or value.functions.isdisjoint(call.context.places):
        return FALSE
    at = common.place(OpenFact(fact.dims, fact.dtype, value=value), labels)
    (place,) = common.indices(along)
    if not isinstance(at.value, Term):
        return FALSE
    return negation(equal(from_start(call, at.value, common.axes[along][0], at.sizes), place))


def of_any(
    call: OpenOperation, placed: OpenFact, out: Sequence[Axes], first_bound: int, same: Formula,
    substitution: Mapping[Variable, Term],
) -> OpenFact:  # fmt: skip
    """The fact about elements that may be any along the axes from `first_bound` on."""
    terms = [substitution.get(axis_variable(k), index(k)) for k in range(len(placed.sizes))]
    partly = placed.at(placed.dims, terms)
    ranges = partly.ranges()
    agrees = certain(call.context.for_all(partly.same, placed.sizes, first_bound))
    loose = ranges.hidden | ranges.unbounded
    unbounded = FALSE if loose is FALSE else ~call.context.for_all(~loose, placed.sizes, first_bound)
    zero = FALSE if ranges.zero is FALSE else call.context.for_all(ranges.zero, placed.sizes, first_bound)
    return OpenFact(tuple(out), call.dtype, agrees & same, None, FALSE, zero, unbounded)


def chosen_from(dim: Dim, places: MovedFact) -> MovedFact:
    """The fact about indices into a dimension: where all its elements are the same, the indices do not matter."""
    if any(axis.motion is not Motion.FREE for axis in dim):
        return places
    return MovedFact(tuple(tuple(replace(axis, motion=Motion.FREE, before=0) for axis in own) for own in places.dims))
