"""A cache for one run of the claims: several checks share a subject, which is built and recorded once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from orderproof.auditing.api import as_subject, audit_context, report_on_law
from orderproof.auditing.explain.sentence_pair import compare_sentence_pair
from orderproof.auditing.record.context import AuditContext
from orderproof.errors import UsageError
from orderproof.models import Subject
from orderproof.records.audit import Finding, SentencePair

SubjectFactory = Callable[[], Any]
"""Builds a module, a module with its example inputs, or a `Subject`."""


class AuditCache:
    """The audit contexts, findings and sentence pairs of each subject, by its factory."""

    def __init__(self) -> None:
        self._contexts: dict[SubjectFactory, AuditContext] = {}
        self._findings: dict[tuple[SubjectFactory, str], tuple[Finding, ...]] = {}
        self._sentence_pairs: dict[SubjectFactory, SentencePair | None] = {}

    def context(self, make_subject: SubjectFactory) -> AuditContext:
        """The audit context of a subject."""
        if make_subject not in self._contexts:
            subject = make_subject()
            if not isinstance(subject, Subject):
                module, inputs = subject if isinstance(subject, tuple) else (subject, None)
                subject = as_subject(module, inputs=inputs)
            self._contexts[make_subject] = audit_context(subject)
        return self._contexts[make_subject]

    def finding(self, make_subject: SubjectFactory, law: str, output: str | None = None) -> Finding:
        """The finding of a law for one output, by default the first. Raises `UsageError` for an unknown output."""
        key = make_subject, law
        if key not in self._findings:
            self._findings[key] = report_on_law(self.context(make_subject), law).findings
        for finding in self._findings[key]:
            if output in (None, finding.output):
                return finding
        names = ", ".join(finding.output for finding in self._findings[key])
        raise UsageError(f"expected an output, one of {names}; got {output!r}")

    def sentence_pair(self, make_subject: SubjectFactory) -> SentencePair | None:
        """Two sentences with the same words, with and without positions; None if the subject does not read text."""
        if make_subject not in self._sentence_pairs:
            comparison = compare_sentence_pair(self.context(make_subject).subject)
            self._sentence_pairs[make_subject] = None if comparison is None else comparison[0]
        return self._sentence_pairs[make_subject]
