"""A constant moves with the tokens exactly where its value is the same at the permuted indices."""

from __future__ import annotations

import pytest

from orderproof_recheck.errors import CertificateError
from orderproof_recheck.facts import Cases, Fact, Predicates, Value, index
from orderproof_recheck.logic.decision import Decision
from orderproof_recheck.logic.formulas import TRUE, at_most, equal, every, if_else, less, opposite
from orderproof_recheck.logic.terms import Term, integer
from orderproof_recheck.permuted.moved_fact import FREE, STILL, Motion, Moved, MovedFact
from orderproof_recheck.permuted.moved_step import check_value
from orderproof_recheck.setting import Setting
from orderproof_recheck.statements import TOKENS
from orderproof_recheck.steps import Step

X, Y, Z = map(index, range(3))
SAME = equal(X, Y)
ONES = Cases(((SAME, 1.0), (opposite(SAME), 0.0)))


@pytest.mark.parametrize(
    ("value", "motions", "more", "follows"),
    [
        (SAME, [Moved(), Moved()], 0, True),
        (ONES, [Moved(), Moved()], 0, True),
        (if_else(SAME, integer(3), integer(0)), [Moved(), Moved()], 0, True),
        (every(SAME, opposite(equal(Y, Z))), [Moved(), Moved(), Moved()], 0, True),
        (SAME, [Moved(), STILL], 0, False),
        (SAME, [STILL, STILL], 0, True),
        (SAME, [Moved(), FREE], 0, False),
        (every(SAME, at_most(X, 0)), [Moved(), Moved()], 0, False),
        (equal(X, Y + 1), [Moved(), Moved()], 0, False),
        (less(X, Y), [Moved(), Moved()], 0, False),
        (every(SAME, less(Y, Z)), [Moved(), Moved(), Moved()], 0, False),
        (X - Y, [Moved(), Moved()], 0, False),
        (SAME, [Moved(1), Moved(1)], 1, True),
        (SAME, [Moved(1), Moved()], 1, False),  # p(x0 - 1) + 1 may be p(x1)
        (equal(X, Y + 1), [Moved(1), Moved()], 1, False),
    ],
)
def test_a_value_is_the_same_at_permuted_indices(value: Value, motions: list[Motion], more: int, follows: bool) -> None:
    sizes: tuple[Term, ...] = (TOKENS + more,) * len(motions)
    claim = MovedFact(tuple((size,) for size in sizes), "bool", tuple(motions))
    setting = Setting(Decision(), (at_most(2, TOKENS),), frozenset(), frozenset({"tokens"}), set())
    step = Step(setting, "constant", "aten.eq.Tensor", [], {}, [sizes], [Fact(claim.axes, "bool", Predicates(TRUE))])
    if follows:
        check_value(step, claim, value)
    else:
        with pytest.raises(CertificateError, match="index"):
            check_value(step, claim, value)
