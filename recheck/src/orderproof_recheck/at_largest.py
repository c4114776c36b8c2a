"""Tensors at the index of the largest score of each row of another one, through pointwise operators.

Where all scores that are ordinary satisfy a condition, the largest one does, if a score of its row is ordinary.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from orderproof_recheck.facts import FLOATS, Fact, Largest, cases_of
from orderproof_recheck.index_maps import Digits, read
from orderproof_recheck.logic.formulas import Formula, opposite
from orderproof_recheck.logic.notation import require
from orderproof_recheck.mask_sizes import ordinary_limit
from orderproof_recheck.rules.movement import ONE, broadcast_element, size_of
from orderproof_recheck.rules.numbers import CONVERSIONS
from orderproof_recheck.setting import Obligation
from orderproof_recheck.steps import Step

ORDINARY, RANKED, PLACES, CHOSEN, BELOW = "ordinary", "ranked", "places", "chosen", "below"
OF_EACH = (RANKED, PLACES, CHOSEN, BELOW)  # which say something of each element
Known = str | float | bool | None


def number_level(number: Any) -> Known:
    """The knowledge of a number: itself if it is exact in every dtype."""
    if isinstance(number, bool):
        return number
    if not isinstance(number, int | float) or not abs(number) < ordinary_limit():
        return None
    return float(number) if number == int(number) and abs(number) <= 16 else ORDINARY  # exact in every dtype


def constant_level(fact: Fact) -> Known:
    """The number that all elements of a tensor are."""
    cases = None if fact.value is None else cases_of(fact.value)
    if cases is None or len(cases.pairs) != 1:
        return None
    number = cases.pairs[0][1]
    return bool(number) if fact.dtype == "bool" else number_level(number)


def pointwise_level(step: Step, known: Sequence[Largest]) -> Largest | None:
    """The result of a pointwise operator at the index of the largest score."""
    rank, first = len(step.shape), known[0]
    dims: list[int | None] = [None] * rank
    origins = {one.origin for one in known if one.origin}
    for one in known:
        if one.scores is not first.scores or one.dim != first.dim or len(origins) > 1:
            return None
        for d, own in enumerate(one.dims, start=rank - len(one.dims)):
            if own is not None and dims[d] not in (own, None):
                return None
            dims[d] = own if dims[d] is None else dims[d]
    whole = replace(first, dims=tuple(dims), origin=max(origins, default=""))
    if dims.count(first.dim) != 1 or (step.kwargs and step.name not in CONVERSIONS):
        return None
    arguments = step.args[: 1 if step.name in CONVERSIONS else None]
    found = AT_LARGEST[step.name](step, [_level(step, x, whole) for x in arguments])
    return None if found is None else replace(whole, known=found)


def _level(step: Step, argument: Any, whole: Largest) -> Known:
    """The knowledge of an argument at the index of the largest score."""
    if not isinstance(argument, Fact):
        return number_level(argument)
    if argument.largest is not None:
        aligned = [None] * (len(whole.dims) - len(argument.largest.dims)) + list(argument.largest.dims)
        is_level = argument.largest.known not in OF_EACH
        fits = is_level and aligned[whole.dims.index(whole.dim)] == whole.dim
        return argument.largest.known if fits else None
    if (number := constant_level(argument)) is not None:
        return number
    element = broadcast_element(step, argument)
    seen = score_in_row(step, whole, step.digits(whole.dims.index(whole.dim))).ordinary
    tests: list[tuple[Formula, Known]] = []
    if isinstance(element.value, Formula):
        tests = [(element.value, True), (opposite(element.value), False)]
    elif argument.dtype in FLOATS:
        tests = [(element.ordinary, ORDINARY)]
    sizes = step.sizes(0)
    return next((one for test, one in tests if step.setting.discharge(Obligation(sizes, seen, test))), None)


def score_in_row(step: Step, one: Largest, at: Digits) -> Fact:
    """The score at an index of the row of an element of the result, whose dimensions are those of a tensor."""
    dims: list[Digits] = []
    for d in range(len(one.scores.axes)):
        places = [k for k, own in enumerate(one.dims) if own == d]
        require(d == one.dim or len(places) == 1, "a dimension of the scores is left out")
        own = at if d == one.dim else step.digits(places[0])
        dims.append(() if size_of(one.scores, d) is ONE else own)
    return read(one.scores, dims, step.equal)


def score_at(step: Step, one: Largest) -> Callable[[Digits], Any]:
    """The predicates of the scores of the row of an element, by the index in the row."""
    return lambda at: score_in_row(step, one, at).predicates


def is_ordinary(known: Known) -> bool:
    """True for an ordinary number at the index of the largest score."""
    return known == ORDINARY or (isinstance(known, float) and abs(known) < ordinary_limit())


def _choice(condition: Known, first: Known, second: Known) -> Known:
    return (first if condition else second) if isinstance(condition, bool) else None


def _numbers(step: Step, levels: Sequence[Known]) -> Known:
    return ORDINARY if step.claim.dtype in FLOATS and all(map(is_ordinary, levels)) else None


def _scaled(step: Step, levels: Sequence[Known]) -> Known:
    divisor = step.args[1]
    large = isinstance(divisor, int | float) and 1 <= abs(divisor) < ordinary_limit()
    return ORDINARY if large and is_ordinary(levels[0]) else None


def _deciding(*, answer: bool) -> Callable[[Step, Sequence[Known]], Known]:
    """Booleans of which one decides alone, and all others together."""

    def found(step: Step, levels: Sequence[Known]) -> Known:
        if step.claim.dtype != "bool":
            return None
        return answer if any(x is answer for x in levels) else not answer if all(map(_is_bool, levels)) else None

    return found


def _is_bool(level: Known) -> bool:
    return isinstance(level, bool)


def _negated(step: Step, levels: Sequence[Known]) -> Known:
    return (not levels[0]) if step.claim.dtype == "bool" and isinstance(levels[0], bool) else None


def _converted(step: Step, levels: Sequence[Known]) -> Known:
    (level,) = levels
    if step.claim.dtype in FLOATS:
        return float(level) if isinstance(level, bool) else level if is_ordinary(level) else None
    return bool(level) if step.claim.dtype == "bool" and isinstance(level, bool | float) else None


def _comparison(name: str) -> Callable[[Step, Sequence[Known]], Known]:
    compare = getattr(operator, name)
    return lambda _, x: bool(compare(*x)) if all(isinstance(one, bool | float) for one in x) else None


AT_LARGEST: dict[str, Callable[[Step, Sequence[Known]], Known]] = {
    "masked_fill": lambda _, x: _choice(x[1], x[2], x[0]), "where": lambda _, x: _choice(x[0], x[1], x[2]),
    **{name: _comparison(name) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    **dict.fromkeys(("add", "sub", "mul"), _numbers), "div": _scaled,
    **dict.fromkeys(("logical_and", "bitwise_and", "__and__"), _deciding(answer=False)),
    **dict.fromkeys(("logical_or", "bitwise_or", "__or__"), _deciding(answer=True)),
    **dict.fromkeys(("logical_not", "bitwise_not"), _negated), **dict.fromkeys(CONVERSIONS, _converted),
}  # fmt: skip
