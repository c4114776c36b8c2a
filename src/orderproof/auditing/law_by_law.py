"""An audit that decides one law after the other, and knows which are left."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from orderproof.auditing import law_order
from orderproof.auditing.built_report import build_report
from orderproof.auditing.decide.one_side import applies
from orderproof.auditing.decide.relation import ProofOptions
from orderproof.auditing.decide.verdict import prove_law
from orderproof.auditing.explain.findings import finding_of, with_law
from orderproof.auditing.explain.notes import notes_of_comparisons
from orderproof.auditing.explain.sentence_pair import compare_sentence_pair
from orderproof.auditing.measured import measure_laws
from orderproof.auditing.record.context import AuditContext
from orderproof.auditing.search.lengths import Watch
from orderproof.auditing.work import Progress, Work
from orderproof.errors import INTERNAL_ERROR, OrderproofError, failure_reason, first_line
from orderproof.laws import ProvedLaw, find_law
from orderproof.laws.law import Law
from orderproof.laws.measured import MeasuredLaw
from orderproof.models.process_state import preserved_settings
from orderproof.recording.owned_state import shared_walks
from orderproof.records.audit import AttentionMap, Expectation, Finding, Report, Scope, SentencePair
from orderproof.time_limit import TimeAllowed, TimeLimitExceeded, time_limit

GRAPH_LATE, SENTENCES_LATE = "the graph was not recorded within", "the two sentences were not compared within"


@dataclass
class LawByLaw(Watch):
    """An audit that decides one law after the other: its findings and notes so far, and the laws that are left."""

    context: AuditContext
    laws: Sequence[law_order.AnyLaw]
    expect: Mapping[str, Expectation]
    allowed: TimeAllowed
    fast: bool
    show: Progress
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    left: set[str] = field(default_factory=set)  # the laws that were not reached, or ran out of time
    tried: Collection[str] = ()  # the laws that ran out of time in an audit before
    sentence_pair: SentencePair | None = None
    attention_maps: tuple[AttentionMap, ...] = ()
    export_timeout: str = ""  # why no law can be proved: recording the graph took too long
    recorded: bool = False
    began: float = field(default_factory=time.perf_counter)

    def __post_init__(self) -> None:
        """No law has been reached."""
        self.left.update(law.name for law in self.laws)

    def take_over(self, before: Report) -> None:
        """Take the findings of the laws that are decided in an earlier report of the same audit."""
        self.left = self.left & set(before.left)
        self.tried = {f.law for f in before.findings if f.law in self.left and f.seconds}
        self.findings = [f for f in before.findings if f.law not in self.left]
        self.notes += [note for note in before.notes if not note.startswith((GRAPH_LATE, SENTENCES_LATE))]
        self.sentence_pair, self.attention_maps = before.sentence_pair, before.attention_maps

    @cached_property
    def work(self) -> Work:
        """The work that is left when the audit begins."""
        laws = [law for law in self.laws if law.name in self.left]
        recording = law_order.RECORDING if any(isinstance(law, ProvedLaw) for law in laws) else 0.0
        return Work(self.show, sum(map(law_order.seconds, laws)) + recording + law_order.SENTENCES)

    def blocks(self) -> list[list[law_order.AnyLaw]]:
        """The laws that are left in the order in which they run, proved ones and measured ones apart."""
        laws, kind = [law for law in self.laws if law.name in self.left], self.context.subject.model_kind
        budget = self.allowed.budget is not None
        return law_order.blocks(laws, budget=budget, expected=self.expect, kind=kind, last=self.tried)

    def report(self) -> Report:
        """The report so far, with the findings in the order of the laws."""
        places = {law.name: k for k, law in enumerate(self.laws)}
        proved = {law.name for law in self.laws if isinstance(law, ProvedLaw)}
        parts = {part: k for k, part in enumerate(dict.fromkeys(f.call_mode for f in self.findings))}

        def place(f: Finding) -> tuple[bool, int, int]:
            return f.law not in proved, 0 if f.law in proved else parts[f.call_mode], places[f.law]

        made = build_report(self.context, sorted(self.findings, key=place), self.notes, self.began)
        pair, left = self.sentence_pair, tuple(law.name for law in self.laws if law.name in self.left)
        return made.model_copy(update={"sentence_pair": pair, "attention_maps": self.attention_maps, "left": left})

    def prove(self, laws: Sequence[ProvedLaw]) -> Iterator[Report]:
        """Decide laws one after the other on the recorded graph."""
        with shared_walks():
            if not self.recorded:
                self.recorded = True
                self.show_step("recording the graph", law_order.RECORDING)
                self.export_graph()
                self.work.end(law_order.RECORDING)
                yield self.report()
            for law in laws:
                self.decide(law)
                self.work.end(law_order.seconds(law))
                yield self.report()

    def measure(self, laws: Sequence[MeasuredLaw]) -> Iterator[Report]:
        """Measure laws one after the other by calls of the model."""
        for finding in measure_laws(self.context, laws, self.expect, self.allowed, left=self.left, watch=self):
            self.findings.append(finding)
            self.notes.extend(notes_of_comparisons(finding))
            if not finding.call_mode:
                self.work.end(law_order.seconds(find_law(finding.law)))
            yield self.report()

    def begin(self, law: Law) -> None:
        """Show a law that applies."""
        self.show_step(f"{law.code} {law.name}", law_order.seconds(law))

    def compared(self, done: int, planned: int) -> None:
        """Show how many comparisons of the law are done."""
        self.work.compared(done, planned)

    def show_step(self, text: str, amount: float) -> None:
        """Show a step that begins, unless there is no time for it."""
        if not self.allowed.is_spent:
            self.work.begin(text, amount)

    def export_graph(self) -> None:
        """Export the graph."""
        if self.allowed.is_spent:
            self.export_timeout = self.allowed.not_reached
            return
        failure: str | None
        try:
            with preserved_settings(self.context.subject.name), time_limit(self.allowed.for_next()):
                failure = self.context.export_failure
        except TimeLimitExceeded:
            failure = self.export_timeout = f"{GRAPH_LATE} {self.allowed.exceeded}"
        if failure is not None:
            self.notes.append(failure)

    def decide(self, law: ProvedLaw) -> None:
        """Prove or refute one law."""
        stated = self.expect.get(law.name)
        began, reason = time.perf_counter(), self.export_timeout
        if not reason and self.allowed.is_spent:
            self.findings.append(undecided_finding(self.context, law, self.allowed.not_reached, stated))
            return
        if not reason:
            self.left.discard(law.name)
            try:
                limit = self.allowed.for_next()
                options = ProofOptions(expect=stated, other_calls=not self.fast, theorem_seconds=limit)
                with preserved_settings(self.context.subject.name), time_limit(limit):
                    if applies(self.context, law):
                        self.begin(law)
                    self.findings.extend(
                        with_law(f, stated=stated is not None) for f in prove_law(self.context, law, options)
                    )
            except TimeLimitExceeded:
                reason = self.allowed.not_done
                self.left.add(law.name)
            except OrderproofError as error:
                reason = str(error)
            except Exception as error:  # noqa: BLE001 - one law that crashes must not fail the others
                reason = f"{INTERNAL_ERROR}{first_line(error)}"
        if reason:
            found = undecided_finding(self.context, law, reason, stated)
            self.findings.append(found.model_copy(update={"seconds": round(time.perf_counter() - began, 3)}))

    def compare_sentences(self) -> None:
        """Compare the outputs of two sentences with the same words."""
        if self.allowed.is_spent:
            return
        try:
            with preserved_settings(self.context.subject.name), time_limit(self.allowed.for_next()):
                context = self.context
                pair = (
                    None
                    if self.export_timeout
                    else compare_sentence_pair(context.subject, seed=context.seed, audited=context)
                )
        except TimeLimitExceeded:
            self.notes.append(f"{SENTENCES_LATE} {self.allowed.exceeded}")
        except (OrderproofError, RuntimeError) as error:
            self.notes.append(f"the two sentences could not be compared: {failure_reason(error)}")
        else:
            if pair is not None:
                self.sentence_pair, self.attention_maps = pair


def undecided_finding(context: AuditContext, law: Law, reason: str, stated: Expectation | None) -> Finding:
    """The finding of a law that could not be decided."""
    expected = stated or law.expected(context.subject.model_kind)
    found = finding_of(law, "undecided", reason, expected=expected, scope=Scope(length=context.length))
    return with_law(found, stated=stated is not None)
