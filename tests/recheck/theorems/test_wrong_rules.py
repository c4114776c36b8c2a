"""A theorem that the prover gets by a wrong rule is refused by the recheck, which has rules of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from orderproof.logic.solver import Solver
from orderproof.logic.terms import FALSE
from orderproof.theorems.facts import open_fact
from orderproof.theorems.operators.pointwise import value_ranges
from orderproof_recheck.errors import CertificateError
from orderproof_recheck.theorem import check_theorem
from tests.recheck.theorems.examples import recorded, unchecked
from tests.theorems.extreme_arguments import EXTREME

PROGRAMS = {case.name: case for case in EXTREME}
Patch = Callable[[pytest.MonkeyPatch], None]


def every_scaling_counts_alone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(value_ranges, "_remaining_share", lambda *_: 1.0)


def nothing_is_tiny(patch: pytest.MonkeyPatch) -> None:
    found = open_fact.OpenFact.ranges
    patch.setattr(open_fact.OpenFact, "ranges", lambda fact: replace(found(fact), tiny=FALSE))


def every_beta_is_moderate(patch: pytest.MonkeyPatch) -> None:
    own = value_ranges._is_moderate

    def is_moderate(factor: Any) -> bool:
        return factor == -1 or own(factor)

    patch.setattr(value_ranges, "_is_moderate", is_moderate)


def nothing_is_large(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(value_ranges, "beyond_ordinary", lambda *_: FALSE)


WRONG: list[tuple[str, Patch]] = [
    ("scores scaled six times", every_scaling_counts_alone),
    ("scores divided six times", every_scaling_counts_alone),
    ("scores divided by a small number", nothing_is_tiny),
    ("scores divided by a small tensor", nothing_is_tiny),
    ("scores divided down to whole numbers", nothing_is_tiny),
    ("scores softplus that is taken away", every_beta_is_moderate),
    ("scores kept below the mask", nothing_is_large),
]


@pytest.mark.parametrize(("name", "break_a_rule"), WRONG, ids=[name for name, _ in WRONG])
def test_a_theorem_by_a_wrong_rule_is_refused(name: str, break_a_rule: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    case, solver = PROGRAMS[name], Solver()
    assert unchecked(*recorded(case), "causal", solver) is None
    break_a_rule(monkeypatch)
    made = unchecked(*recorded(case), "causal", solver)
    assert made is not None, "the broken rule proves nothing: the test tests nothing"
    with pytest.raises(CertificateError, match="does not follow"):
        check_theorem(made, fill=True)
