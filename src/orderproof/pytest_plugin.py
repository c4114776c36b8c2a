"""Laws of order as assertions in anyone's pytest suite.

    from orderproof.pytest_plugin import assert_law

    def test_no_token_sees_a_later_one():
        assert_law(Decoder(), "causal", inputs=torch.randn(2, 7, 16))

The fixture `orderproof` has the same function, for suites that import nothing. `pytest --orderproof-report FILE`
writes everything found in the session to one report (.json or .html) when it ends.

pytest imports this module in every session of every project it is installed for: neither torch nor pydantic is
imported before a law is asserted.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

    from torch import nn

    from orderproof.auditing.attempt import Weights
    from orderproof.record import Expectation, Finding, Report
    from orderproof.subjects import Subject
    from orderproof.subjects.modules import Inputs

OPTION = "--orderproof-report"
SUFFIXES = (".html", ".json")
ATTRIBUTE = "orderproof"  # of pytest's report of a test: what was found in that test
Plain = dict[str, Any]  # a report as plain data: the one form that travels between processes with NaN and infinity
_KEPT = pytest.StashKey[list[Plain]]()
_sessions: list[list[Plain]] = []  # what the running test found, in each session of this process; the innermost last


def assert_law(
    model: nn.Module | Subject | str,
    law: str,
    inputs: Inputs | None = None,
    *,
    length: int | None = None,
    expect: Expectation = "holds",
    weights: Weights = "all",
    token_axis: int | None = None,
    seed: int = 0,
) -> tuple[Finding, ...]:
    """Assert that a model obeys a law (`expect="fails"`: that it does not), at every output the law speaks of.

    The findings are returned. Raises AssertionError where one is not as expected, where one is undecided, and
    where the law applies to no output; UsageError and SubjectError where the call itself is wrong.
    """
    __tracebackhide__ = True
    from orderproof.auditing.api import as_subject, examination, one_law
    from orderproof.errors import UsageError
    from orderproof.laws.measured import find
    from orderproof.record import Expectation

    if expect not in get_args(Expectation):
        raise UsageError(f"expected expect to be one of {', '.join(get_args(Expectation))}; got {expect!r}")
    with _quiet(), _modes_kept(model):
        subject = as_subject(model, inputs=inputs, token_axis=token_axis)
        exam = examination(subject, length=length, seed=seed)
        report = one_law(exam, law, expect={find(law).name: expect}, weights=weights)
    keep(report)
    complaint = _complaint(report)
    if complaint:
        raise AssertionError(complaint)
    return report.findings


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence torch while it records a graph: made errors, its warnings would decide the verdict.

    pytest listens to torch's trace too, thousands of empty lines; who sets TORCH_TRACE gets that as ever.
    """
    trace = logging.getLogger("torch.__trace")
    listening = [handler for handler in trace.handlers if type(handler).__module__.startswith("_pytest.")]
    for handler in listening:
        trace.removeHandler(handler)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for handler in listening:
            trace.addHandler(handler)


@contextmanager
def _modes_kept(model: object) -> Iterator[None]:
    """An audit switches a module to eval mode; give it back as it came."""
    from torch import nn

    modes = [(part, part.training) for part in model.modules()] if isinstance(model, nn.Module) else []
    try:
        yield
    finally:
        for part, training in modes:
            part.training = training


def _complaint(report: Report) -> str:
    """What is wrong with the findings of one law, over several lines; empty where nothing is."""
    from orderproof.report import words
    from orderproof.report.evidence import aligned, evidence, headline

    found = report.findings
    name = words.visible(report.subject.name)
    unmet = [f for f in found if not f.met]
    if not unmet and found[0].expected != "any" and all(f.verdict == "not_applicable" for f in found):
        reasons = "; ".join(f"{f.output}: {f.reason}" for f in found)
        return words.visible(f"{words.name(found[0])} says nothing of {name}, so nothing was asserted: {reasons}")
    lines = []
    for finding in unmet:
        lines += [f"{headline(finding)}: {name}", *aligned(evidence(finding))]
    return "\n".join(lines)


class Orderproof:
    """What the fixture `orderproof` gives."""

    assert_law = staticmethod(assert_law)


@pytest.fixture(scope="session", name="orderproof")
def _orderproof() -> Orderproof:
    """Laws of order as assertions: orderproof.assert_law(model, "causal", inputs=...)."""
    return Orderproof()


# ---------------------------------------------------------------- the report of a session
#
# A test's findings travel on pytest's own report of that test, which pytest-xdist sends to the controller as
# soon as the test ends: a worker that dies takes no finished test's findings with it.


def keep(report: Report) -> None:
    """Keep a report for the file of the running session, if it writes one."""
    if _sessions:
        _sessions[-1].append(report.model_dump(by_alias=True))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that names the report."""
    parser.getgroup("orderproof", "laws of order").addoption(
        OPTION, metavar="FILE", help="write all findings of the session to this file, .json or .html"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Start to keep findings, where a report is asked for."""
    name: str | None = config.getoption(OPTION)
    if name is None or config.option.collectonly:
        return
    target = Path(config.invocation_params.dir, name)
    if target.suffix.lower() not in SUFFIXES:
        raise pytest.UsageError(f"{OPTION}: expected a name that ends in {' or '.join(SUFFIXES)}; got {name!r}")
    if not target.parent.is_dir():
        raise pytest.UsageError(f"{OPTION}: there is no folder {str(target.parent)!r} to write {target.name!r} into")
    kept: list[Plain] = []
    config.stash[_KEPT] = kept
    _sessions.append(kept)
    if not hasattr(config, "workerinput"):  # a worker of pytest-xdist sends, the controller collects
        config.pluginmanager.register(_Collector(target, config.rootpath.name), "orderproof-collector")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop keeping."""
    kept = config.stash.get(_KEPT, None)
    _sessions[:] = [other for other in _sessions if other is not kept]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Attach what was found to pytest's report of the test."""
    report = yield
    kept = item.config.stash.get(_KEPT, None)
    if kept:
        report.__dict__[ATTRIBUTE] = list(kept)
        kept.clear()
    return report


class _Collector:
    """The findings of a whole session, and the file they are written to."""

    def __init__(self, target: Path, project: str) -> None:
        self.target = target
        self.project = project
        self.found: list[tuple[str, Plain]] = []  # a test's name, and a report made in it
        self.told = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect what came with a test's report, from here or from a worker."""
        self.found += [(report.nodeid, data) for data in getattr(report, ATTRIBUTE, ())]

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the file, also when the session was interrupted."""
        from orderproof.errors import OrderproofError
        from orderproof.record import Report
        from orderproof.report import write_html, write_json

        pairs = [(test, Report.model_validate(data)) for test, data in sorted(self.found, key=lambda pair: pair[0])]
        write = write_html if self.target.suffix.lower() == ".html" else write_json
        try:
            write(combined(pairs, self.project), self.target)
        except OrderproofError as error:
            self.told = f"orderproof: {error}"
            session.exitstatus = session.exitstatus or pytest.ExitCode.USAGE_ERROR
        except Exception as error:  # noqa: BLE001 - what pytest has to say of the tests must be said all the same
            self.told = f"orderproof: internal error, please report it: {type(error).__name__}: {error}"
            session.exitstatus = session.exitstatus or pytest.ExitCode.INTERNAL_ERROR
        else:
            findings = sum(len(report.findings) for _, report in pairs)
            self.told = f"orderproof: {findings} finding{'s' * (findings != 1)} written to {self.target}"

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say where the report is, or why there is none."""
        terminalreporter.write_line(self.told)


def combined(found: list[tuple[str, Report]], project: str) -> Report:
    """One report of the reports of several tests: a finding's output names the test and the subject before it."""
    from orderproof import __version__
    from orderproof.record import Report, SubjectRecord

    findings, lemmas, notes, versions = [], {}, [], {}
    for test, report in found:
        place = f"{test}: {report.subject.name}"
        findings += [f.model_copy(update={"output": f"{place}, {f.output}"}) for f in report.findings]
        notes += [f"{place}: {note}" for note in report.notes]
        lemmas.update(report.lemmas)
        versions.update(report.versions)
    subjects = {report.subject for _, report in found}
    tests = len({test for test, _ in found})
    return Report(
        orderproof=__version__,
        subject=SubjectRecord(
            name=project,
            kind="test session",
            parameters=sum(subject.parameters for subject in subjects),
            detail=f"tests that asserted laws: {tests}; subjects: {len(subjects)}",
        ),
        findings=tuple(findings),
        lemmas=lemmas,
        notes=tuple(dict.fromkeys(notes)),
        versions=versions,
        seconds=round(sum(report.seconds for _, report in found), 3),
    )
