"""Operators that choose elements by integer indices: embedding, indexing, gather.

Where the index is known as a term, the element is that of the operand at the term. Where it is not, all elements that
it may choose have to agree.

Machine-checked (proofs/symbolic/steps.v): lookup_known_step, lookup_any_step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from torch.fx import Node

from orderproof.logic.terms import FALSE, TRUE, Term, at_most, conditional
from orderproof.theorems.facts.frame import Labels, frame
from orderproof.theorems.facts.open_fact import NotCovered, OpenFact, axis_variable, index, size_of
from orderproof.theorems.facts.reindexing import with_axes, with_single_axis
from orderproof.theorems.walks.open_operation import Application, open_rule


@open_rule("embedding")
def embedding(call: Application) -> OpenFact:
    """Rows of a table."""
    table, places = call.fact(call.node.args[0]), call.fact(call.node.args[1])
    return _indexed(call, table, {0: places}, 0)


@open_rule("index", "_unsafe_index")
def index_(call: Application) -> OpenFact:
    """Elements at indices given for some dimensions."""
    fact = call.operand
    given: Sequence[Any] = call.argument(1, "indices")
    chosen = {d: call.fact(x) for d, x in enumerate(given) if isinstance(x, Node)}
    dims = sorted(chosen)
    adjacent = dims == list(range(dims[0], dims[-1] + 1))
    return _indexed(call, fact, chosen, dims[0] if adjacent else 0)


@open_rule("index_select")
def index_select(call: Application) -> OpenFact:
    """Elements at the indices of a vector."""
    dim = call.dim(1)
    return _indexed(call, call.operand, {dim: call.fact(call.argument(2, "index"))}, dim)


def _indexed(call: Application, fact: OpenFact, chosen: dict[int, OpenFact], place: int) -> OpenFact:
    """The fact about `fact[indices]`, the dimensions of the indices at `place` of the result."""
    for dim in chosen:
        fact = with_single_axis(fact, dim)
    rank = max(len(f.dims) for f in chosen.values())
    new = [f"index {k}" for k in range(rank)]
    kept = [d for d in range(len(fact.dims)) if d not in chosen]
    result = [*[d for d in kept if d < place], *new, *[d for d in kept if d >= place]]
    own = {d: new[rank - len(f.dims) :] for d, f in chosen.items()}
    whole = [d if d not in chosen else f"chosen {d}" for d in range(len(fact.dims))]
    operands: list[tuple[OpenFact, Labels]] = [(fact, whole), *((f, own[d]) for d, f in chosen.items())]
    common = frame(operands, result)
    placed = common.place(fact, whole)
    first_bound = sum(len(common.axes[label]) for label in result)
    same = TRUE
    substitution, unknown = {}, []
    for d, f in chosen.items():
        at = common.place(f, own[d])
        same = same & at.same
        if not fact.dims[d]:
            continue
        (axis,) = common.indices(f"chosen {d}")
        (variable,) = axis.variables
        if isinstance(at.value, Term):
            substitution[variable] = _from_start(call, at.value, size_of(fact.dims[d]), placed.sizes)
        else:
            unknown.append(d)
    out = tuple(common.axes[label] for label in result)
    if unknown or not substitution:
        return _of_any(call, placed, out, first_bound, same, substitution)
    terms = [substitution.get(axis_variable(k), index(k)) for k in range(len(placed.sizes))]
    found = placed.at(out, terms)
    return replace(found, same=found.same & same)


def _from_start(call: Application, value: Term, size: Term, sizes: tuple[Term, ...]) -> Term:
    """An index counted from the start: negative ones count from the end."""
    if call.name == "embedding" or call.context.proves(at_most(0, value), sizes):
        return value
    return conditional(at_most(0, value), value, value + size)


def _of_any(
    call: Application,
    placed: OpenFact,
    out: tuple[tuple[Term, ...], ...],
    first_bound: int,
    same: Any,
    substitution: Any,
) -> OpenFact:
    """The fact about elements that may be any along the axes from `first_bound` on."""
    terms = [substitution.get(axis_variable(k), index(k)) for k in range(len(placed.sizes))]
    partly = placed.at(placed.dims, terms)
    ranges = partly.ranges()
    agrees = call.context.for_all(partly.same, placed.sizes, first_bound)
    loose = ranges.hidden | ranges.unbounded
    unbounded = FALSE if loose is FALSE else ~call.context.for_all(~loose, placed.sizes, first_bound)
    zero = FALSE if ranges.zero is FALSE else call.context.for_all(ranges.zero, placed.sizes, first_bound)
    return OpenFact(out, call.dtype, agrees & same, None, FALSE, zero, unbounded)


@open_rule("gather", "take_along_dim")
def gather(call: Application) -> OpenFact:
    """Elements along one dimension, at an index for each element of the result."""
    dim = int(call.argument(1, "dim")) % max(len(call.operand.dims), 1)
    places = call.fact(call.argument(2, "index"))
    fact = with_single_axis(call.operand, dim)
    labels = [d if d != dim else "chosen" for d in range(len(fact.dims))]
    for d, (axes, other) in enumerate(zip(fact.dims, places.dims, strict=True)):
        if d != dim and axes != other and fact.uses(d):
            raise NotCovered("gather reads a part of a dimension")
        if d != dim and axes != other:
            fact = with_axes(fact, d, ())
    result = list(range(len(fact.dims)))
    common = frame([(fact, labels), (places, result)], result)
    placed, at = common.place(fact, labels), common.place(places, result)
    first_bound = sum(len(common.axes[label]) for label in result)
    out = tuple(common.axes[label] for label in result)
    if not fact.dims[dim]:
        return replace(placed.at(out, [index(k) for k in range(first_bound)]), same=placed.same & at.same)
    if isinstance(at.value, Term):
        (axis,) = common.indices("chosen")
        (variable,) = axis.variables
        terms = [at.value if axis_variable(k) is variable else index(k) for k in range(len(placed.sizes))]
        found = placed.at(out, terms)
        return replace(found, same=found.same & at.same)
    return _of_any(call, placed, out, first_bound, at.same, {})
