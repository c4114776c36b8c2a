"""The greatest and the least number of each row of known integers, and where it is; sorted rows, and their indices."""

from __future__ import annotations

from dataclasses import replace

from orderproof_recheck.extreme_places import ExtremePlace, SortedPlace
from orderproof_recheck.facts import WHOLE, Axes, Cases, Fact, axis, index, product_of, whole_number
from orderproof_recheck.limits import OF_A_RUN
from orderproof_recheck.logic.formulas import (
    TRUE,
    Formula,
    at_most,
    equal,
    every,
    holds,
    if_else,
    less,
    opposite,
    some,
)
from orderproof_recheck.logic.notation import require
from orderproof_recheck.logic.replacement import Replacement
from orderproof_recheck.logic.terms import Term, apply, integer
from orderproof_recheck.places_of_a_run import IndexInRow, RunningExtreme
from orderproof_recheck.rules.movement import ONE
from orderproof_recheck.steps import Derived, Step
from orderproof_recheck.whole_rows import WholeRow

RUNNING = ("cummax", "cummin")
SORTS = ("sort", "argsort")
SIGNS = {"argmax": 1, "argmin": -1, "max": 1, "min": -1, "amax": 1, "amin": -1}


def note_place(step: Step) -> None:
    """Keep with the setting the index that a step finds, if the numbers are known."""
    setting = step.setting
    setting.places.pop(step.node, None)
    if step.name in (*SIGNS, *SORTS) and setting.loops.active is None and step.node not in setting.functions:
        found = _sorted(step) if step.name in SORTS else _place(step)
        if found is not None:
            setting.places[step.node] = found
            setting.functions.add(step.node)
            return
    _note_place_of_a_run(step)


def _note_place_of_a_run(step: Step) -> None:
    setting, function = step.setting, f"{step.node}{OF_A_RUN}"
    setting.places.pop(function, None)
    fact = step.args[0] if step.args else None
    if setting.loops.active is not None or not isinstance(fact, Fact) or not fact.axes:
        return
    if step.name in ("argmax", "argmin") and (dim := _dim(step, len(fact.axes))) is not None:
        setting.places[function] = IndexInRow(function, product_of(fact.axes[dim]))
    if step.name in RUNNING:
        dim = step.dim(step.argument(1, "dim"), len(fact.axes))
        value = fact.of_a_run if fact.value is None else fact.value
        if len(fact.axes[dim]) == 1:
            row, own = sum(len(axes) for axes in fact.axes[:dim]), tuple(axis(k) for k in range(len(fact.sizes)))
            numbers = value if isinstance(value, Term) else None
            step.running = RunningExtreme(function, row, numbers, own)


def note_part_of_running(step: Step, whole: Fact, part: int) -> None:
    """Keep with the setting what is known in one run of a part of a running maximum."""
    one, function = whole.running, f"{step.node}{OF_A_RUN}"
    step.setting.places.pop(function, None)
    if one is not None and step.setting.loops.active is None and (part == 1 or one.numbers is not None):
        numbers = one.numbers if part == 0 else None
        step.setting.places[function] = replace(one, function=function, numbers=numbers)


def _sorted(step: Step) -> SortedPlace | None:
    fact = step.args[0] if step.args else None
    if not isinstance(fact, Fact) or not fact.axes or fact.same is not TRUE:
        return None
    dim, sizes = step.dim(step.argument(1, "dim", -1), len(fact.axes)), fact.sizes
    if len(fact.axes[dim]) != 1:
        return None
    row, own = sum(len(axes) for axes in fact.axes[:dim]), tuple(axis(k) for k in range(len(sizes)))
    falls = step.argument(2, "descending", False)
    is_order = falls is False and isinstance(fact.value, Term) and _is_order(step, fact.value, row, sizes)
    return SortedPlace(step.node, row, sizes, fact.value if is_order else None, own)  # type: ignore[arg-type]


def _is_order(step: Step, numbers: Term, row: int, sizes: Axes) -> bool:
    """True if each row has the numbers 0, 1, ... in some order."""
    own = [index(k) for k in range(len(sizes))]
    for name, before in step.setting.places.items():
        if isinstance(before, SortedPlace) and numbers is apply(name, *own):
            return (before.row, before.sizes) == (row, sizes)
    other = Replacement({axis(row): index(len(sizes))}).term(numbers)
    inside = every(at_most(0, numbers), less(numbers, sizes[row]))
    once = some(opposite(equal(numbers, other)), equal(index(row), index(len(sizes))))
    return step.holds(inside, sizes) and step.holds(once, (*sizes, sizes[row]))


def sorted_rows(step: Step) -> list[Derived] | None:
    """The sorted elements of rows that are the same in both runs, and their indices; None of others."""
    one, fact = step.setting.places.get(step.node), step.fact(0)
    if not isinstance(one, SortedPlace) or any(claim.axes != fact.axes for claim in step.claims):
        return None
    own = [index(k) for k in range(len(one.sizes))]
    place = apply(step.node, *own)
    elements = fact.at([place if k == one.row else one_own for k, one_own in enumerate(own)])
    found = [Derived.of_element(elements), Derived.of_value(place, "int64")]
    return found[1:] if step.name == "argsort" else found


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
