"""One report of several: of the tests of a session, or of the subjects of a project."""

from __future__ import annotations

from collections.abc import Sequence

from orderproof._version import __version__
from orderproof.records.audit import Report, SubjectRecord


def merge_reports(reports: Sequence[tuple[str, Report]], name: str, kind: str, made_of: str) -> Report:
    """Merge reports; the output of a finding is prefixed with the name given with its report.

    Args:
        reports: Each with the name of what it is of: a test, or a subject.
        name: Of the whole: a project.
        kind: Of the whole: "test session".
        made_of: What there is of what: "tests that asserted laws: 2"; the number of subjects is added.

    """
    findings, lemmas, notes, versions = [], {}, [], {}
    for of, report in reports:
        place = of if of == report.subject.name else f"{of}: {report.subject.name}"
        findings += [
            f.model_copy(update={"output": f"{place}, {f.output}".removesuffix(", ")}) for f in report.findings
        ]
        notes += [f"{place}: {note}" for note in report.notes]
        lemmas.update(report.lemma_statements)
        versions.update(report.versions)
    subjects = list({report.subject.model_dump_json(): report.subject for _, report in reports}.values())
    return Report(
        orderproof_version=__version__,
        subject=SubjectRecord(
            name=name,
            kind=kind,
            parameters=sum(subject.parameters for subject in subjects),
            detail="; ".join(text for text in (made_of, f"subjects: {len(subjects)}") if text),
        ),
        findings=tuple(findings),
        lemma_statements=lemmas,
        notes=tuple(dict.fromkeys(notes)),
        versions=versions,
        seconds=round(sum(report.seconds for _, report in reports), 3),
        interrupted=any(report.interrupted for _, report in reports),
        strict=any(report.strict for _, report in reports),
    )
