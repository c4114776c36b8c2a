"""The greatest and the least number of each row of known integers, and where it is."""

from __future__ import annotations

from orderproof_recheck.extreme_places import ExtremePlace
from orderproof_recheck.facts import WHOLE, Cases, Fact, axis, index, whole_number
from orderproof_recheck.logic.formulas import Formula, holds, if_else
from orderproof_recheck.logic.notation import require
from orderproof_recheck.logic.terms import apply, integer
from orderproof_recheck.rules.movement import ONE
from orderproof_recheck.steps import Derived, Step
from orderproof_recheck.whole_rows import WholeRow

SIGNS = {"argmax": 1, "argmin": -1, "max": 1, "min": -1, "amax": 1, "amin": -1}


def note_place(step: Step) -> None:
    """Keep with the setting the index that a step finds, if the numbers are known."""
    setting = step.setting
    setting.places.pop(step.node, None)
    if step.name in SIGNS and setting.loops.active is None and step.node not in setting.functions:
        found = _place(step)
        if found is not None:
            setting.places[step.node] = found
            setting.functions.add(step.node)


def note_whole_row(step: Step) -> None:
    """Keep with the setting if all, or any, of the booleans of a row are true, where the claim names a new function."""
    fact, name = step.args[0] if step.args else None, step.node
    if step.name not in ("all", "any") or not isinstance(fact, Fact) or not isinstance(fact.value, Formula):
        return
    dim = _dim(step, len(fact.axes))
    if dim is None or len(fact.axes[dim]) != 1 or step.setting.loops.active is not None:
        return
    own = sum(len(axes) for axes in fact.axes[:dim])
    others = [k for k in range(len(fact.sizes)) if k != own]
    rows = tuple(fact.sizes[k] for k in others)
    if step.claim.sizes == rows and step.claim.value is holds(name, *(index(k) for k in range(len(rows)))):
        size = fact.sizes[own]
        as_long = tuple(place for place, one in enumerate(rows) if one is size)
        row = WholeRow(name, fact.value, axis(own), tuple(map(axis, others)), as_long, size, step.name == "all")
        step.setting.places[name] = row


def _dim(step: Step, rank: int) -> int | None:
    given = step.argument(1, "dim")
    given = given[0] if isinstance(given, list) and len(given) == 1 else given
    return step.dim(given, rank) if type(given) is int and rank and "other" not in step.kwargs else None


def _place(step: Step) -> ExtremePlace | None:
    fact = step.args[0] if step.args else None
    if not isinstance(fact, Fact) or fact.value is None or fact.dtype not in (*WHOLE, "bool"):
        return None
    dim, value = _dim(step, len(fact.axes)), whole_number(fact.value)
    if dim is None or isinstance(value, Cases) or len(fact.axes[dim]) != 1:
        return None
    number = if_else(value, integer(1), integer(0)) if isinstance(value, Formula) else value
    own = sum(len(axes) for axes in fact.axes[:dim])
    others = tuple(axis(k) for k in range(len(fact.sizes)) if k != own)
    return ExtremePlace(step.node, number, axis(own), others, fact.axes[dim][0], SIGNS[step.name])


def extreme_values(step: Step) -> list[Derived] | None:
    """The extreme number of each row and its index; None if the numbers are not known."""
    one, fact = step.setting.places.get(step.node), step.fact(0)
    if not isinstance(one, ExtremePlace):
        return None
    dim = _dim(step, len(fact.axes))
    assert dim is not None
    kept = [axes for d, axes in enumerate(fact.axes) if d != dim]
    for claim, shape in zip(step.claims, step.shapes, strict=True):
        keep = len(shape) == len(fact.axes)
        require(not keep or shape[dim] is ONE, "the result of a reduction has another shape")
        own = [axes for d, axes in enumerate(claim.axes) if not (keep and d == dim)]
        require(own == kept and claim.sizes == tuple(n for axes in kept for n in axes), "its rows have other indices")
    own_indices = [index(k) for k in range(len(one.others))]
    place = apply(step.node, *own_indices)
    number = Derived.of_value(one.number_at(own_indices, place), fact.dtype)
    found = {"argmax": 1, "argmin": 1}.get(step.name, 0)
    return [number, Derived.of_value(place, "int64")][found : found + len(step.claims)]
