"""Which operators give an extreme number of each row, its index, or if all are true, and what is kept of them."""

from __future__ import annotations

import torch
from torch.fx import Node

from orderproof.logic.rewriting import Substitution
from orderproof.logic.terms import TRUE, Apply, Formula, Term, apply, at_most, equal, implication, less
from orderproof.theorems.facts.extreme_places import ExtremePlace
from orderproof.theorems.facts.integer_values import as_integer, whole_number
from orderproof.theorems.facts.numbers import WHOLE
from orderproof.theorems.facts.open_fact import Axes, Cases, OpenFact, axis_variable, index
from orderproof.theorems.facts.places_of_a_run import IndexInRow, RunningExtreme
from orderproof.theorems.facts.sorted_places import SortedPlace
from orderproof.theorems.facts.whole_rows import WholeRow
from orderproof.theorems.walks.context import Context
from orderproof.theorems.walks.open_operation import OpenOperation
from orderproof.theorems.walks.overflow import OF_A_RUN
from orderproof.theorems.walks.values_of_a_run import value_of_a_run

RUNNING = {"cummax", "cummin"}
SORTS = {"sort", "argsort"}
SIGNS = {"argmax": 1, "argmin": -1, "max": 1, "min": -1, "amax": 1, "amin": -1}


def note_place(call: OpenOperation) -> None:
    """Keep what is known of the index of an extreme number, of sorted ones or of a whole row, under their node."""
    call.context.places.pop(call.node.name, None)
    call.context.places.pop(f"{call.node.name}{OF_A_RUN}", None)
    found = _sorted(call) if call.name in SORTS else _place(call) or _whole_row(call)
    if found is not None:
        call.context.places[call.node.name] = found
    elif call.name in ("argmax", "argmin") and type(dim := call.argument(1, "dim")) is int and not call.context.loops:
        name = f"{call.node.name}{OF_A_RUN}"
        call.context.places[name] = IndexInRow(name, call.operand.shape[dim % max(call.rank, 1)])


def note_running_place(call: OpenOperation, node: Node, part: int) -> None:
    """Keep what is known in one run of a part of a running maximum, which has a node of its own."""
    name = f"{node.name}{OF_A_RUN}"
    call.context.places.pop(name, None)
    if call.name not in RUNNING or call.context.loops or not call.rank:
        return
    fact = call.operand
    dim, value = call.dim(1), value_of_a_run(call, call.node.args[0])  # type: ignore[arg-type]
    if len(fact.dims[dim]) == 1 and (part == 1 or isinstance(value, Term)):
        numbers = value if part == 0 and isinstance(value, Term) else None
        call.context.places[name] = RunningExtreme(name, fact.first_axis(dim), numbers)


def _place(call: OpenOperation) -> ExtremePlace | None:
    if call.name not in SIGNS or call.context.loops or not call.rank:
        return None
    given = call.argument(1, "dim")
    given = given[0] if isinstance(given, list | tuple) and len(given) == 1 else given
    fact = call.operand
    if type(given) is not int or fact.value is None or "other" in call.node.kwargs:
        return None
    dim = given % call.rank
    value = whole_number(fact.value)
    if isinstance(value, Cases) or len(fact.dims[dim]) != 1 or fact.dtype not in (*WHOLE, torch.bool):
        return None
    axis = fact.first_axis(dim)
    others = tuple(k for k in range(len(fact.sizes)) if k != axis)
    return ExtremePlace(call.node.name, as_integer(value), axis, others, fact.sizes[axis], SIGNS[call.name])


def _sorted(call: OpenOperation) -> SortedPlace | None:
    fact = call.operand
    if call.context.loops or not call.rank or fact.same is not TRUE:
        return None
    dim, axes = call.dim(1, default=-1), fact.sizes
    if len(fact.dims[dim]) != 1:
        return None
    axis = fact.first_axis(dim)
    falls = call.argument(2, "descending", False)
    is_order = not falls and isinstance(fact.value, Term) and _is_order(call.context, fact.value, axis, axes)
    return SortedPlace(call.node.name, axis, axes, fact.value if is_order else None)  # type: ignore[arg-type]


def _is_order(context: Context, numbers: Term, axis: int, sizes: Axes) -> bool:
    """True if the numbers of each row along an axis are 0, 1, ... in some order."""
    ((atom, factor), *others) = numbers.summands or ((None, 0),)
    if isinstance(atom, Apply) and factor == 1 and not others and not numbers.constant:
        before, own = context.places.get(atom.name), tuple(index(k) for k in range(len(sizes)))
        return isinstance(before, SortedPlace) and (before.axis, before.sizes, own) == (axis, sizes, atom.parts[1])
    other = Substitution({axis_variable(axis): index(len(sizes))}).term(numbers)
    inside = at_most(0, numbers) & less(numbers, sizes[axis])
    once = implication(equal(numbers, other), equal(index(axis), index(len(sizes))))
    return context.proves(inside, sizes) and context.proves(once, (*sizes, sizes[axis]))


def sorted_facts(call: OpenOperation) -> tuple[OpenFact, OpenFact] | None:
    """The facts about the sorted elements of rows that both runs have, and about their indices; None of others."""
    place, fact = call.context.places.get(call.node.name), call.operand
    if not isinstance(place, SortedPlace):
        return None
    own = [index(k) for k in range(len(place.sizes))]
    at = apply(place.name, *own)
    elements = fact.at(fact.dims, [at if k == place.axis else one for k, one in enumerate(own)])
    return elements, OpenFact(fact.dims, torch.int64, value=at)


def _whole_row(call: OpenOperation) -> WholeRow | None:
    """If all, or any, of the known booleans of a row are true."""
    given = call.argument(1, "dim")
    if call.name not in ("all", "any") or call.context.loops or type(given) is not int or call.rank < 2:
        return None
    fact, dim = call.operand, given % call.rank
    if not isinstance(fact.value, Formula) or len(fact.dims[dim]) != 1:
        return None
    axis, sizes = fact.first_axis(dim), fact.sizes
    others = tuple(k for k in range(len(sizes)) if k != axis)
    own = tuple(place for place, k in enumerate(others) if sizes[k] is sizes[axis])
    return WholeRow(call.node.name, fact.value, axis, others, own, sizes[axis], call.name == "all")


def extreme_facts(call: OpenOperation) -> tuple[OpenFact, OpenFact] | None:
    """The facts about an extreme known number of each row, and about its index; None of other numbers."""
    place, fact = call.context.places.get(call.node.name), call.operand
    if not isinstance(place, ExtremePlace):
        return None
    ends = [sum(map(len, fact.dims[: d + 1])) for d in range(len(fact.dims))]
    dim = next(d for d, end in enumerate(ends) if place.axis < end)
    keep = len(call.shapes[0]) == len(fact.dims)
    dims = fact.dims[:dim] + ((),) * keep + fact.dims[dim + 1 :]
    own: list[Term] = [index(k) for k in range(len(place.others))]
    number = OpenFact(dims, fact.dtype, value=place.number_at(own, place.at(own)))
    return number, OpenFact(dims, torch.int64, value=place.at(own))
