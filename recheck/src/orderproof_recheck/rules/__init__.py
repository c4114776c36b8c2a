"""The rules of the recheck, by operator: one function each, from the facts of the operands to those of the results."""

from __future__ import annotations

from collections.abc import Callable

from orderproof_recheck.facts import Fact
from orderproof_recheck.logic.formulas import FALSE
from orderproof_recheck.rules.creation import CREATION
from orderproof_recheck.rules.lookup import LOOKUP
from orderproof_recheck.rules.movement import MOVEMENT
from orderproof_recheck.rules.parts import PARTS
from orderproof_recheck.rules.pieces import PIECES
from orderproof_recheck.rules.pointwise import POINTWISE, pointwise
from orderproof_recheck.rules.rows import ROWS, extreme
from orderproof_recheck.rules.softmax import SOFTMAX, largest_score
from orderproof_recheck.rules.sums import SUMS
from orderproof_recheck.rules.triangular import TRIANGULAR
from orderproof_recheck.steps import Derived, Step

Rule = Callable[[Step], list[Derived]]


def largest(step: Step) -> list[Derived]:
    """`max` and `min` of two tensors, or along a dimension."""
    second = step.argument(1, "dim")
    if isinstance(second, Fact) or "other" in step.kwargs:
        return pointwise(step)
    return largest_score(step) if step.name == "max" and type(second) is int and _may_hide(step) else extreme(step)


def logsumexp(step: Step) -> list[Derived]:
    """The logarithm of a sum of exponentials: nearly the greatest element."""
    given = step.argument(1, "dim")
    single = type(given) is int or (isinstance(given, list) and len(given) == 1)
    return largest_score(step) if single and _may_hide(step) else ROWS["logsumexp"](step)


def _may_hide(step: Step) -> bool:
    known = step.fact(0).predicates
    return known.hidden is not FALSE or known.low is not FALSE


RULES: dict[str, Rule] = {
    **MOVEMENT, **PARTS, **PIECES, **POINTWISE, **SUMS, **ROWS, **SOFTMAX, **LOOKUP, **CREATION, **TRIANGULAR,
    **dict.fromkeys(("max", "min", "argmax", "argmin", "median", "mode", "kthvalue"), largest),
    "logsumexp": logsumexp,
}  # fmt: skip
