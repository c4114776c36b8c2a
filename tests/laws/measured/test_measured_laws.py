"""Every measured law: held by its honest example, broken by its planted fault; codes, names and hints."""

from __future__ import annotations

import re

import pytest

from orderproof.adapter import ModelAdapter
from orderproof.auditing.decide.measurement import measure_law
from orderproof.errors import UsageError
from orderproof.laws import find_law, measured_laws, proved_laws
from orderproof.laws.measured import CachedCalls, MeasuredLaw
from orderproof.records.audit import Finding
from tests.laws.law_fixture import law_fixtures

LAWS = measured_laws()
each_law = pytest.mark.parametrize("law", LAWS, ids=[law.name for law in LAWS])


def measured(law: MeasuredLaw, driver: ModelAdapter, seed: int = 0) -> Finding:
    return measure_law(driver, law, CachedCalls(driver, seed), kind="causal_lm" if driver.causal else "encoder")


@each_law
@pytest.mark.parametrize("seed", [0, 1])
def test_honest_example_is_held_and_its_control_is_seen(law: MeasuredLaw, seed: int) -> None:
    found = measured(law, law_fixtures()[law.name].conforming(), seed)
    assert found.verdict == "held", found.reason
    assert found.measurement is not None
    assert found.measurement.control_difference is not None
    assert found.measurement.control_difference > 1e-2
    assert all(trial.float32 is not None for trial in found.measurement.comparisons)
    assert found.remedy == ""


@each_law
@pytest.mark.parametrize("seed", [0, 1])
def test_planted_fault_is_refuted_with_a_fix(law: MeasuredLaw, seed: int) -> None:
    found = measured(law, law_fixtures()[law.name].violating(), seed)
    assert found.verdict == "refuted", found.reason
    assert found.remedy.endswith(".")
    assert found.witness is not None
    differing = found.witness.relative_difference > 1e-4 and found.witness.expected_value != found.witness.actual_value
    must = next(
        trial.expects_difference
        for trial in law.comparisons(CachedCalls(law_fixtures()[law.name].violating(), seed))
        if trial.description == found.witness.change
    )
    assert differing is not must


@each_law
def test_law_is_coded_documented_and_found(law: MeasuredLaw) -> None:
    assert re.fullmatch(r"OP\d{3}", law.code)
    assert law.statement.endswith(".")
    assert find_law(law.name) is find_law(law.code) is find_law(law.code.lower()) is law


def test_codes_and_names_are_unique() -> None:
    every = [*proved_laws(), *LAWS]
    assert len({law.code for law in every}) == len({law.name for law in every}) == len(every)


def test_unknown_law_is_refused_with_a_hint() -> None:
    with pytest.raises(UsageError, match="expected a law; got .*; did you mean 'chunked_prefill'\\?"):
        find_law("chunked_prefil")
