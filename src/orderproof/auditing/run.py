"""An audit, law by law: an interrupted audit keeps its findings, and no law can fail the others."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

from orderproof.auditing import law_order
from orderproof.auditing.built_report import build_report
from orderproof.auditing.decide.sandbox import EACH_LAW
from orderproof.auditing.expectations import checked_expectations
from orderproof.auditing.explain.findings import undecide_inapplicable
from orderproof.auditing.explain.sentence_pair import has_sentences
from orderproof.auditing.law_by_law import LawByLaw, undecided_finding
from orderproof.auditing.record.context import AuditContext
from orderproof.auditing.work import Progress
from orderproof.errors import UsageError
from orderproof.laws import ProvedLaw, find_model_law, measured_laws, proved_laws
from orderproof.laws.law import Law
from orderproof.laws.measured import MeasuredLaw
from orderproof.models import Subject
from orderproof.records.audit import Expectation, Report
from orderproof.time_limit import TimeAllowed

FAST_NOTE = "fast: measured laws were left out, and no call of another length, number of rows or mask was compared"
KINDS_THAT_PACK = ("encoder", "causal_lm")


def run_audit(
    context: AuditContext,
    *,
    chosen: Sequence[str] | None = None,
    expect: Mapping[str, Expectation] | None = None,
    allowed: TimeAllowed = EACH_LAW,
    fast: bool = False,
    before: Report | None = None,
    progress: Progress | None = None,
) -> Iterator[Report]:
    """The report so far, after each step. Raises `UsageError` for an unknown law.

    `fast`: laws that are proved, without runs in other calls; what is measured is left out, and a note says so.
    `before`: a report of the same audit that was cut short; what is decided there is not decided again.
    """
    laws, expect = _laws(context, chosen, expect, fast=fast)
    audit = LawByLaw(context, laws, expect, allowed, fast, progress or (lambda text, done, total: None))
    audit.notes += [FAST_NOTE] * fast
    if before is not None:
        audit.take_over(before)
    for block in audit.blocks():
        if isinstance(block[0], ProvedLaw):
            yield from audit.prove([law for law in block if isinstance(law, ProvedLaw)])
        else:
            yield from audit.measure([law for law in block if isinstance(law, MeasuredLaw)])
    audit.findings = undecide_inapplicable(audit.findings, [law.name for law in laws] if chosen else list(expect))
    if has_sentences(context.subject) and not fast and audit.sentence_pair is None:
        audit.show_step("comparing two sentences", law_order.SENTENCES)
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
    findings = [undecided_finding(context, law, "", expect.get(law.name)) for law in laws]
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
