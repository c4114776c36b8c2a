"""Elements along one dimension, at an index for each element of the result.

Lemma. Let C[i, k] = A[I[i, k], k].
  1. Where the value of I[i, k] is known as a term, C[i, k] agrees in both runs if it does, and A at the term; else if
     all elements A[j, k] do, or, if I[i, k] is the index of the largest score of a row, those that the row sees; of an
     index that a run has as a term, those at its values.
  2. Moved along k, both give C moved along k. A moved along the dimension in which the indices choose: nothing follows.

Machine-checked (proofs/symbolic/steps.v): lookup_known_step, lookup_any_step.
Machine-checked (proofs/symbolic/moved_axes.v): moved_lookup.
Machine-checked (proofs/rules/lookup_lemma.v): lookup_equivariant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from orderproof.logic.terms import Term
from orderproof.theorems.facts.frame import frame
from orderproof.theorems.facts.moved_fact import MovedFact, size, still
from orderproof.theorems.facts.open_fact import NotCovered, OpenFact, axis_variable, index
from orderproof.theorems.facts.reindexing import with_axes, with_single_axis
from orderproof.theorems.operators.lookup.indexing import BY_INDEX, chosen_from, not_chosen, of_any
from orderproof.theorems.walks.largest_scores import largest_is_there
from orderproof.theorems.walks.moved_operation import MovedOperation
from orderproof.theorems.walks.open_operation import OpenOperation
from orderproof.theorems.walks.operator_rules import operators

GATHER = operators("gather", "take_along_dim")


@GATHER.open
def gather(call: OpenOperation) -> OpenFact:
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
    node = call.argument(2, "index")
    elsewhere = ~largest_is_there(call, node, "chosen", [(fact, labels), (places, result)])
    elsewhere |= not_chosen(call, common, node, result, "chosen")
    return of_any(call, replace(placed, same=placed.same | elsewhere), out, first_bound, at.same, {})


@GATHER.moved
def moved_gather(call: MovedOperation) -> MovedFact:
    """Elements along one dimension, at an index for each element of the result."""
    dim = int(call.argument(1, "dim")) % max(call.rank, 1)
    fact, places = call.operand, call.fact(call.argument(2, "index"))
    own = fact.dims[dim] if fact.dims else ()
    still(own, BY_INDEX)
    places = chosen_from(own, places)
    return moved_slices(call, [fact.with_dim(dim, ()), places], dim)


def moved_slices(call: MovedOperation, facts: Sequence[MovedFact], along: int) -> MovedFact:
    """Slices along a dimension, at the same indices of several tensors: the other dimensions have the same sizes."""
    for fact in facts[1:]:
        for d, (one, other) in enumerate(zip(facts[0].dims, fact.dims, strict=True)):
            if d != along and not call.context.equal_sizes(size(one), size(other)):
                raise NotCovered("a part of a dimension is read")
    return call.broadcast(facts)
