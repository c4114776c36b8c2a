"""The number of boundaries before each number: `bucketize`, `searchsorted`."""

from __future__ import annotations

from itertools import pairwise

from orderproof_recheck.facts import MAX_CASES, Cases, Fact, Predicates, whole_number
from orderproof_recheck.index_maps import read
from orderproof_recheck.logic.formulas import Formula, at_most, every, if_else, less
from orderproof_recheck.logic.notation import require
from orderproof_recheck.logic.terms import Term, integer
from orderproof_recheck.operator import Operator, operators
from orderproof_recheck.rules.movement import ONE, size_of
from orderproof_recheck.steps import Derived, Step


def buckets(step: Step) -> list[Derived]:
    """It is the same where the number and all boundaries are; of known ones in order it is counted."""
    places = (0, 1) if step.name == "bucketize" else (1, 0)
    numbers, boundaries = (step.fact(k) for k in places)
    require(len(boundaries.axes) == 1 and step.kwargs.get("sorter") is None, "each row has its own boundaries")
    require(len(numbers.axes) == len(step.shape), "its result has another shape")
    require(all(step.equal(size_of(numbers, d), n) for d, n in enumerate(step.shape)), "its result has another shape")
    own = read(numbers, step.all_digits(), step.equal)
    counts_equal = step.kwargs.get("right", False) is True or step.kwargs.get("side") == "right"
    value = _known(step, own, boundaries, counts_equal=counts_equal)
    if value is not None:
        return [Derived.of_value(value, step.claim.dtype)]
    one = read(boundaries, [step.further(boundaries.axes[0])], step.equal)
    return [Derived(Predicates(same=every(own.same, one.same)))]


def _known(step: Step, own: Fact, boundaries: Fact, *, counts_equal: bool) -> Term | None:
    number, size = None if own.value is None else whole_number(own.value), size_of(boundaries, 0)
    if number is None or isinstance(number, Cases) or boundaries.value is None or not size.is_integer:
        return None
    if size.constant > MAX_CASES:
        return None
    term = if_else(number, integer(1), integer(0)) if isinstance(number, Formula) else number
    total, before = integer(0), []
    for k in range(size.constant):
        place = () if size is ONE else ((size, integer(k)),)
        value = read(boundaries, [place], step.equal).value
        one = None if value is None else whole_number(value)
        if not isinstance(one, Term) or not one.is_integer:
            return None
        before.append(one.constant)
        counted = at_most(one, term) if counts_equal else less(one, term)
        total = total + if_else(counted, integer(1), integer(0))
    return total if all(a <= b for a, b in pairwise(before)) else None


BUCKETS: dict[str, Operator] = operators(("bucketize", "searchsorted"), buckets)
