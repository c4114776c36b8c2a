"""A number for each row along some dimensions, computed from all elements of the row.

Lemma. Let C[i] = f(A[i, j] for all j), with f independent of the order of its arguments.
  1. C[i] agrees in both runs where all A[i, j] do. A sum also agrees where those that differ are zero in both runs.
     The largest element does not read hidden ones next to a visible one. Any and all of a few booleans have a value,
     and so has the number of the indices up to a limit, or from one on.
  2. A moved along i gives C moved along i.
  3. A moved along j leaves C as it is.

Machine-checked (proofs/symbolic/steps.v): reduction_step, sum_step, whole_count_step.
Machine-checked (proofs/symbolic/moved_axes.v): whole_row_function.
Machine-checked (proofs/rules/maximum_lemma.v): maximum_of_visible.
Not machine-checked: values by cases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from orderproof.logic.rewriting import Substitution
from orderproof.logic.terms import (
    FALSE,
    TRUE,
    AtMostZero,
    Conditional,
    Formula,
    Term,
    apply,
    as_term,
    conjunction,
    disjunction,
    maximum,
    minimum,
)
from orderproof.theorems.facts.frame import frame
from orderproof.theorems.facts.integer_values import as_boolean
from orderproof.theorems.facts.moved_fact import MovedFact
from orderproof.theorems.facts.numbers import INTEGERS
from orderproof.theorems.facts.open_fact import MAX_CASES, NotCovered, OpenFact, Value, axis_variable, dims_of, index
from orderproof.theorems.facts.reindexing import with_dims
from orderproof.theorems.operators.movement.parts import selected
from orderproof.theorems.operators.softmax.masked_rows import MaskedRows
from orderproof.theorems.walks.extreme_places import extreme_facts
from orderproof.theorems.walks.moved_operation import MovedFacts, MovedOperation
from orderproof.theorems.walks.open_operation import OpenOperation
from orderproof.theorems.walks.operation import Operation
from orderproof.theorems.walks.operator_rules import operators

_SUMS = {"sum", "mean", "linalg_vector_norm", "norm"}


REDUCE = operators(
    "sum", "mean", "prod", "amax", "amin", "all", "any", "var", "std", "logsumexp", "linalg_vector_norm", "norm",
    "var_mean", "_is_all_true", "count_nonzero", "nansum",
)  # fmt: skip


def _dims(call: Operation[Any]) -> list[int]:
    dims = call.argument(2 if call.name in ("linalg_vector_norm", "norm") else 1, "dim")
    return call.dims(None if isinstance(dims, bool) else dims)


@REDUCE.open
def reduce(call: OpenOperation) -> OpenFact | tuple[OpenFact, ...]:
    """A number for each row along some dimensions."""
    dims = _dims(call)
    keep = len(call.shapes[0]) == len(call.operand.dims)
    if call.name in ("any", "all") and (value := _of_few(call, dims, keep=keep)) is not None:
        return value
    if call.name == "sum" and (value := _up_to_a_limit(call, dims, keep=keep)) is not None:
        return value
    if call.name in ("amax", "amin") and (known := extreme_facts(call)) is not None:
        return known[0]
    if call.name in ("logsumexp", "amax") and len(dims) == 1 and may_hide(call.operand):
        return largest(call, dims[0], keep=keep)[0]
    result = reduction(call, call.operand, dims, keep=keep, zeros_vanish=call.name in _SUMS)
    if call.name in ("sum", "all", "_is_all_true") and len(dims) == len(call.operand.dims):
        result = _counted(call, result)
    return (result,) * len(call.shapes) if len(call.shapes) > 1 else result


def _of_few(call: OpenOperation, dims: Sequence[int], *, keep: bool) -> OpenFact | None:
    """If any of a few booleans is true, or all are; None without known values, or along an open dimension."""
    fact = call.operand
    if len(dims) != 1 or not isinstance(fact.value, Formula | Term) or len(fact.dims[dims[0]]) != 1:
        return None
    (dim,), (size,) = dims, fact.dims[dims[0]]
    if not size.is_constant or size.constant > MAX_CASES:
        return None
    few = [as_boolean(selected(call, fact, dim, as_term(k)).value) for k in range(size.constant)]  # type: ignore[arg-type]
    value = disjunction(*few) if call.name == "any" else conjunction(*few)
    out = fact.dims[:dim] + ((),) * keep + fact.dims[dim + 1 :]
    return OpenFact(out, call.dtype, value=value)


def _up_to_a_limit(call: OpenOperation, dims: Sequence[int], *, keep: bool) -> OpenFact | None:
    """The number of tokens that are compared with a limit, as the real ones of a row with pads on the right."""
    fact = call.operand
    axes = fact.dims[dims[0]] if len(dims) == 1 else ()
    formula = _counted_formula(fact.value)
    if len(axes) != 1 or not isinstance(formula, AtMostZero) or call.dtype not in INTEGERS:
        return None
    place = sum(map(len, fact.dims[: dims[0]]))
    (term,), own = formula.parts, axis_variable(place)
    factor = next((factor for atom, factor in term.summands if atom is own), 0)
    rest = term - index(place) * factor
    if abs(factor) != 1 or own in rest.variables:
        return None
    later = range(place + 1, len(fact.sizes))
    limit = Substitution({axis_variable(k): index(k - 1) for k in later}).term(
        -rest + 1 if factor == 1 else axes[0] - rest
    )
    value = minimum(maximum(limit, as_term(0)), axes[0])
    return OpenFact(fact.dims[: dims[0]] + ((),) * keep + fact.dims[dims[0] + 1 :], call.dtype, value=value)


def _counted_formula(value: Value | None) -> Formula | None:
    """The booleans whose sum is a number of true ones, also as 0 and 1."""
    if isinstance(value, Formula):
        return value
    if value is as_term(0) or value is as_term(1):
        return TRUE if value is as_term(1) else FALSE
    if not isinstance(value, Term) or len(value.summands) != 1 or value.constant:
        return None
    ((atom, factor),) = value.summands
    is_choice = factor == 1 and isinstance(atom, Conditional) and atom.parts[1:] == (as_term(1), as_term(0))
    return atom.parts[0] if is_choice else None


def reduction(call: OpenOperation, fact: OpenFact, dims: Sequence[int], *, keep: bool, zeros_vanish: bool) -> OpenFact:
    """The fact about numbers that are computed from all elements along some dimensions."""
    rank = len(fact.dims)
    kept = [d for d in range(rank) if d not in dims]
    common = frame([(fact, range(rank))], kept)
    placed = common.place(fact, range(rank))
    ranges = placed.ranges()
    first_bound = sum(len(common.axes[d]) for d in kept)
    sizes = placed.sizes
    same = placed.same | ranges.zero if zeros_vanish and call.name != "mean" else placed.same
    same = call.context.for_all(same, sizes, first_bound)
    loose = ranges.hidden | ranges.unbounded
    unbounded = FALSE if loose is FALSE else ~call.context.for_all(~loose, sizes, first_bound)
    zero = FALSE
    if zeros_vanish and ranges.zero is not FALSE:
        zero = call.context.for_all(ranges.zero, sizes, first_bound)
        call.context.note_sum(call.node, ranges.zero, sizes, first_bound)
    out = tuple(common.axes[d] if d in kept else () for d in range(rank) if keep or d in kept)
    return OpenFact(out, call.dtype, same, None, FALSE, zero, unbounded)


def may_hide(fact: OpenFact) -> bool:
    """True if an element may be as negative as a mask."""
    ranges = fact.ranges()
    return ranges.hidden is not FALSE or ranges.low is not FALSE


def largest(call: OpenOperation, dim: int, *, keep: bool) -> tuple[OpenFact, OpenFact]:
    """The largest element of each row, and where it is: hidden elements do not count next to a visible one."""
    rows = MaskedRows.of(call.context, call.operand, dim)
    dims = (*rows.kept[:dim], (), *rows.kept[dim:]) if keep else rows.kept
    unbounded = ~(rows.bounded & rows.visible)
    low = FALSE if unbounded is FALSE else rows.at_most_ordinary
    largest = OpenFact(dims, call.dtype, rows.agrees, unbounded=unbounded, low=low)
    return largest, OpenFact(dims, torch.int64, rows.agrees)


def _counted(call: OpenOperation, result: OpenFact) -> OpenFact:
    """A sum of booleans over a whole tensor, which the call may compare with the number of its elements."""
    fact = call.operand
    if not isinstance(fact.value, Formula | Term) or result.same is not TRUE or call.context.loops:
        return result
    counted = _counted_formula(fact.value) if call.name == "sum" else as_boolean(fact.value)
    if counted is None:
        return result
    count = call.context.count(call.node.name, counted, fact.sizes)
    return replace(result, value=apply(call.node.name) if call.name == "sum" else count.all_true)


@REDUCE.moved
def moved_reduce(call: MovedOperation) -> MovedFacts:
    """Functions of the elements along some dimensions that do not depend on their order."""
    fact = without(call, call.operand, _dims(call))
    return (fact,) * len(call.shapes) if len(call.shapes) > 1 else fact


def without(call: MovedOperation, fact: MovedFact, chosen: list[int]) -> MovedFact:
    """The fact without some dimensions, which stay with size one if the result has as many dimensions."""
    if len(call.shapes[0]) == len(fact.dims):
        return MovedFact(tuple(() if d in chosen else dim for d, dim in enumerate(fact.dims)))
    return MovedFact(tuple(dim for d, dim in enumerate(fact.dims) if d not in chosen))


def from_whole_rows(call: OpenOperation, fact: OpenFact, dims: Sequence[int]) -> OpenFact | tuple[OpenFact, ...]:
    """Results each of which is computed from all elements along some dimensions, which may get another size."""
    fact = reduction(call, fact, dims, keep=True, zeros_vanish=False)
    results = []
    for shape in call.shapes:
        if len(shape) != len(fact.dims):
            raise NotCovered("the result has another number of dimensions")
        own = [new if d in dims else axes for d, (axes, new) in enumerate(zip(fact.dims, dims_of(shape), strict=True))]
        results.append(with_dims(fact, own))
    if len(results) == 1:
        return results[0]
    values = call.node.meta["val"]
    return tuple(replace(r, dtype=v.dtype) for r, v in zip(results, values, strict=True))
