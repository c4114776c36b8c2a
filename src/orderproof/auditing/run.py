"""An audit, law by law: an interrupted audit keeps its findings, and no law can fail the others."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from orderproof._version import __version__
from orderproof.auditing.decide.one_side import applies
from orderproof.auditing.decide.relation import ProofOptions
from orderproof.auditing.decide.sandbox import LAW_TIMEOUT, MeasurementRun
from orderproof.auditing.decide.verdict import prove_law
from orderproof.auditing.expectations import checked_expectations
from orderproof.auditing.explain.findings import (
    finding_of,
    undecide,
    undecide_inapplicable,
    with_causes,
    with_law,
)
from orderproof.auditing.explain.notes import notes_of_comparisons
from orderproof.auditing.explain.pooling_line import with_pooling_line
from orderproof.auditing.explain.sentence_pair import compare_sentence_pair, has_sentences
from orderproof.auditing.record.context import AuditContext
from orderproof.diagnosis.rule import lemma_summaries
from orderproof.errors import INTERNAL_ERROR, OrderproofError, UsageError, failure_reason, first_line
from orderproof.laws import ProvedLaw, find_model_law, measured_laws, proved_laws
from orderproof.laws.law import Law
from orderproof.laws.measured import MeasuredLaw
from orderproof.models import Subject
from orderproof.models.process_state import preserved_settings
from orderproof.recording.compiled_code import without_compilation
from orderproof.recording.owned_state import shared_walks
from orderproof.records.audit import AttentionMap, Expectation, Finding, Report, Scope, SentencePair, SubjectRecord
from orderproof.records.document import versions
from orderproof.time_limit import TimeLimitExceeded, time_limit

FAST_NOTE = "fast: measured laws were left out, and no call of another length, number of rows or mask was compared"
KINDS_THAT_PACK = ("encoder", "causal_lm")
Progress = Callable[[str, int, int], None]  # a text, the steps done, the steps in all


def run_audit(
    context: AuditContext,
    *,
    chosen: Sequence[str] | None = None,
    expect: Mapping[str, Expectation] | None = None,
    timeout: float | None = LAW_TIMEOUT,
    fast: bool = False,
    progress: Progress | None = None,
) -> Iterator[Report]:
    """The report so far, after each step; `timeout` is for each law [s]. Raises `UsageError` for an unknown law.

    `fast`: laws that are proved, without runs in other calls; what is measured is left out, and a note says so.
    """
    laws, expect = _laws(context, chosen, expect, fast=fast)
    proved = [law for law in laws if isinstance(law, ProvedLaw)]
    measured = [law for law in laws if isinstance(law, MeasuredLaw)]
    show = progress or (lambda text, done, total: None)
    total = len(laws) + 2
    places = {law.name: k for k, law in enumerate((*proved, *measured), 1)}

    def begin(law: Law) -> None:  # not shown if it does not apply
        show(f"{law.code} {law.name}", places[law.name], total)

    audit = _AuditRun(context, expect, timeout, fast)
    audit.notes += [FAST_NOTE] * fast
    with shared_walks():
        if proved:
            show("recording the graph", 0, total)
            audit.export_graph()
            yield audit.report()
        for law in proved:
            audit.decide(law, begin)
            yield audit.report()
    for finding in measure_laws(context, measured, expect, timeout, begin):
        audit.findings.append(finding)
        audit.notes.extend(notes_of_comparisons(finding))
        yield audit.report()
    audit.findings = undecide_inapplicable(audit.findings, [law.name for law in laws] if chosen else list(expect))
    if has_sentences(context.subject) and not fast:
        show("comparing two sentences", total - 1, total)
        audit.compare_sentences()
    audit.notes.extend(context.notes)
    yield audit.report()


def undecided_report(
    context: AuditContext,
    *,
    chosen: Sequence[str] | None = None,
    expect: Mapping[str, Expectation] | None = None,
    fast: bool = False,
) -> Report:
    """The report of an audit that reaches none of its laws. Raises `UsageError` for an unknown law."""
    laws, expect = _laws(context, chosen, expect, fast=fast)
    findings = [_undecided(context, law, "", expect.get(law.name)) for law in laws]
    return build_report(context, findings, context.notes, time.perf_counter())


def _laws(
    context: AuditContext,
    chosen: Sequence[str] | None,
    expect: Mapping[str, Expectation] | None,
    *,
    fast: bool,
) -> tuple[list[ProvedLaw | MeasuredLaw], Mapping[str, Expectation]]:
    """The chosen laws, or all of them, and what is expected. Raises `UsageError` if `fast` leaves none of them."""
    expect = checked_expectations(expect, find_model_law)
    if not chosen:
        every: list[ProvedLaw | MeasuredLaw] = [*proved_laws(), *([] if fast else measured_laws())]
        return every, {**expected_of_documents(every, context.subject), **expect}
    laws = [find_model_law(name) for name in chosen]
    if fast and not (laws := [law for law in laws if isinstance(law, ProvedLaw)]):
        raise UsageError(f"expected a law that is proved with fast; got {', '.join(chosen)}, measured")
    return laws, expectations_of_named_laws(laws, context.subject.model_kind, expect)


def _undecided(context: AuditContext, law: Law, reason: str, stated: Expectation | None) -> Finding:
    expected = stated or law.expected(context.subject.model_kind)
    found = finding_of(law, "undecided", reason, expected=expected, scope=Scope(length=context.length))
    return with_law(found, stated=stated is not None)


def expectations_of_named_laws(
    laws: Sequence[Law], model_kind: str, expect: Mapping[str, Expectation] | None
) -> dict[str, Expectation]:
    """The stated expectations, and that a law holds if the user names it and neither user nor kind states more."""
    kind_expects = {law.name: law.expected(model_kind) for law in laws}
    named = {law.name: law.expected(model_kind, named=True) for law in laws}
    return {**{name: e for name, e in named.items() if e != kind_expects[name]}, **(expect or {})}


def expected_of_documents(laws: Sequence[Law], subject: Subject) -> dict[str, Expectation]:
    """The laws that should hold for an encoder or a decoder, since it takes packed documents."""
    if not subject.takes_documents or subject.model_kind not in KINDS_THAT_PACK:
        return {}
    return {law.name: "holds" for law in laws if law.expected_of_documents}


@dataclass
class _AuditRun:
    """The findings and notes so far."""

    context: AuditContext
    expect: Mapping[str, Expectation]
    timeout: float | None
    fast: bool = False
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    sentence_pair: SentencePair | None = None
    attention_maps: tuple[AttentionMap, ...] = ()
    export_timeout: str = ""  # why no law can be proved: recording the graph took too long
    began: float = field(default_factory=time.perf_counter)

    def report(self) -> Report:
        """The report so far."""
        return build_report(self.context, self.findings, self.notes, self.began).model_copy(
            update={"sentence_pair": self.sentence_pair, "attention_maps": self.attention_maps}
        )

    def export_graph(self) -> None:
        """Export the graph."""
        try:
            with preserved_settings(self.context.subject.name), time_limit(self.timeout):
                failure = self.context.export_failure
        except TimeLimitExceeded:
            failure = self.export_timeout = f"the graph was not recorded within {self.timeout:g} s"
        if failure is not None:
            self.notes.append(failure)

    def decide(self, law: ProvedLaw, begin: Callable[[Law], None]) -> None:
        """Prove or refute one law; `begin` is called if it applies."""
        stated = self.expect.get(law.name)
        reason = self.export_timeout
        if not reason:
            try:
                options = ProofOptions(expect=stated, other_calls=not self.fast, theorem_seconds=self.timeout)
                with preserved_settings(self.context.subject.name), time_limit(self.timeout):
                    if applies(self.context, law):
                        begin(law)
                    self.findings.extend(
                        with_law(f, stated=stated is not None) for f in prove_law(self.context, law, options)
                    )
            except TimeLimitExceeded:
                reason = f"not done after {self.timeout:g} s"
            except OrderproofError as error:
                reason = str(error)
            except Exception as error:  # noqa: BLE001 - one law that crashes must not fail the others
                reason = f"{INTERNAL_ERROR}{first_line(error)}"
        if reason:
            self.findings.append(_undecided(self.context, law, reason, stated))

    def compare_sentences(self) -> None:
        """Compare the outputs of two sentences with the same words."""
        try:
            with preserved_settings(self.context.subject.name), time_limit(self.timeout):
                context = self.context
                pair = (
                    None
                    if self.export_timeout
                    else compare_sentence_pair(context.subject, seed=context.seed, audited=context)
                )
        except TimeLimitExceeded:
            self.notes.append(f"the two sentences were not compared within {self.timeout:g} s")
        except (OrderproofError, RuntimeError) as error:
            self.notes.append(f"the two sentences could not be compared: {failure_reason(error)}")
        else:
            if pair is not None:
                self.sentence_pair, self.attention_maps = pair


def build_report(context: AuditContext, findings: Sequence[Finding], notes: Sequence[str], began: float) -> Report:
    """The report of these findings; `began` is the value of `time.perf_counter` at the start."""
    return Report(
        orderproof_version=__version__, subject=subject_record(context.subject, context.axes_text),
        findings=with_causes(findings),
        notes=tuple(dict.fromkeys(notes)), lemma_statements=_lemmas(findings), versions=versions(),
        seconds=round(time.perf_counter() - began, 3),
    )  # fmt: skip


def measure_laws(
    context: AuditContext,
    chosen: Sequence[MeasuredLaw],
    expect: Mapping[str, Expectation],
    timeout: float | None = LAW_TIMEOUT,
    begin: Callable[[Law], None] = lambda law: None,
) -> Iterator[Finding]:
    """A finding for each measured law; a subject without weights is measured on its tiny twin.

    `begin` is called with each law that applies, before it is measured.
    """
    if not chosen:
        return
    context.free_float64_copies()  # the processes that measure would have them too
    subject = context.runnable.subject
    pooling = {law.name for law in chosen if law.of_every_sequence}
    length = None if context.length == context.subject.default_length else context.length
    with without_compilation():
        for finding in MeasurementRun(subject, chosen, expect, context.seed, timeout, length, begin).findings():
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
