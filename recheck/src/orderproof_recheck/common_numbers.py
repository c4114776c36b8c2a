"""Numbers that the elements of a row have in common, and that cancel in a softmax, or in a quotient.

Let m[i] be an ordinary number for each row i. The softmax of s - m along the row is that of s. And exp(s - m) is exp(s)
times exp(-m[i]), which is positive: of two tensors with that factor the quotient is the one of the tensors without it.
So where such a result is the same in both runs for s, it is for s - m, although m need not be.

A mask of -inf, or one that is added, leaves the difference a difference. A finite number in place of scores does not;
it is followed up to the softmax, or the exponential, where the scores are ordinary: next to one of them its weight is
zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from orderproof_recheck.errors import CertificateError
from orderproof_recheck.facts import FLOATS, Cases, Common, Fact, Predicates, axis
from orderproof_recheck.logic.formulas import FALSE, TRUE, some
from orderproof_recheck.logic.replacement import Replacement
from orderproof_recheck.logic.terms import Atom, Term, integer
from orderproof_recheck.mask_sizes import mask_limit
from orderproof_recheck.rules.movement import broadcast_element
from orderproof_recheck.rules.numbers import CONVERSIONS, COPIES
from orderproof_recheck.steps import Derived, Step

Rule = Callable[[Step], list[Derived]]
Known = Mapping[int, Common]  # by the place of the argument
SOFTMAX = frozenset({"softmax", "_softmax", "_safe_softmax"})


def without_common_numbers(step: Step, rule: Rule, derived: list[Derived]) -> list[Derived]:
    """The facts derived about a result in which common numbers of the operands may cancel."""
    known = {place: x.common for place, x in enumerate(step.args) if isinstance(x, Fact) and x.common is not None}
    if len(derived) != 1 or derived[0].value is not None:
        return derived
    done = len(step.obligations)
    try:
        step.common = _passed(step, known, rule) if known else _subtracted(step)
        if known and _cancels(step, known):
            return [_either(derived[0].predicates, _applied(step, rule, known).predicates)]
    except CertificateError:  # the rule says nothing of what is left
        del step.obligations[done:]
    return derived


def _applied(step: Step, rule: Rule, known: Known) -> Fact:
    """The fact about the result of these operands without their common numbers."""
    before = step.args
    step.args = [_opened(step, known[place]) if place in known else x for place, x in enumerate(before)]
    try:
        (found,) = rule(step)
        own, sizes = found.predicates, len(step.claim.sizes)
        further = own.zero.variables & {axis(sizes + k) for k in range(len(step.bound))}
        if further and step.need_not_vanish(own.zero):
            own, further = replace(own, zero=FALSE), frozenset()
        return Fact(step.claim.axes, step.claim.dtype, own, zeros_are_known=not further, share=step.remaining_share)
    finally:
        step.args = before


def _opened(step: Step, common: Common) -> Fact:
    """The rest of an operand, whose further indices are further ones of this step."""
    own, count = len(common.rest.sizes), max(len(claim.sizes) for claim in step.claims)
    step.bound += [integer(1)] * (own - count - len(step.bound))  # no further index is one of the operand
    places: dict[Atom, Term] = {axis(own + k): place for k, (_, place) in enumerate(step.further(common.further))}
    moved = [Replacement(places).formula(formula) for _, formula in common.rest.predicates.items()]
    return replace(common.rest, predicates=Predicates(*moved))


def _either(first: Predicates, second: Predicates) -> Derived:
    same, zero = some(first.same, second.same), some(first.zero, second.zero)
    return Derived(replace(first, same=same, zero=zero, ordinary=some(first.ordinary, second.ordinary)))


def _subtracted(step: Step) -> Common | None:
    """The difference, or sum, of a tensor and an ordinary number for each row."""
    if step.name not in ("add", "sub") or step.kwargs or len(step.args) != 2:
        return None
    first, second = step.args
    if not isinstance(first, Fact) or not isinstance(second, Fact) or len(first.axes) != len(second.axes):
        return None
    along = frozenset(d for d, (a, b) in enumerate(zip(first.axes, second.axes, strict=True)) if a and not b)
    ordinary = second.hidden is FALSE and second.ordinary is TRUE
    if not along or not ordinary or second.same is TRUE or first.dtype != step.claim.dtype:
        return None
    rest = replace(broadcast_element(step, first), axes=step.claim.axes)
    return Common((second,), rest, tuple(step.bound), along)


def _passed(step: Step, known: Known, rule: Rule) -> Common | None:
    """The result without the common number of its one operand that has one."""
    ((place, common), *others) = known.items()
    if others or len(step.shape) != len(common.rest.axes):
        return None
    passed = _through_factor(step, place, common) if common.factor else _through_difference(step, place, common)
    if passed is None:
        return None
    rest = _applied(step, rule, {place: common})
    return replace(passed, rest=rest, further=tuple(step.bound))


def _is_copy(step: Step) -> bool:
    return step.name in COPIES or (step.name in CONVERSIONS and step.claim.dtype in FLOATS)


def _through_difference(step: Step, place: int, common: Common) -> Common | None:
    if _is_copy(step):
        return common
    if step.name == "exp":
        return replace(common, factor=True, filled=False)
    if common.filled:
        return None
    if (fill := _other_choice(step, place)) is not None:
        known, limit = common.rest.predicates, mask_limit(step.claim.dtype)
        ordinary = known.ordinary is TRUE and known.hidden is FALSE and known.low is FALSE
        if all(number == -math.inf for number in fill):
            return common
        return replace(common, filled=True) if ordinary and all(number <= -limit for number in fill) else None
    if step.name == "add" or (step.name == "sub" and place == 0):
        return None if step.kwargs else common
    factor = step.args[1] if len(step.args) > 1 else None
    if step.name in ("mul", "div") and isinstance(factor, int | float) and 0 < factor < math.inf and not step.kwargs:
        return replace(common, number=(*common.number, step.name, factor))
    return None


def _through_factor(step: Step, place: int, common: Common) -> Common | None:
    rank = len(step.shape)
    if _is_copy(step) or step.name == "mul":
        return common
    if (fill := _other_choice(step, place)) is not None:
        return common if all(number == 0 for number in fill) else None
    if step.name == "sum" and (given := step.argument(1, "dim")) is not None:
        dims = {step.dim(d, rank) for d in (given if isinstance(given, list) else [given])}
        return common if dims and dims <= common.along else None
    if step.name == "cumsum":
        return common if step.dim(step.argument(1, "dim"), rank) in common.along else None
    of_rows = step.name in ("matmul", "bmm") and place == 0 and rank - 1 in common.along
    return common if of_rows and len(step.fact(1).axes) == rank else None


def _other_choice(step: Step, place: int) -> list[float] | None:
    """The numbers that `where` or `masked_fill` takes in place of a tensor; None if they are not known."""
    places = {"masked_fill": {0: 2}, "where": {1: 2, 2: 1}}.get(step.name, {})
    other: Any = step.args[places[place]] if place in places and len(step.args) == 3 else None
    if isinstance(other, int | float):
        return [float(other)]
    if isinstance(other, Fact) and isinstance(other.value, Cases):
        return [float(number) for _, number in other.value.pairs]
    return None


def _cancels(step: Step, known: Known) -> bool:
    """True if common numbers of the operands cancel in the result."""
    first, second = known.get(0), known.get(1)
    if first is None:
        return False
    if step.name in SOFTMAX:
        return not first.factor and step.dim(step.argument(1, "dim"), len(step.shape)) in first.along
    if step.name != "div" or second is None or not (first.factor and second.factor) or step.kwargs:
        return False
    return first.number[0] is second.number[0] and first.number[1:] == second.number[1:]
