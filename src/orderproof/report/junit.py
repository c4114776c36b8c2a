"""The report as JUnit XML, one test case for each finding.

    check: pass                     passed
    check: fail                     failure   (exit code 1)
    check: undecided                error     (exit code 3)
    property: yes or no             passed; the answer is the property `outcome` of the test case
    property: undecided             skipped, with the reason
    not applicable                  skipped, with the reason; if it is expected and --strict is given an error

JUnit XML has no standard. The file uses the elements that common readers share: testsuites > testsuite > testcase, and
in a test case its properties, one of skipped, error and failure, and system-out; pytest writes the same. No time of day
and no host name are written, so that the same report gives the same file.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

from orderproof.records.audit import Finding, Report
from orderproof.report import file_output, phrases, summary
from orderproof.report.evidence import align_rows, entry_line, evidence_rows, finding_headline


def write_junit(report: Report, target: str | Path) -> None:
    """Write the report to a file in one step, or to standard output when the target is ``-``."""
    file_output.write_file(render_junit(report), target)


def render_junit(report: Report) -> str:
    """The document as text; its declaration says UTF-8."""
    outcomes = [_junit_element(f, unmet=f in report.unmet) for f in report.findings]
    kinds = [outcome[0] for outcome in outcomes if outcome]
    counts = {"tests": len(outcomes), "failures": kinds.count("failure"), "errors": kinds.count("error")}
    totals = {**{name: str(count) for name, count in counts.items()}, "time": _seconds(report.seconds)}
    subject = phrases.escape_control_characters(report.subject.name)

    root = ET.Element("testsuites", {"name": "orderproof", **totals})
    suite = ET.SubElement(root, "testsuite", {"name": subject, **totals, "skipped": str(kinds.count("skipped"))})
    _properties(suite, _suite_properties(report))
    for finding, outcome in zip(report.findings, outcomes, strict=True):
        _case(suite, subject, finding, outcome)
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _case(suite: ET.Element, subject: str, finding: Finding, outcome: tuple[str, str] | None) -> None:
    name = phrases.escape_control_characters(
        phrases.law_title(finding) + (f" [{finding.output}]" if finding.output and finding.port is None else "")
    )
    case = ET.SubElement(suite, "testcase", {"classname": subject, "name": name, "time": _seconds(finding.seconds)})
    _properties(case, _finding_properties(finding))
    lines = "\n".join(align_rows(evidence_rows(finding), indent=0))
    if outcome is not None:
        kind, message = outcome
        element = ET.SubElement(case, kind, {"message": phrases.escape_control_characters(message)})
        if kind != "skipped":
            element.set("type", finding.verdict)
            element.text = f"{finding_headline(finding)}\n{lines}"
    ET.SubElement(case, "system-out").text = lines


def _junit_element(finding: Finding, *, unmet: bool) -> tuple[str, str] | None:
    """The element for the end of a test case with its message; None where it passed."""
    if unmet:
        kind = "error" if finding.verdict in ("undecided", "not_applicable") else "failure"
        return kind, f"{finding_headline(finding)}: {phrases.summary_clause(finding)}".removesuffix(": ")
    if finding.verdict == "not_applicable":
        return "skipped", f"not applicable: {finding.reason}".removesuffix(": ")
    if finding.verdict == "undecided":
        return "skipped", f"undecided, and no result is expected: {finding.reason}".removesuffix(": ")
    return None


def _suite_properties(report: Report) -> list[tuple[str, str]]:
    rows = [("summary", summary.summary_sentence(report)), ("subject", phrases.subject_line(report.subject))]
    rows.append(("exit_code", str(report.exit_code)))
    rows += [("not_checked", f"{', '.join(laws)}: {why}") for why, laws in phrases.not_checked(report).items()]
    rows += [("note", note) for note in report.notes]
    return rows + [(f"version.{name}", version) for name, version in report.versions.items()]


def _finding_properties(finding: Finding) -> list[tuple[str, str]]:
    deviation = finding.deviation
    rows: list[tuple[str, str]] = [("kind", finding.kind), ("outcome", finding.outcome)]
    rows += [("trait", finding.trait)] if finding.trait else []
    rows += [("verdict", finding.verdict), ("expected", finding.expected), ("length", str(finding.scope.length))]
    sizes = (("float32", deviation.float32), ("float64", deviation.float64))
    rows += [(f"deviation.{dtype}", repr(value)) for dtype, value in sizes if value is not None]
    if finding.measurement is not None:
        rows.append(("tolerance", repr(finding.measurement.tolerance)))
        rows += (
            [("control", repr(finding.measurement.control_difference))]
            if finding.measurement.control_difference is not None
            else []
        )
    rows += [("remedy", finding.remedy)] if finding.remedy else []
    rows.append(("entries", str(len(finding.entries))))
    return rows + [("entry", entry_line(entry)) for entry in finding.entries]


def _properties(parent: ET.Element, rows: list[tuple[str, str]]) -> None:
    group = ET.SubElement(parent, "properties")
    for name, value in rows:
        ET.SubElement(
            group,
            "property",
            {"name": phrases.escape_control_characters(name), "value": phrases.escape_control_characters(value)},
        )


def _seconds(value: float) -> str:
    return f"{value:.3f}"
