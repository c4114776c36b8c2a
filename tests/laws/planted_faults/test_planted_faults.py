"""Each planted fault is refuted by its law, and by other checks only as explained; the page has all verdicts.

A new check may refute faults that were planted for others: explain each in `expected_overlaps`. A law that is a
property needs no explanation.
"""

from __future__ import annotations

from functools import cache

import pytest

from orderproof.laws import find_law, measured_laws
from tests.laws.faults.all_faults import planted_faults
from tests.laws.faults.expected_overlaps import BY_DESIGN, EXPLAINED
from tests.laws.faults.fault import Planted
from tests.laws.faults.recurrence_faults import Recurrent
from tests.laws.planted_faults import __main__ as script

FAULTS = planted_faults()
LAWS = [law.name for law in measured_laws()]
CHECKS = {law.name for law in measured_laws() if law.kind == "check"}


@cache
def on_the_page() -> dict[str, dict[str, str]]:
    """The marks of the page, by fault or by "model of" a law, and by law."""
    marks: dict[str, dict[str, str]] = {}
    laws: list[str] = []
    conforming = False
    text = script.PAGE.read_text(encoding="utf-8")
    for line in text.partition("## How it is known")[2].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        conforming = conforming or line.startswith("| model of ")
        if line.startswith(("| | mistake | ", "| model of ")):
            laws = [cell for cell in cells if cell not in ("", "mistake", "model of")]
        elif line.startswith("| ") and not line.startswith("| ---"):
            name = f"model of {cells[0]}" if conforming else cells[0]
            marks[name] = dict(zip(laws, (c.strip("*") for c in cells[-len(laws) :]), strict=True))
    return marks


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
def test_fault_is_refuted_by_its_law(fault: Planted) -> None:
    for name in fault.laws:
        assert script.verdict(find_law(name), fault.make()) == "refuted"  # type: ignore[arg-type]


def test_the_recurrence_without_a_fault_is_refuted_by_no_law() -> None:
    found = script.law_verdicts(Recurrent)
    assert "refuted" not in found.values()
    assert {"cached_decoding", "chunked_prefill", "batch_composition"} <= {
        name for name, verdict in found.items() if verdict == "held"
    }


def test_every_law_has_its_fault_and_names_are_unique() -> None:
    assert {law for fault in FAULTS for law in fault.laws} == set(LAWS)
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
    assert all(fault.what.endswith(".") for fault in FAULTS)


def test_page_has_every_law_every_fault_and_every_conforming_model() -> None:
    stale = "run python -m tests.laws.planted_faults.__main__"
    assert set(on_the_page()) == {fault.name for fault in FAULTS} | {f"model of {law}" for law in LAWS}, stale
    assert all(list(marks) == LAWS for marks in on_the_page().values()), stale


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
def test_fault_is_refuted_by_other_checks_only_as_explained(fault: Planted) -> None:
    refuted = {law for law, mark in on_the_page()[fault.name].items() if mark == "R"}
    others, explained = refuted - set(fault.laws), set(EXPLAINED.get(fault.name, {}))
    assert others & CHECKS <= explained <= others
    assert refuted >= set(fault.laws)


def test_conforming_models_are_refuted_by_checks_only_by_design() -> None:
    refuted = {(law, by) for law in LAWS for by, mark in on_the_page()[f"model of {law}"].items() if mark == "R"}
    assert {(law, by) for law, by in refuted if by in CHECKS} <= set(BY_DESIGN) <= refuted


def test_every_explanation_is_of_a_planted_fault() -> None:
    assert set(EXPLAINED) <= {fault.name for fault in FAULTS}


@pytest.mark.slow
def test_page_is_current() -> None:
    assert script.main(["--check"]) == 0
