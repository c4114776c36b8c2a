"""The laws that are measured: a finding for each, made in child processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from orderproof.auditing.decide.sandbox import EACH_LAW, MeasurementRun
from orderproof.auditing.explain.findings import undecide, with_law
from orderproof.auditing.explain.pooling_line import with_pooling_line
from orderproof.auditing.record.context import AuditContext
from orderproof.auditing.search.lengths import UNSEEN, Watch
from orderproof.laws.measured import MeasuredLaw
from orderproof.recording.compiled_code import without_compilation
from orderproof.records.audit import Expectation, Finding
from orderproof.time_limit import TimeAllowed


def measure_laws(
    context: AuditContext,
    chosen: Sequence[MeasuredLaw],
    expect: Mapping[str, Expectation],
    allowed: TimeAllowed = EACH_LAW,
    *,
    left: set[str] | None = None,
    watch: Watch = UNSEEN,
) -> Iterator[Finding]:
    """A finding for each measured law; a subject without weights is measured on its tiny twin.

    A law is taken from `left` when it is decided in all parts of the subject.
    """
    if not chosen:
        return
    context.free_float64_copies()  # the processes that measure would have them too
    subject = context.runnable.subject
    pooling = {law.name for law in chosen if law.sequence_part}
    length = None if context.length == context.subject.default_length else context.length
    run = MeasurementRun(subject, chosen, expect, context.seed, allowed, length, watch)
    parts = Counter(job.law.name for job in run.jobs)
    with without_compilation():
        for finding in run.findings():
            parts[finding.law] -= 1
            if left is not None and not parts[finding.law] and finding.law not in run.cut:
                left.discard(finding.law)
            twin = () if subject is context.subject else (f"measured on a tiny twin: {subject.load_summary}",)
            assumptions = (*twin, *((subject.mode,) if subject.mode else ()), *finding.scope.assumptions)
            scope = finding.scope.model_copy(update={"assumptions": assumptions})
            found = finding.model_copy(update={"scope": scope})
            if subject.draws_random_numbers and found.verdict == "refuted":
                reason = f"it draws random numbers, and runs of other shapes draw others: {found.reason}"
                found = undecide(found.model_copy(update={"witness": None}), reason)
            if finding.law in pooling:
                found = with_pooling_line(context, found)
            yield with_law(found, stated=found.law in expect)
