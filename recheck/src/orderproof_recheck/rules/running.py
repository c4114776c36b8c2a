"""Running sums and the like: a number computed from the elements of a row up to its own."""

from __future__ import annotations

from collections.abc import Callable

from orderproof_recheck.facts import FLOATS, INTEGER_LIMITS, WHOLE, Fact, Predicates, axis, index, whole_number
from orderproof_recheck.index_maps import read
from orderproof_recheck.logic.formulas import FALSE, TRUE, Formula, at_most, equal, if_else, less, opposite, some
from orderproof_recheck.logic.replacement import Replacement
from orderproof_recheck.logic.terms import Term, apply, integer
from orderproof_recheck.operator import READS, Operator, operators
from orderproof_recheck.rules.movement import ONE, single, size_of
from orderproof_recheck.setting import Obligation
from orderproof_recheck.statements import BATCH, TOKENS
from orderproof_recheck.steps import Derived, Step


def cumulative(step: Step) -> list[Derived]:
    """For each index, a number computed from the elements up to it."""
    fact = step.fact(0)
    dim = step.dim(step.argument(1, "dim"), len(fact.axes))
    size = size_of(fact, dim)
    if step.name == "cumsum" and len(step.shapes) == 1:
        value = _counting(step, fact, dim) or _summed(step, fact, dim)
        if value is not None:
            return [Derived.of_value(value, step.claim.dtype)]
    if size is ONE:
        return _of_one_element(step, fact)
    if step.name == "cumsum" and len(step.args) == 2 and not step.kwargs:
        step.sum_of = fact, dim
    return [up_to(step, fact, dim, less, result) for result in range(len(step.shapes))]


def up_to(step: Step, fact: Fact, dim: int, is_after: Callable[[Term, Term], Formula], result: int = 0) -> Derived:
    """A number that is computed from the elements which do not come after its index."""
    places = step.all_digits(result)
    ((_, other),) = further = step.further((size_of(fact, dim),))
    places[dim] = further
    element = read(fact, places, step.equal)
    zero = element.zero if step.name in ("cumsum", "sub") else FALSE
    ordinary = FALSE if step.name == "cumprod" else _always(element.ordinary)
    return Derived(
        Predicates(same=some(element.same, zero, is_after(single(step, dim, result), other)), ordinary=ordinary)
    )


def sum_before(step: Step) -> Derived | None:
    """A running sum less the elements themselves: the sum of those before each. None for another difference."""
    first, second = step.arguments()[:2]
    if step.kwargs or not isinstance(first, Fact) or first.sum_of is None or first.sum_of[0] is not second:
        return None
    own, dim = first.sum_of
    fits = own.dtype == step.claim.dtype and own.dtype in FLOATS and len(own.axes) == len(step.claim.axes)
    return up_to(step, own, dim, at_most) if fits and size_of(own, dim) is not ONE else None


def _of_one_element(step: Step, fact: Fact) -> list[Derived]:
    """A number computed from one element: that element."""
    elements = [read(fact, step.all_digits(k), step.equal) for k in range(len(step.shapes))]
    if len(elements) == 1 and step.claim.dtype == fact.dtype:
        return [Derived.of_element(elements[0])]
    return [Derived(Predicates(same=x.same, ordinary=_always(x.ordinary))) for x in elements]


def _counting(step: Step, fact: Fact, dim: int) -> Term | None:
    """The running sum of one number."""
    value = fact.value
    if value is TRUE:
        value = integer(1)
    elif isinstance(value, Formula) and step.setting.discharge(Obligation(fact.sizes, TRUE, opposite(value))):
        value = integer(0)
    if isinstance(value, Formula | Term) and (total := _documents(step, fact, dim, value)) is not None:
        return total
    if not isinstance(value, Term) or not value.is_integer or step.claim.dtype not in INTEGER_LIMITS:
        return None
    return (single(step, dim) + 1) * value.constant


def _summed(step: Step, fact: Fact, dim: int) -> Term | None:
    """The claimed value, if it begins with the first element, and grows by each element."""
    claimed, own = step.claim.value, None if fact.value is None else whole_number(fact.value)
    if isinstance(own, Formula):
        own = if_else(own, integer(1), integer(0))
    if not isinstance(claimed, Term) or not isinstance(own, Term) or len(step.claim.axes[dim]) != 1:
        return None
    if step.claim.axes != fact.axes or step.claim.dtype not in WHOLE or not claimed.functions <= own.functions:
        return None
    ((_, place),) = step.digits(dim)
    (here,) = place.variables
    first, before = (Replacement({here: at}) for at in (integer(0), place - 1))
    begins = equal(first.term(claimed), first.term(own))
    grows = some(at_most(place, 0), equal(claimed - before.term(claimed), own))
    holds = all(step.holds(each, step.claim.sizes) for each in (begins, grows))
    return claimed if holds else None


def _documents(step: Step, fact: Fact, dim: int, value: Formula | Term) -> Term | None:
    """The running sum of the tokens that begin a document."""
    counted, axes = step.setting.counted, [axes for axes in fact.axes if axes]
    if counted is None or fact.axes[dim] != (TOKENS,) or step.claim.dtype not in INTEGER_LIMITS:
        return None
    if len(axes) != 2 or set(axes) != {(BATCH,), (TOKENS,)}:
        return None
    row, token = index(axes.index((BATCH,))), index(axes.index((TOKENS,)))
    expected = if_else(Replacement({axis(0): row, axis(1): token}).formula(counted), integer(1), integer(0))
    summed = value if isinstance(value, Term) else if_else(value, integer(1), integer(0))
    if not step.setting.discharge(Obligation(fact.sizes, TRUE, equal(summed, expected))):
        return None
    return apply("document", single(step, fact.axes.index((BATCH,))), single(step, dim))


def _always(formula: Formula) -> Formula:
    return TRUE if formula is TRUE else FALSE


RUNNING: dict[str, Operator] = {
    **operators(("cumsum", "logcumsumexp", "cummax", "cummin"), cumulative, READS),
    "cumprod": Operator(cumulative, READS, may_wrap=True),
}
