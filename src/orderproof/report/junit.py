"""The report as JUnit XML: a test case for each finding, for every place that shows test results.

    met, and decided                       passed
    not met, and decided                   failure   (exit code 1)
    not met, because undecided             error     (exit code 3)
    undecided, and nothing was expected    skipped, with the reason
    not applicable                         skipped, with the reason

There is no standard, only what readers share: testsuites > testsuite > testcase, and in a case its properties,
one of skipped, error and failure, and system-out. Properties of a case are what pytest itself writes there too.
No time of day and no host name are written: the same report gives the same file.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

from orderproof.record import Finding, Report
from orderproof.report import destination, words
from orderproof.report.evidence import aligned, entry_line, evidence, headline


def write_junit(report: Report, target: str | Path) -> None:
    """Write the report to a file in one step, or to standard output when the target is ``-``."""
    destination.write(render_junit(report), target)


def render_junit(report: Report) -> str:
    """The document as text; its declaration says UTF-8."""
    outcomes = [_outcome(f) for f in report.findings]
    kinds = [outcome[0] for outcome in outcomes if outcome]
    counts = {"tests": len(outcomes), "failures": kinds.count("failure"), "errors": kinds.count("error")}
    totals = {**{name: str(count) for name, count in counts.items()}, "time": _seconds(report.seconds)}
    subject = words.visible(report.subject.name)

    root = ET.Element("testsuites", {"name": "orderproof", **totals})
    suite = ET.SubElement(root, "testsuite", {"name": subject, **totals, "skipped": str(kinds.count("skipped"))})
    _properties(suite, _about(report))
    for finding, outcome in zip(report.findings, outcomes, strict=True):
        _case(suite, subject, finding, outcome)
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _case(suite: ET.Element, subject: str, finding: Finding, outcome: tuple[str, str] | None) -> None:
    name = words.visible(words.name(finding) + (f" [{finding.output}]" if finding.output else ""))
    case = ET.SubElement(suite, "testcase", {"classname": subject, "name": name, "time": _seconds(finding.seconds)})
    _properties(case, _found(finding))
    lines = "\n".join(aligned(evidence(finding), indent=0))
    if outcome is not None:
        kind, message = outcome
        told = ET.SubElement(case, kind, {"message": words.visible(message)})
        if kind != "skipped":
            told.set("type", finding.verdict)
            told.text = f"{headline(finding)}\n{lines}"
    ET.SubElement(case, "system-out").text = lines


def _outcome(finding: Finding) -> tuple[str, str] | None:
    """The element that says how a case ended, with its message; None where it passed."""
    if not finding.met:
        kind = "error" if finding.verdict == "undecided" else "failure"
        return kind, f"{headline(finding)}: {words.in_short(finding)}".removesuffix(": ")
    if finding.verdict == "not_applicable":
        return "skipped", f"not applicable: {finding.reason}".removesuffix(": ")
    if finding.verdict == "undecided":
        return "skipped", f"undecided, and nothing is expected: {finding.reason}".removesuffix(": ")
    return None


def _about(report: Report) -> list[tuple[str, str]]:
    rows = [("subject", words.subject_line(report.subject)), ("exit_code", str(report.exit_code))]
    rows += [("note", note) for note in report.notes]
    return rows + [(f"version.{name}", version) for name, version in report.versions.items()]


def _found(finding: Finding) -> list[tuple[str, str]]:
    deviation = finding.deviation
    rows = [("verdict", finding.verdict), ("expected", finding.expected), ("length", str(finding.scope.length))]
    sizes = (("float32", deviation.float32), ("float64", deviation.float64))
    rows += [(f"deviation.{dtype}", repr(value)) for dtype, value in sizes if value is not None]
    if finding.measurement is not None:
        rows.append(("tolerance", repr(finding.measurement.tolerance)))
        rows += [("control", repr(finding.measurement.signal))] if finding.measurement.signal is not None else []
    rows += [("fix", finding.fix)] if finding.fix else []
    rows.append(("entries", str(len(finding.entries))))
    return rows + [("entry", entry_line(entry)) for entry in finding.entries]


def _properties(parent: ET.Element, rows: list[tuple[str, str]]) -> None:
    group = ET.SubElement(parent, "properties")
    for name, value in rows:
        ET.SubElement(group, "property", {"name": words.visible(name), "value": words.visible(value)})


def _seconds(value: float) -> str:
    return f"{value:.3f}"
