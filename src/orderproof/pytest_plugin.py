"""Laws of order as assertions in a pytest suite.

    from orderproof.pytest_plugin import assert_conforms, assert_law

    def test_no_token_sees_a_later_one():
        assert_law(Decoder(), "causal", inputs=torch.randn(2, 7, 16))

    def test_it_is_a_decoder():
        assert_conforms(Decoder(), torch.randn(2, 7, 16), kind="decoder")

The fixture `orderproof` has the same functions and needs no import. `pytest --orderproof-report FILE` writes all
findings of the session to one report (.json or .html) at its end.

pytest imports this module in every session of every project of the environment, so torch and pydantic are imported
only when a law is asserted.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from orderproof.assertions import assert_conforms, assert_law, on_report

if TYPE_CHECKING:
    from collections.abc import Generator

    from orderproof.records.audit import Report

__all__ = ["OrderproofFixture", "assert_conforms", "assert_law"]
OPTION = "--orderproof-report"
SUFFIXES = (".html", ".json")
REPORT_ATTRIBUTE = "orderproof"  # attribute of pytest's report of a test: the reports of that test
ReportData = dict[str, Any]  # a report as plain data, which NaN and infinity survive between processes
_REPORTS_KEY = pytest.StashKey[list[ReportData]]()
_sessions: list[list[ReportData]] = []  # reports of the running test, for each session of this process


class OrderproofFixture:
    """The value of the fixture `orderproof`."""

    assert_law = staticmethod(assert_law)
    assert_conforms = staticmethod(assert_conforms)


@pytest.fixture(scope="session", name="orderproof")
def _orderproof() -> OrderproofFixture:
    """Laws of order as assertions: orderproof.assert_law(model, "causal", inputs=...)."""
    return OrderproofFixture()


# ---------------------------------------------------------------- the report of a session
#
# The findings of a test are attached to pytest's report of that test, which pytest-xdist sends to the controller when
# the test ends: a worker that dies loses no findings of finished tests.


def record_report(report: Report) -> None:
    """Keep a report for the file of the running session, where it writes one."""
    if _sessions:
        _sessions[-1].append(report.model_dump(by_alias=True))


on_report(record_report)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option for the report of the session."""
    parser.getgroup("orderproof", "laws of order").addoption(
        OPTION, metavar="FILE", help="write all findings of the session to this file, .json or .html"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Start keeping findings, where the session writes a report."""
    name: str | None = config.getoption(OPTION)
    if name is None or config.option.collectonly:
        return
    target = Path(config.invocation_params.dir, name)
    if target.suffix.lower() not in SUFFIXES:
        raise pytest.UsageError(f"{OPTION}: expected a name that ends in {' or '.join(SUFFIXES)}; got {name!r}")
    if not target.parent.is_dir():
        raise pytest.UsageError(
            f"{OPTION}: expected a file in an existing folder; {str(target.parent)!r} does not exist"
        )
    kept: list[ReportData] = []
    config.stash[_REPORTS_KEY] = kept
    _sessions.append(kept)
    if not hasattr(config, "workerinput"):  # a worker of pytest-xdist sends, the controller collects
        config.pluginmanager.register(_ReportCollector(target, config.rootpath.name), "orderproof-collector")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop keeping findings."""
    kept = config.stash.get(_REPORTS_KEY, None)
    _sessions[:] = [other for other in _sessions if other is not kept]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Attach the findings to pytest's report of the test."""
    report = yield
    kept = item.config.stash.get(_REPORTS_KEY, None)
    if kept:
        report.__dict__[REPORT_ATTRIBUTE] = list(kept)
        kept.clear()
    return report


class _ReportCollector:
    """The findings of a session and the file for them."""

    def __init__(self, target: Path, project: str) -> None:
        self.target = target
        self.project = project
        self.reports: list[tuple[str, ReportData]] = []  # name of a test, and a report from it
        self.summary_line = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect the findings attached to the report of a test, from this process or a worker."""
        self.reports += [(report.nodeid, data) for data in getattr(report, REPORT_ATTRIBUTE, ())]

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the file, also when the session was interrupted."""
        from orderproof.errors import OrderproofError, first_line
        from orderproof.records.audit import Report
        from orderproof.report import write_html, write_json
        from orderproof.report.merged_report import merge_reports

        pairs = [(test, Report.model_validate(data)) for test, data in sorted(self.reports, key=lambda pair: pair[0])]
        write = write_html if self.target.suffix.lower() == ".html" else write_json
        try:
            tests = len({test for test, _ in pairs})
            made_of = f"tests that asserted laws: {tests}"
            write(merge_reports(pairs, self.project, "test session", made_of), self.target)
        except OrderproofError as error:
            self.summary_line = f"orderproof: {error}"
            session.exitstatus = session.exitstatus or pytest.ExitCode.USAGE_ERROR
        except Exception as error:  # noqa: BLE001 - the results of the tests must be printed anyway
            self.summary_line = f"orderproof: internal error, please report it: {first_line(error)}"
            session.exitstatus = session.exitstatus or pytest.ExitCode.INTERNAL_ERROR
        else:
            findings = sum(len(report.findings) for _, report in pairs)
            self.summary_line = f"orderproof: {findings} finding{'s' * (findings != 1)} written to {self.target}"

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the place of the report, or why there is none."""
        terminalreporter.write_line(self.summary_line)
