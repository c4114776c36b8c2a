"""A theorem that the prover gets by a wrong rule is refused by the recheck, which has rules of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from orderproof.logic.solver import Solver
from orderproof.logic.terms import FALSE, Formula, conjunction, less
from orderproof.theorems.facts import open_fact
from orderproof.theorems.facts.extreme_places import ExtremePlace
from orderproof.theorems.operators.composition import padding as padding_rule
from orderproof.theorems.operators.lookup import buckets as bucket_rule
from orderproof.theorems.operators.pointwise import value_ranges
from orderproof.theorems.walks import endless_scores
from orderproof.theorems.walks import extreme_places as noted_places
from orderproof_recheck.errors import CertificateError
from orderproof_recheck.theorem import check_theorem
from tests.recheck.theorems.examples import recorded, unchecked
from tests.theorems.extreme_arguments import EXTREME
from tests.theorems.operators import buckets, hidden_rows, padded_ends
from tests.theorems.operators import extreme_places as places_of_real_tokens

OF_OPERATORS = (places_of_real_tokens, hidden_rows, buckets, padded_ends)
PROGRAMS = {case.name: case for case in (*EXTREME, *(case for one in OF_OPERATORS for case in one.PROGRAMS))}
REPEATED = padding_rule._repeated
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


def no_numbers_are_equal(patch: pytest.MonkeyPatch) -> None:
    own = ExtremePlace.known

    def known(place: ExtremePlace, arguments: Any, real: Any) -> Formula:
        witnesses = () if real is None else (real, place.size - 1 - real)
        extreme = place.number_at(arguments, place.at(arguments)) * place.sign
        less_there = (less(place.number_at(arguments, one) * place.sign, extreme) for one in witnesses)
        return conjunction(own(place, arguments, real), *less_there)

    patch.setattr(ExtremePlace, "known", known)


def the_smallest_is_the_largest(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(noted_places, "SIGNS", dict.fromkeys(noted_places.SIGNS, 1))


def numbers_are_endless(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(endless_scores, "_is_endless", lambda fact: fact.ranges().hidden)


def boundaries_agree(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(bucket_rule, "reduction", lambda _, fact, *__, **___: open_fact.OpenFact((), fact.dtype))


def reflection_repeats_the_first(patch: pytest.MonkeyPatch) -> None:
    def repeated(call: Any, fact: Any, dim: int, before: Any, _: str) -> Any:
        return REPEATED(call, fact, dim, before, "replicate")

    patch.setattr(padding_rule, "_repeated", repeated)


WRONG: list[tuple[str, Patch]] = [
    ("scores scaled six times", every_scaling_counts_alone),
    ("scores divided six times", every_scaling_counts_alone),
    ("scores divided by a small number", nothing_is_tiny),
    ("scores divided by a small tensor", nothing_is_tiny),
    ("scores divided down to whole numbers", nothing_is_tiny),
    ("scores softplus that is taken away", every_beta_is_moderate),
    ("scores kept below the mask", nothing_is_large),
    ("keys before each query, filled with a number", numbers_are_endless),
    ("levels between tokens", boundaries_agree),
    ("reflected in front", reflection_repeats_the_first),
]
WRONG_OF_PADS: list[tuple[str, Patch]] = [
    ("first real token by places from the end", no_numbers_are_equal),
    ("first pad", the_smallest_is_the_largest),
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


@pytest.mark.parametrize(("name", "break_a_rule"), WRONG_OF_PADS, ids=[name for name, _ in WRONG_OF_PADS])
def test_a_theorem_about_pads_by_a_wrong_rule_is_refused(
    name: str, break_a_rule: Patch, monkeypatch: pytest.MonkeyPatch
) -> None:
    case, solver = PROGRAMS[name], Solver()
    assert unchecked(*recorded(case), "padding", solver) is None
    break_a_rule(monkeypatch)
    made = unchecked(*recorded(case), "padding", solver)
    assert made is not None, "the broken rule proves nothing: the test tests nothing"
    with pytest.raises(CertificateError, match="the output need not agree"):
        check_theorem(made, fill=True)
