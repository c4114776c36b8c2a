"""Writing the certificates of the theorems of a report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import typer

from orderproof.auditing.decide.theorem_certificates import NotIncluded, map_certificate, theorem_certificate
from orderproof.auditing.record.context import AuditContext
from orderproof.records.audit import Completion, Finding, Report
from orderproof.report.file_output import write_file
from orderproof.report.phrases import escape_control_characters


def write_certificates(context: AuditContext, report: Report, path: str | Path) -> None:
    """Write the certificates of theorems: one, or a list.

    Standard error says of each proof without one why: it is of one length, or the recheck does not accept it.
    """
    made: list[dict[str, Any]] = []
    for finding in report.findings:
        for part, name, make in (
            (finding, "", theorem_certificate),
            (finding.completion, "the entry map of ", map_certificate),
        ):
            if part is None or part.verdict != "proved":
                continue
            try:
                certificate = make(context, finding)
            except NotIncluded as error:
                _explain(f"no certificate of {name}{finding.law} of {finding.output}: {error}")
            else:
                made += [] if certificate is None else [certificate]
                if certificate is None:
                    _explain(f"no certificate of {name}{finding.law} of {finding.output}: {_without_theorem(part)}")
    write_file(json.dumps(made[0] if len(made) == 1 else made, separators=(",", ":")) + "\n", path)


def _without_theorem(part: Finding | Completion) -> str:
    reason = "" if part.theorem is None else part.theorem.reason
    return "only theorems have one, and this is proved at one length" + (f": {reason}" if reason else "")


def _explain(line: str) -> None:
    typer.echo(escape_control_characters(line), err=True)
