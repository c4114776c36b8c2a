"""The report as SARIF 2.1.0, for places that show findings beside the source: one result for each unmet finding.

A decided finding that is not what was expected is an error, an undecided one a warning; both are of kind "fail",
since any other kind must have level "none". What is met gives no result, so that an obedient model raises no
alert. The entries of a finding are its related locations.

- A result has a physical location always: code scanning refuses a whole file for one result without. It is the
  entry where the law is first seen broken, or else the last line of a proof, or else the subject by its name.
- A file is known by its name only (modeling_bert.py), so a location is that name, relative to %SRCROOT%; no path
  of this machine is written.
- The fingerprint of a result is what it is about, not where it stands today: no line number, no time, no measured
  number and no length goes into it.

Source: OASIS 2020, Static Analysis Results Interchange Format (SARIF) Version 2.1.0, sections 3.11, 3.14, 3.27.
"""

from __future__ import annotations

import hashlib
import json
import math
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from urllib.parse import quote

from orderproof.record import Entry, Finding, Report
from orderproof.report import destination, words
from orderproof.report.evidence import aligned, entry_line, evidence, headline

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
BASE = "%SRCROOT%"


def write_sarif(report: Report, target: str | Path) -> None:
    """Write the report to a file in one step, or to standard output when the target is ``-``."""
    destination.write(render_sarif(report), target)


def render_sarif(report: Report) -> str:
    """The log as text: one run."""
    rules = {finding.code: _rule(finding) for finding in reversed(report.findings)}
    places = {code: index for index, code in enumerate(sorted(rules))}
    subject = words.visible(report.subject.name)
    run = {
        "tool": {
            "driver": {
                "name": "orderproof",
                "version": words.visible(report.orderproof),
                "semanticVersion": words.visible(report.orderproof),
                "rules": [rules[code] for code in places],
            }
        },
        # With a slash at the end it is the category that keeps apart the alerts of several subjects.
        "automationDetails": {"id": f"orderproof/{subject}/"},
        "invocations": [
            {
                "executionSuccessful": True,
                "exitCode": report.exit_code,
                "exitCodeDescription": words.visible(words.exit_sentence(report)),
            }
        ],
        "results": [_result(subject, f, places[f.code]) for f in report.findings if not f.met],
        "properties": {"subject": words.visible(words.subject_line(report.subject)), "notes": _texts(report.notes)},
    }
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2, allow_nan=False) + "\n"


_PROVED = "proved: it follows from the operators of the recorded graph.\nrefuted: two runs were found that break it.\n"
_MEASURED = (
    "held: in the comparisons made the model gives the same in two ways, and a control moves what they compare.\n"
    "refuted: a comparison gives another answer, beyond rounding.\n"
)


def _is_measured(finding: Finding) -> bool:
    """Whether the law is measured; where it was not asked, its code says so."""
    return finding.measurement is not None or finding.verdict == "held" or finding.code[:3] in ("OP3", "OP4", "OP5")


def _rule(finding: Finding) -> dict[str, Any]:
    name = words.visible(finding.law)
    statement = words.visible(finding.statement or finding.law)
    meant, shown = (_MEASURED, "comparisons") if _is_measured(finding) else (_PROVED, "proof or the two runs")
    told = f"{statement}\n\n{meant}undecided: neither; the reason is given.\n\n"
    told += f"To do: {words.visible(finding.fix)}\n\n" if finding.fix else ""
    told += f"`orderproof prove SUBJECT --law {name}` shows the {shown}; `orderproof list laws` lists all."
    return {
        "id": words.visible(finding.code),
        "name": name,
        "shortDescription": {"text": _plain(f"{name}: {statement}")},
        "fullDescription": {"text": _plain(statement)},
        "help": {"text": _plain(told)},
        "defaultConfiguration": {"level": "error"},
    }


def _result(subject: str, finding: Finding, rule: int) -> dict[str, Any]:
    entry = _first_entry(finding)
    module, source, text = ("", "", "") if entry is None else (entry.module, entry.source, entry.text)
    if entry is None and finding.proof is not None:
        last = next((step for step in reversed(finding.proof.lines) if _file(step.source)), None)
        module, source = (last.module, last.source) if last else ("", "")
    message = f"{headline(finding)} in {subject}: {words.in_short(finding)}".removesuffix(": ")
    lines = "\n".join([words.visible(message), *aligned(evidence(finding), indent=0)])
    result: dict[str, Any] = {
        "ruleId": words.visible(finding.code),
        "ruleIndex": rule,
        "kind": "fail",
        "level": "warning" if finding.verdict == "undecided" else "error",
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
    related = [(e, place) for e in finding.entries if (place := _physical(e.source, e.text))]
    if related:
        result["relatedLocations"] = [
            {
                "id": number,
                "physicalLocation": place,
                "logicalLocations": [_logical(e.module or subject)],
                "message": {"text": _plain(words.visible(entry_line(e)))},
            }
            for number, (e, place) in enumerate(related, 1)
        ]
    return result


def _first_entry(finding: Finding) -> Entry | None:
    """The entry in the module where the witness is first seen, or else the first one whose file is known.

    An entry of several layers has * for their number.
    """
    known = [e for e in finding.entries if _file(e.source)]
    first = finding.witness.module if finding.witness else ""
    return next((e for e in known if first and fnmatchcase(first, e.module)), known[0] if known else None)


def _file(source: str) -> str:
    """The file's name, without folders and the line; empty where code was made up while running."""
    place, colon, line = source.rpartition(":")
    name = (place if colon and line.isdecimal() else source).replace("\\", "/").rpartition("/")[2]
    return "" if name in ("", ".", "..") or name.startswith("<") else name


def _physical(source: str, text: str) -> dict[str, Any]:
    """A physical location; empty where the file is not known."""
    name = _file(source)
    if not name:
        return {}
    place: dict[str, Any] = {"artifactLocation": _artifact(name)}
    line = source.rpartition(":")[2]
    if line.isdecimal() and int(line) > 0:
        place["region"] = {"startLine": int(line)}
        if text.strip():
            place["region"]["snippet"] = {"text": words.visible(text.strip())}
    return place


def _artifact(name: str) -> dict[str, str]:
    """A relative reference: the part after the last place where a machine's own folders could stand."""
    if name.startswith(("/", "~", "\\")) or name[1:2] == ":":
        name = name.replace("\\", "/").rstrip("/").rpartition("/")[2]
    return {"uri": quote(words.visible(name), safe="/") or "subject", "uriBaseId": BASE}


def _logical(path: str) -> dict[str, str]:
    path = words.visible(path)
    return {"name": path.rpartition(".")[2] or path, "fullyQualifiedName": path, "kind": "module"}


def _fingerprints(subject: str, finding: Finding, module: str, source: str, entry: Entry | None) -> dict[str, str]:
    about = [finding.code, subject, finding.output, module, _file(source)]
    about += [finding.setting] if finding.setting else []
    if entry is not None:
        about += [entry.kind, entry.operator, entry.origin, " ".join(entry.text.split())]
    digest = hashlib.sha256(json.dumps(about).encode()).hexdigest()
    # The second is the one name GitHub reads; it would else be made from a file it may not find.
    return {"orderproof/v1": digest, "primaryLocationLineHash": f"{digest[:16]}:1"}


def _properties(finding: Finding) -> dict[str, Any]:
    deviation = {"float32": finding.deviation.float32, "float64": finding.deviation.float64}
    return {
        "verdict": finding.verdict,
        "expected": finding.expected,
        "output": words.visible(finding.output),
        "length": finding.scope.length,
        "deviation": {name: size for name, size in deviation.items() if size is not None and math.isfinite(size)},
        "entries": len(finding.entries),
        "entriesComplete": finding.entries_complete,
        **({"fix": words.visible(finding.fix)} if finding.fix else {}),
    }


def _plain(text: str) -> str:
    """Text in which braces are no placeholders and brackets no links."""
    return text.replace("{", "{{").replace("}", "}}").replace("](", "] (")


def _texts(lines: tuple[str, ...]) -> list[str]:
    return [words.visible(line) for line in lines]
