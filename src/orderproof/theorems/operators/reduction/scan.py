"""For each index, a number computed from the elements up to it.

Lemma. Let C[i] = f(A[j] for j <= i).
  1. C[i] agrees in both runs where all A[j] with j <= i do. A sum also agrees where those that differ are zero in both
     runs. The sum less A[i] agrees where all A[j] with j < i do. Where A is a known integer within an interval of j and
     another one outside, the sum is known: both, times the number of indices up to i.
  2. Moved along another dimension, A gives C moved. Moved along i, nothing follows: the sums of [1, 2] are [1, 3], of
     [2, 1] they are [2, 3].

Machine-checked (proofs/rules/scan_lemma.v): scan_dependence, cumulative_sum_reads_prefix.
Not machine-checked: values by cases; that a sum over the tokens that begin a document is its number, by definition.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch.fx import Node

from orderproof.logic.rewriting import Substitution
from orderproof.logic.terms import FALSE, TRUE, Formula, Term, as_term, at_most, equal, less
from orderproof.theorems.facts.integer_values import as_integer
from orderproof.theorems.facts.moved_fact import Motion, MovedFact, still, uniform
from orderproof.theorems.facts.numbers import WHOLE
from orderproof.theorems.facts.open_fact import OpenFact, axis_variable, index
from orderproof.theorems.facts.reindexing import with_single_axis
from orderproof.theorems.facts.running_sums import running_sum
from orderproof.theorems.statement import BATCH, TOKENS
from orderproof.theorems.walks.moved_operation import MovedFacts, MovedOperation
from orderproof.theorems.walks.open_operation import OpenOperation
from orderproof.theorems.walks.operation import operator_of
from orderproof.theorems.walks.operator_rules import operators

SCAN = operators("cumsum", "cumprod", "logcumsumexp", "cummax", "cummin")


@SCAN.open
def scan(call: OpenOperation) -> OpenFact | tuple[OpenFact, ...]:
    """For each index, a number computed from the elements up to it."""
    dim = call.dim(1)
    fact = with_single_axis(call.operand, dim)
    if not fact.dims[dim]:
        return replace(fact, dtype=call.dtype)  # of one element, that element
    axis, result = fact.first_axis(dim), _up_to(call, fact, dim, less)
    if call.name == "cumprod":  # of ordinary numbers, as many as there are tokens
        result = replace(result, unbounded=TRUE)
    value = fact.value
    if call.name == "cumsum" and isinstance(value, Formula) and call.context.proves(~value, fact.sizes):
        result = replace(result, value=as_term(0))  # as of positions that go on from each token to the next
    elif call.name == "cumsum" and call.dtype in WHOLE and (sums := running_sum(value, axis)) is not None:
        result = replace(result, value=sums)
    if call.name == "cumsum" and (total := _known_total(call, fact, dim)) is not None:
        result = replace(result, value=total)
    return (result, replace(result, dtype=torch.int64)) if len(call.shapes) == 2 else result


def _up_to(call: OpenOperation, fact: OpenFact, dim: int, is_after: Callable[[Term, Term], Formula]) -> OpenFact:
    """The fact about numbers each of which is computed from the elements that do not come after its index."""
    same = fact.same | (fact.ranges().zero if call.name in ("cumsum", "sub") else FALSE)
    axis, bound = fact.first_axis(dim), len(fact.sizes)
    body = Substitution({axis_variable(axis): index(bound)}).formula(same) | is_after(index(axis), index(bound))
    agrees = call.context.for_all(body, (*fact.sizes, *fact.dims[dim]), bound)
    ranges = fact.ranges()
    loose = ranges.hidden | ranges.unbounded
    return OpenFact(fact.dims, call.dtype, agrees, unbounded=FALSE if loose is FALSE else TRUE)


def sum_before(call: OpenOperation) -> OpenFact | None:
    """The fact about `x.cumsum(d) - x`, the sum of the elements before each; None for another difference."""
    if call.name != "sub" or call.node.kwargs or not call.dtype.is_floating_point:
        return None
    total, own = call.node.args
    if not isinstance(total, Node) or operator_of(total) != "cumsum" or len(total.args) != 2 or total.kwargs:
        return None
    if total.args[0] is not own:
        return None
    fact, dim = call.fact(own), int(total.args[1]) % call.rank  # type: ignore[arg-type]
    fact = with_single_axis(fact, dim)
    return _up_to(call, fact, dim, at_most) if fact.dims[dim] and call.fact(total).dims == fact.dims else None


def _known_total(call: OpenOperation, fact: OpenFact, dim: int) -> Term | None:
    """The sum up to each index as a function of the statement, if it counts what is summed."""
    if not isinstance(fact.value, Formula | Term) or fact.dims[dim] != (TOKENS,) or fact.sizes.count(BATCH) != 1:
        return None
    row, token = index(fact.sizes.index(BATCH)), index(fact.first_axis(dim))
    for known in call.context.prefix_sums:
        counted = as_integer(known.counted(row, token))
        if call.context.proves(equal(as_integer(fact.value), counted), fact.sizes):
            return known.total(row, token)
    return None


@SCAN.moved
def moved_scan(call: MovedOperation) -> MovedFacts:
    """Sums, products and extrema of all elements up to each index."""
    return by_index(call, call.dim(1))


def by_index(call: MovedOperation, place: int, *facts: MovedFact) -> MovedFacts:
    """A function of the elements along a dimension and their indices, for each slice on its own.

    The facts are those about the results before the dimension gets its size; by default that about the operand.
    """
    facts = facts or (call.operand,) * len(call.shapes)
    results = []
    for shape, fact in zip(call.shapes, facts, strict=False):
        if fact.dims:
            still(fact.dims[place], "tokens are counted, or sorted, by their index")
        own = uniform([shape[place]], Motion.STILL).dims if len(shape) == len(fact.dims) and shape else ()
        results.append(replace(fact.with_dim(place, *own), written=fact.written) if fact.dims else fact)
    return tuple(results) if len(results) > 1 else results[0]
