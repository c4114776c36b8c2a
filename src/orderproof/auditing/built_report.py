"""The report of findings, as far as it follows from them and the subject."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from orderproof._version import __version__
from orderproof.auditing.explain.findings import with_causes
from orderproof.auditing.record.context import AuditContext
from orderproof.diagnosis.rule import lemma_summaries
from orderproof.models import Subject
from orderproof.records.audit import Finding, Report, SubjectRecord
from orderproof.records.document import versions


def build_report(context: AuditContext, findings: Sequence[Finding], notes: Sequence[str], began: float) -> Report:
    """The report of these findings; `began` is the value of `time.perf_counter` at the start."""
    return Report(
        orderproof_version=__version__, subject=subject_record(context.subject, context.axes_text),
        findings=with_causes(findings),
        notes=tuple(dict.fromkeys(notes)), lemma_statements=_lemmas(findings), versions=versions(),
        seconds=round(time.perf_counter() - began, 3),
    )  # fmt: skip


def _lemmas(findings: Sequence[Finding]) -> dict[str, str]:
    used: set[str] = set()
    for f in findings:
        for proof in (f.proof, f.completion.proof if f.completion else None):
            used.update(proof.lemma_counts if proof else ())
    return {name: text for name, text in lemma_summaries().items() if name in used}


def subject_record(subject: Subject, axes: Mapping[str, str] | None = None) -> SubjectRecord:
    """The description of a subject in a report; `axes` are those of its inputs and outputs."""
    return SubjectRecord(
        name=subject.name,
        kind=subject.model_kind,
        parameters=subject.parameter_count,
        layers=subject.layer_count,
        detail=subject.load_summary,
        configuration=dict(subject.configuration),
        axes=dict(axes or {}),
        inputs=subject.input_roles,
    )
