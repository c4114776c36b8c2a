"""The report as SARIF 2.1.0, for tools that show findings next to the source: one result for each unmet check.

A failed check is an error. An undecided check is a warning, and with --strict also an expected law that does not apply.
All have kind "fail", since every other kind must have level "none". Passed checks and properties give no result, so
that a healthy model raises no alert. The entries of a finding are its related locations.

- Every result has a physical location: code scanning rejects a file with one result that has none. It is the
  line that the text report names (`place.finding_place`), or the subject by its name.
- Only the name of a file is known (modeling_bert.py), so a location is that name, relative to %SRCROOT%; no path of
  this machine is written.
- The fingerprint of a result identifies its subject, law and place: it contains no line number, time, measured number
  or length.

Source: OASIS 2020, Static Analysis Results Interchange Format (SARIF) Version 2.1.0, sections 3.11, 3.14, 3.27.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from orderproof.records.audit import Entry, Finding, Report
from orderproof.report import file_output, phrases, summary
from orderproof.report.evidence import align_rows, entry_line, evidence_rows, finding_headline
from orderproof.report.place import file_name, finding_place, relative_path

SARIF_SCHEMA_URL = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
SOURCE_ROOT_ID = "%SRCROOT%"


def write_sarif(report: Report, target: str | Path) -> None:
    """Write the report to a file in one step, or to standard output when the target is ``-``."""
    file_output.write_file(render_sarif(report), target)


def render_sarif(report: Report) -> str:
    """The log as text: one run."""
    rules = {finding.code: _rule(finding) for finding in reversed(report.findings)}
    rule_indices = {code: index for index, code in enumerate(sorted(rules))}
    subject = phrases.escape_control_characters(report.subject.name)
    run = {
        "tool": {
            "driver": {
                "name": "orderproof",
                "version": phrases.escape_control_characters(report.orderproof_version),
                "semanticVersion": phrases.escape_control_characters(report.orderproof_version),
                "rules": [rules[code] for code in rule_indices],
            }
        },
        # The trailing slash makes it a category: alerts of several subjects stay separate.
        "automationDetails": {"id": f"orderproof/{subject}/"},
        "invocations": [
            {
                "executionSuccessful": True,
                "exitCode": report.exit_code,
                "exitCodeDescription": phrases.escape_control_characters(summary.exit_code_text(report)),
            }
        ],
        "results": [_result(subject, f, rule_indices[f.code]) for f in report.unmet],
        "properties": {
            "subject": phrases.escape_control_characters(phrases.subject_line(report.subject)),
            "notChecked": _escape_all(f"{', '.join(laws)}: {why}" for why, laws in phrases.not_checked(report).items()),
            "notes": _escape_all(report.notes),
        },
    }
    log = {"$schema": SARIF_SCHEMA_URL, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2, allow_nan=False) + "\n"


_VERDICTS = (
    "proved: it follows from the operators of the recorded graph.\n"
    "held: in every comparison made the model gives the same values in two ways, and a control changes them.\n"
    "refuted: two runs, or one comparison, violate it beyond rounding.\n"
    "undecided: neither; the reason is given.\n"
)


def _rule(finding: Finding) -> dict[str, Any]:
    name = phrases.escape_control_characters(finding.law)
    statement = phrases.escape_control_characters(finding.statement or finding.law)
    text = f"{statement}\n\n{_VERDICTS}\n"
    text += f"To do: {phrases.escape_control_characters(finding.remedy)}\n\n" if finding.remedy else ""
    text += f"`orderproof prove SUBJECT --law {name}` shows the evidence; `orderproof list laws` lists all laws."
    return {
        "id": phrases.escape_control_characters(finding.code),
        "name": name,
        "shortDescription": {"text": _plain(f"{name}: {statement}")},
        "fullDescription": {"text": _plain(statement)},
        "help": {"text": _plain(text)},
        "defaultConfiguration": {"level": "error"},
    }


def _result(subject: str, finding: Finding, rule: int) -> dict[str, Any]:
    place = finding_place(finding)
    entry, module, source, text = place.entry, place.module, place.source, place.text
    message = f"{finding_headline(finding)} in {subject}: {phrases.summary_clause(finding)}".removesuffix(": ")
    lines = "\n".join([phrases.escape_control_characters(message), *align_rows(evidence_rows(finding), indent=0)])
    result: dict[str, Any] = {
        "ruleId": phrases.escape_control_characters(finding.code),
        "ruleIndex": rule,
        "kind": "fail",
        "level": "warning" if finding.verdict in ("undecided", "not_applicable") else "error",
        "message": {"text": _plain(lines)},
        "locations": [
            {
                "physicalLocation": _physical(source, text) or {"artifactLocation": _artifact(subject)},
                "logicalLocations": [_logical(module or subject)],
            }
        ],
        "partialFingerprints": _fingerprints(subject, finding, module, source, entry),
        "properties": _properties(finding),
    }
    related = [(e, there) for e in finding.entries if (there := _physical(e.source, e.source_line))]
    if related:
        result["relatedLocations"] = [
            {
                "id": number,
                "physicalLocation": there,
                "logicalLocations": [_logical(e.module or subject)],
                "message": {"text": _plain(phrases.escape_control_characters(entry_line(e)))},
            }
            for number, (e, there) in enumerate(related, 1)
        ]
    return result


def _physical(source: str, text: str) -> dict[str, Any]:
    """A physical location; empty where the file is not known."""
    if not file_name(source):
        return {}
    place: dict[str, Any] = {"artifactLocation": _artifact(relative_path(source))}
    line = source.rpartition(":")[2]
    if line.isdecimal() and int(line) > 0:
        place["region"] = {"startLine": int(line)}
        if text.strip():
            place["region"]["snippet"] = {"text": phrases.escape_control_characters(text.strip())}
    return place


def _artifact(name: str) -> dict[str, str]:
    """A relative reference; an absolute path is reduced to its last part."""
    if name.startswith(("/", "~", "\\")) or name[1:2] == ":":
        name = name.replace("\\", "/").rstrip("/").rpartition("/")[2]
    return {"uri": quote(phrases.escape_control_characters(name), safe="/") or "subject", "uriBaseId": SOURCE_ROOT_ID}


def _logical(path: str) -> dict[str, str]:
    path = phrases.escape_control_characters(path)
    return {"name": path.rpartition(".")[2] or path, "fullyQualifiedName": path, "kind": "module"}


def _fingerprints(subject: str, finding: Finding, module: str, source: str, entry: Entry | None) -> dict[str, str]:
    identity = [finding.code, subject, finding.output, module, file_name(source)]
    identity += [finding.call_mode] if finding.call_mode else []
    if entry is not None:
        identity += [entry.kind, entry.operator, entry.origin, " ".join(entry.source_line.split())]
    digest = hashlib.sha256(json.dumps(identity).encode()).hexdigest()
    # GitHub reads only the second name; without it GitHub computes one from a file that it may not find.
    return {"orderproof/v1": digest, "primaryLocationLineHash": f"{digest[:16]}:1"}


def _properties(finding: Finding) -> dict[str, Any]:
    deviation = {"float32": finding.deviation.float32, "float64": finding.deviation.float64}
    return {
        "outcome": finding.outcome,
        "verdict": finding.verdict,
        "expected": finding.expected,
        "output": phrases.escape_control_characters(finding.output),
        "length": finding.scope.length,
        "deviation": {name: size for name, size in deviation.items() if size is not None and math.isfinite(size)},
        "entries": len(finding.entries),
        "entriesComplete": finding.entries_complete,
        **({"remedy": phrases.escape_control_characters(finding.remedy)} if finding.remedy else {}),
    }


def _plain(text: str) -> str:
    """The text with braces escaped as SARIF placeholders and brackets kept from being links."""
    return text.replace("{", "{{").replace("}", "}}").replace("](", "] (")


def _escape_all(lines: Iterable[str]) -> list[str]:
    return [phrases.escape_control_characters(line) for line in lines]
