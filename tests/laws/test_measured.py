"""Every measured law: held by its honest example, broken by its planted fault; codes, names and hints."""

from __future__ import annotations

import re

import pytest

from orderproof.auditing.measure import measure_law
from orderproof.driver import Driver
from orderproof.errors import UsageError
from orderproof.laws import laws
from orderproof.laws.measured import Bench, MeasuredLaw, find, measured_laws
from orderproof.record import Finding

LAWS = measured_laws()
each_law = pytest.mark.parametrize("law", LAWS, ids=[law.name for law in LAWS])


def measured(law: MeasuredLaw, driver: Driver, seed: int = 0) -> Finding:
    return measure_law(driver, law, Bench(driver, seed), kind="causal_lm" if driver.causal else "encoder")


@each_law
@pytest.mark.parametrize("seed", [0, 1])
def test_honest_example_is_held_and_its_control_is_seen(law: MeasuredLaw, seed: int) -> None:
    found = measured(law, law.honest(), seed)
    assert found.verdict == "held", found.reason
    assert found.measurement is not None
    assert found.measurement.signal is not None
    assert found.measurement.signal > 1e-2
    assert all(trial.float32 is not None for trial in found.measurement.trials)
    assert found.fix == ""


@each_law
@pytest.mark.parametrize("seed", [0, 1])
def test_planted_fault_is_refuted_with_a_fix(law: MeasuredLaw, seed: int) -> None:
    found = measured(law, law.faulty(), seed)
    assert found.verdict == "refuted", found.reason
    assert found.fix.endswith(".")
    assert found.witness is not None
    differing = found.witness.difference > 1e-4 and found.witness.expected != found.witness.found
    must = next(
        trial.must_differ for trial in law.trials(Bench(law.faulty(), seed)) if trial.what == found.witness.change
    )
    assert differing is not must


@each_law
def test_law_is_coded_documented_and_found(law: MeasuredLaw) -> None:
    assert re.fullmatch(r"OP[345]\d\d|OP205", law.code)
    assert law.statement.endswith(".")
    assert find(law.name) is find(law.code) is find(law.code.lower()) is law


def test_codes_and_names_are_unique() -> None:
    every = [*laws(), *LAWS]
    assert len({law.code for law in every}) == len({law.name for law in every}) == len(every)


def test_unknown_law_is_refused_with_a_hint() -> None:
    with pytest.raises(UsageError, match="expected a law, one of .*; did you mean 'cache_chunks'\\?"):
        find("cache_chunk")
