"""An index that is compared with that of the largest score of a row: a one-hot tensor of the largest scores.

Where a score is not visible, and another one of its row is, its index is not that of the largest.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from orderproof_recheck.facts import Fact
from orderproof_recheck.largest_scores import not_chosen
from orderproof_recheck.logic.formulas import FALSE, Formula, some
from orderproof_recheck.operator import Operator
from orderproof_recheck.rules.movement import single, size_of
from orderproof_recheck.rules.pointwise import POINTWISE, element_of
from orderproof_recheck.rules.softmax import has_largest
from orderproof_recheck.steps import Derived, Step


def equal(step: Step) -> list[Derived]:
    """Elements that are equal."""
    (found,) = POINTWISE["eq"].rule(step)
    never = FALSE if found.value is not None or len(step.args) != 2 else _never(step, *step.args)
    own = found.predicates
    if never is FALSE:
        return [found]
    return [Derived(replace(own, same=some(own.same, never), zero=some(own.zero, never)))]


def _never(step: Step, first: Any, second: Any) -> Formula:
    for places, other in ((first, second), (second, first)):
        if not isinstance(places, Fact) or not isinstance(other, Fact) or places.largest is None:
            continue
        one, value = places.largest, element_of(step, other).value
        for d, label in enumerate(one.dims if len(one.dims) == len(step.shape) else ()):
            row = size_of(one.scores, one.dim)
            if label in (None, one.dim) and value is single(step, d) and step.equal(step.shape[d], row):
                return not_chosen(step, places, step.digits(d), lambda one: has_largest(step, one))
    return FALSE


CHOSEN_PLACES: dict[str, Operator] = {"eq": replace(POINTWISE["eq"], rule=equal)}
