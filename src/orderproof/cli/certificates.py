"""Writing the certificates of everything a report proves."""

from __future__ import annotations

import json

from orderproof.audit.examine import Examination
from orderproof.audit.prove import Weights, certificate
from orderproof.laws import get
from orderproof.record import Report
from orderproof.report.destination import write
from orderproof.subjects import Subject


def write_all(
    subject: Subject, report: Report, path: str, *, seed: int, uniform: tuple[str, ...] = (), weights: Weights = "all"
) -> None:
    """One certificate, or a list of them where the report proves several things."""
    exams: dict[int, Examination] = {}
    made = []
    for finding in report.findings:
        completed = finding.verdict != "proved"
        if completed and (finding.completion is None or finding.completion.verdict != "proved"):
            continue
        length = finding.scope.length if subject.cut is None else subject.length
        exam = exams.setdefault(length, Examination(subject, length, seed))
        found = certificate(
            exam, get(finding.law), finding.output, weights=weights, uniform=uniform, completed=completed
        )
        if found is not None:
            made.append(found)
    write(json.dumps(made[0] if len(made) == 1 else made, separators=(",", ":")) + "\n", path)
