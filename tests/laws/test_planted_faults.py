"""Each planted fault is caught by its law, and by no law that should not; the page of them says what comes."""

from __future__ import annotations

from functools import cache

import pytest
from scripts import planted_faults as script

from orderproof.laws.measured import find, measured_laws
from tests.laws.more_faults.every import planted_faults
from tests.laws.more_faults.explained import BY_DESIGN, EXPLAINED
from tests.laws.more_faults.planted import Planted
from tests.laws.more_faults.recurrent import Recurrent

FAULTS = planted_faults()
LAWS = [law.name for law in measured_laws()]


@cache
def on_the_page() -> dict[str, dict[str, str]]:
    """The marks of the page, by fault, or by "example of" a law, and by law."""
    found, honest = {}, False
    for line in script.PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        honest = honest or line.startswith("| example of ")
        if line.startswith("| ") and not line.startswith(("| ---", "| |", "| example of ")):
            name = f"example of {cells[0]}" if honest else cells[0]
            found[name] = dict(zip(LAWS, (c.strip("*") for c in cells[-len(LAWS) :]), strict=True))
    return found


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
def test_fault_is_refuted_by_its_law(fault: Planted) -> None:
    for name in fault.laws:
        assert script.verdict(find(name), fault.make()) == "refuted"  # type: ignore[arg-type]


def test_the_recurrence_that_faults_are_planted_in_is_refuted_nowhere() -> None:
    found = script.verdicts(Recurrent)
    assert "refuted" not in found.values()
    assert {"cache", "cache_chunks", "batch_mates"} <= {name for name, verdict in found.items() if verdict == "held"}


def test_every_law_has_its_fault_and_names_are_unique() -> None:
    assert {law for fault in FAULTS for law in fault.laws} == set(LAWS)
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
    assert all(fault.what.endswith(".") for fault in FAULTS)


def test_page_has_every_fault_and_every_honest_example() -> None:
    assert set(on_the_page()) == {fault.name for fault in FAULTS} | {f"example of {law}" for law in LAWS}


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
def test_fault_is_refuted_elsewhere_only_as_explained(fault: Planted) -> None:
    refuted = {law for law, mark in on_the_page()[fault.name].items() if mark == "R"}
    assert refuted - set(fault.laws) == set(EXPLAINED.get(fault.name, {}))
    assert refuted >= set(fault.laws)


def test_honest_examples_are_refuted_only_by_design() -> None:
    refuted = {(law, by) for law in LAWS for by, mark in on_the_page()[f"example of {law}"].items() if mark == "R"}
    assert refuted == set(BY_DESIGN)


def test_only_refutations_that_are_there_are_explained() -> None:
    assert set(EXPLAINED) <= {fault.name for fault in FAULTS}


@pytest.mark.slow
def test_page_is_what_the_laws_say() -> None:
    assert script.main(["--check"]) == 0
