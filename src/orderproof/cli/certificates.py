"""Writing the certificates of everything a report proves."""

from __future__ import annotations

import json

from orderproof.auditing.attempt import Weights
from orderproof.auditing.completion import certificate
from orderproof.auditing.examine import Examination
from orderproof.laws import get
from orderproof.record import Report
from orderproof.report.destination import write
from orderproof.subjects.settings import PLAIN


def write_all(
    exam: Examination, report: Report, path: str, *, uniform: tuple[str, ...] = (), weights: Weights = "all"
) -> None:
    """One certificate, or a list of them where the report proves several things."""
    made = []
    for finding in report.findings:
        completed = finding.verdict != "proved"
        if completed and (finding.completion is None or finding.completion.verdict != "proved"):
            continue
        there = exam.called(finding.setting or PLAIN)
        assert isinstance(there, Examination), there
        there = there.asked(get(finding.law))
        for part in get(finding.law).relations(there.rows):
            found = certificate(there, part, finding.output, weights=weights, uniform=uniform, completed=completed)
            if found is not None:
                made.append(found)
    write(json.dumps(made[0] if len(made) == 1 else made, separators=(",", ":")) + "\n", path)
