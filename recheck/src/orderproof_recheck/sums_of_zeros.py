"""Sums that may be of zeros only, with their elements at other places: what is not known of a sum, is not of these."""

from __future__ import annotations

from collections.abc import Callable

from orderproof_recheck.errors import CertificateError
from orderproof_recheck.facts import Fact, Predicates
from orderproof_recheck.logic.formulas import FALSE, TRUE, Formula
from orderproof_recheck.steps import Derived, Step

KEEP_ZEROS = frozenset({
    "view", "reshape", "_unsafe_view", "unflatten", "flatten", "transpose", "mT", "permute", "unsqueeze", "squeeze",
    "expand", "slice", "select", "clone", "contiguous", "to", "_to_copy", "sqrt",
    "mul", "div", "neg", "abs", "square",
})  # fmt: skip


def zeros_known_of_operand(step: Step, rule: Callable[[Step], list[Derived]]) -> Formula:
    """Where the element of the one operand is zero only if it is claimed to be."""
    operands = [x for x in step.args if isinstance(x, Fact)]
    if step.name not in KEEP_ZEROS or len(operands) != 1 or step.args[0] is not operands[0]:
        return TRUE
    (fact,) = operands
    if fact.zeros_known is TRUE or fact.zeros_known is FALSE:
        return TRUE
    before, done = step.args, len(step.obligations)
    step.args = [Fact(fact.axes, fact.dtype, Predicates(same=fact.zeros_known)), *before[1:]]
    try:
        (found,) = rule(step)
    except CertificateError:
        return FALSE
    finally:
        step.args = before
        del step.obligations[done:]
    return found.predicates.same
