"""The rules of the recheck, by operator: one function each, from the facts of the operands to those of the results."""

from __future__ import annotations

from collections.abc import Callable

from orderproof.recheck.theorems.facts import Fact
from orderproof.recheck.theorems.formulas import FALSE
from orderproof.recheck.theorems.rules.creation import CREATION
from orderproof.recheck.theorems.rules.lookup import LOOKUP
from orderproof.recheck.theorems.rules.movement import MOVEMENT
from orderproof.recheck.theorems.rules.parts import PARTS
from orderproof.recheck.theorems.rules.pieces import PIECES
from orderproof.recheck.theorems.rules.pointwise import POINTWISE, pointwise
from orderproof.recheck.theorems.rules.rows import ROWS, extreme
from orderproof.recheck.theorems.rules.softmax import SOFTMAX, largest_score
from orderproof.recheck.theorems.rules.sums import SUMS
from orderproof.recheck.theorems.rules.triangular import TRIANGULAR
from orderproof.recheck.theorems.steps import Derived, Step

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
