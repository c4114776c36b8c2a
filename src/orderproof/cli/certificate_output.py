"""Writing the certificates of the proofs of a report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import typer

from orderproof.auditing.decide.certificates import certificates_of
from orderproof.auditing.decide.theorem_certificates import NotIncluded, map_certificate, theorem_certificate
from orderproof.auditing.record.context import AuditContext
from orderproof.records.audit import Report
from orderproof.report.file_output import write_file
from orderproof.report.phrases import escape_control_characters


def write_certificates(context: AuditContext, report: Report, path: str | Path) -> None:
    """Write the certificates of proofs at one length and of theorems: one, or a list.

    A theorem whose certificate the recheck does not accept is left out, and standard error says why.
    """
    made: list[dict[str, Any]] = []
    for finding in report.findings:
        made += certificates_of(context, finding)
        for make in (theorem_certificate, map_certificate):
            try:
                theorem = make(context, finding)
            except NotIncluded as error:
                reason = f"no certificate of the theorem {finding.law} of {finding.output}: {error}"
                typer.echo(escape_control_characters(reason), err=True)
            else:
                made += [] if theorem is None else [theorem]
    write_file(json.dumps(made[0] if len(made) == 1 else made, separators=(",", ":")) + "\n", path)
