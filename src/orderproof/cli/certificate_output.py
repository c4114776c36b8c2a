"""Writing the certificates of the proofs of a report."""

from __future__ import annotations

import json
from pathlib import Path

from orderproof.auditing.certificates import certificates_of
from orderproof.auditing.context import AuditContext
from orderproof.records.audit import Report
from orderproof.report.file_output import write_file


def write_certificates(context: AuditContext, report: Report, path: str | Path) -> None:
    """Write one certificate, or a list of them if the report proves several relations."""
    made = [certificate for finding in report.findings for certificate in certificates_of(context, finding)]
    write_file(json.dumps(made[0] if len(made) == 1 else made, separators=(",", ":")) + "\n", path)
