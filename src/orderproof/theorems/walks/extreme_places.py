"""Which operators give an extreme number of each row, its index, or if all are true, and what is kept of them."""

from __future__ import annotations

import torch

from orderproof.logic.terms import Formula, Term
from orderproof.theorems.facts.extreme_places import ExtremePlace
from orderproof.theorems.facts.integer_values import as_integer, whole_number
from orderproof.theorems.facts.numbers import WHOLE
from orderproof.theorems.facts.open_fact import Cases, OpenFact, index
from orderproof.theorems.facts.whole_rows import WholeRow
from orderproof.theorems.walks.open_operation import OpenOperation

SIGNS = {"argmax": 1, "argmin": -1, "max": 1, "min": -1, "amax": 1, "amin": -1}


def note_place(call: OpenOperation) -> None:
    """Keep what is known of the index of an extreme number, or of a whole row, under the name of its node."""
    call.context.places.pop(call.node.name, None)
    found = _place(call) or _whole_row(call)
    if found is not None:
        call.context.places[call.node.name] = found


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
