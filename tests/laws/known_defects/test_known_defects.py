"""Reported defects: the page has each, reconstructions are refuted, and installed parts are as the page says."""

from __future__ import annotations

import re

import pytest

from tests.laws.faults.all_faults import planted_faults
from tests.laws.known_defects import __main__ as script
from tests.laws.known_defects.cases import LIBRARY_CASES, NOT_RUN, LibraryCase

PARTS = [row for row in LIBRARY_CASES if not isinstance(row.subject, str)]
ARCHITECTURES = [row for row in LIBRARY_CASES if isinstance(row.subject, str)]


def fate(row: LibraryCase) -> str:
    """What the page says of a row."""
    subject = row.subject if isinstance(row.subject, str) else row.part_name
    start = f"| {row.report} | {row.symptom} | {subject} | {row.law} | "
    (line,) = [line for line in script.PAGE.read_text(encoding="utf-8").splitlines() if line.startswith(start)]
    return line.removeprefix(start).partition(":")[0].strip(" |")


def name(row: LibraryCase) -> str:
    return f"{row.report}-{row.law}-{row.part_name or row.subject}"


@pytest.mark.parametrize("row", PARTS, ids=map(name, PARTS))
def test_part_is_as_the_page_says(row: LibraryCase) -> None:
    assert script.status_text(script.finding(row)).partition(":")[0] == fate(row)


@pytest.mark.slow
@pytest.mark.parametrize("row", ARCHITECTURES, ids=map(name, ARCHITECTURES))
def test_architecture_is_as_the_page_says(row: LibraryCase) -> None:
    assert script.status_text(script.finding(row)).partition(":")[0] == fate(row)


def test_every_row_of_the_installed_is_reported() -> None:
    assert {fate(row) for row in LIBRARY_CASES} == {"fixed", "still there"}


def test_reconstructions_are_refuted_each_with_its_report() -> None:
    page = script.PAGE.read_text(encoding="utf-8")
    for fault in planted_faults():
        for report in fault.reports:
            (line,) = re.findall(rf"^\| {re.escape(report)} \| {fault.name} \| .*$", page, re.MULTILINE)
            assert f"| {fault.laws[0]} | refuted: " in line  # test_planted_faults asks the laws


def test_packed_documents_that_run_together_are_refuted() -> None:
    assert [verdict for line, law, verdict in script.packing_rows()] == ["refuted"] * len(script.PACKING_REPORTS)


def test_page_says_what_is_not_run_and_why() -> None:
    page = script.PAGE.read_text(encoding="utf-8")
    assert all(f"| {report} | {why} |" in page for report, why in NOT_RUN)
