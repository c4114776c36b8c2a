"""The solver after a query that was interrupted."""

from __future__ import annotations

import pytest
import z3

from orderproof.logic.solver import Solver
from orderproof.logic.terms import at_most, less, variable
from orderproof.time_limit import TimeLimitExceeded


def test_an_interrupted_query_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    solver, x, y = Solver(), variable("x"), variable("y")

    def interrupt(_solver: z3.Solver) -> None:
        raise TimeLimitExceeded

    assert not solver.implies([less(x, y)], at_most(y, x))
    with monkeypatch.context() as patch:
        patch.setattr(z3.Solver, "check", interrupt)
        with pytest.raises(TimeLimitExceeded):
            solver.implies([less(x, y)], at_most(x, y))
    assert not solver.implies([less(0, y)], at_most(y, x))
    assert not solver.implies([at_most(y, x)], less(x, y))
