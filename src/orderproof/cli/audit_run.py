"""One audit, as the options of `orderproof audit` describe it: checked before torch is imported, and run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orderproof.cli import options
from orderproof.cli.console import model_output_on_stderr, progress
from orderproof.cli.kept import Determined
from orderproof.cli.subject_argument import check_port_options, check_subject, load_subject
from orderproof.cli.watched_process import go_on_in_child, keep, noted, plan
from orderproof.configuration.basis import basis_of, environment, options_text
from orderproof.configuration.kept_reports import KeptReports
from orderproof.configuration.read_files import followed_reads
from orderproof.forked_process import return_large_blocks
from orderproof.records.audit import Basis, Expectation, Report
from orderproof.subject_spec import Layout
from orderproof.time_limit import TimeAllowed

if TYPE_CHECKING:
    from orderproof.auditing.record.context import AuditContext
    from orderproof.models import Subject

INTERRUPTED = "interrupted before it was decided"
Update = Callable[[str, int, int], None]


@dataclass
class AuditRun:
    """The subject, the laws and the settings; after `report`, the context of the audit, and if it was interrupted."""

    subject: str | None
    layout: Layout
    laws: Sequence[str] | None
    expected: Mapping[str, Expectation]
    length: int | None
    seed: int
    tiny: bool
    attention: options.AttentionName | None
    kind: str | None
    allowed: TimeAllowed
    against: Sequence[str] | None
    allow_network: bool
    fast: bool
    dtype: options.DtypeName | None
    determined: Determined
    with_scripts: bool  # of failed checks, which the page shows
    may_be_resumed: bool = False  # a report that is cut short says what it was made from
    before: Report | None = None  # a report to go on with
    planned: Report | None = None  # all laws, undecided
    context: AuditContext | None = None
    loaded: Subject | None = None
    interrupted: bool = False

    def check(self, *, certificate: str | None) -> None:
        """Raises `UsageError` or `SubjectError` for what does not fit together."""
        if self.against:
            check_port_options(
                self.subject, self.against, certificate=certificate, layout=self.layout, attention=self.attention,
                dtype=self.dtype, length=self.length, budget=self.allowed.budget, resume=self.before,
            )  # fmt: skip
        check_subject(
            self.subject, tiny=self.tiny, attention=self.attention, layout=self.layout,
            allow_network=self.allow_network, dtype=self.dtype,
        )  # fmt: skip
        options.check_laws(self.laws, self.against)
        options.check_laws(self.expected if self.against else None, self.against)

    def report(self, kept: KeptReports | None, *, quiet: bool, certificate: str | None) -> Report:
        """Audit, and keep the report for the next time. Raises `KeyboardInterrupt` if that ends it too early."""
        if crash := None if self.against else go_on_in_child():
            return crash.shown_report(self.subject, certificate=certificate is not None)
        if kept is None and not self.may_be_resumed:
            return self._audit(quiet=quiet)
        began, then = time.time_ns(), environment()
        with followed_reads() as read:
            report = self._audit(quiet=quiet)
            is_needed = kept is not None or report.left
            basis = basis_of(read, self.determined.stated, began=began, environment_then=then) if is_needed else None
        if basis is None:
            return report
        if kept is not None and not self.interrupted and not _is_cut_short(report, self.allowed.each):
            kept.keep(report, basis.model_copy(update={"options": options_text(kept.options)}))
        if self.may_be_resumed and report.left:
            return report.model_copy(update={"basis": self._basis(basis)})
        return report

    def _basis(self, basis: Basis) -> Basis:
        """The basis with the options that decide, and with what the report before was made from."""
        before = self.before.basis if self.before is not None and self.before.basis is not None else Basis()
        files = {kind: {**before.files.get(kind, {}), **known} for kind, known in basis.files.items()}
        settings = {**before.settings, **basis.settings}
        update = {"options": self.determined.of_each_law, "files": files, "settings": settings}
        return basis.model_copy(update=update)

    def _audit(self, *, quiet: bool) -> Report:
        last = None
        with progress(quiet=quiet) as show, model_output_on_stderr():
            update = noted(show)
            update(f"loading {self.subject or 'the bundled model'}", 0, 1)
            reports = self._against_engines(update) if self.against else self._reports(update)
            try:
                for last in reports:
                    keep(last)
                last = self._scripted(last, update)
            except KeyboardInterrupt:
                self.interrupted = True
        if self.interrupted and self.planned is not None:
            last = (last or self.planned.model_copy(update={"findings": ()})).with_undecided(self.planned, INTERRUPTED)
        if last is None:
            raise KeyboardInterrupt
        return last

    def _against_engines(self, update: Update) -> Iterator[Report]:
        from orderproof.auditing.port_audit import audit_against

        return audit_against(
            self.subject, self.against or (), laws=self.laws, expect=self.expected, seed=self.seed,
            timeout=self.allowed.each, progress=update,
        )  # fmt: skip

    def _reports(self, update: Update) -> Iterator[Report]:
        self.loaded = load_subject(
            self.subject, tiny=self.tiny, attention=self.attention, seed=self.seed, layout=self.layout,
            allow_network=self.allow_network, kind=self.kind, timeout=self.allowed.each, dtype=self.dtype,
            length=self.length,
        )  # fmt: skip
        from orderproof.auditing.api import audit_context
        from orderproof.auditing.run import run_audit, undecided_report
        from orderproof.cast_on_use import is_large

        if is_large(self.loaded.module):
            return_large_blocks()
        self.context = audit_context(self.loaded, length=self.length, seed=self.seed)
        self.planned = undecided_report(self.context, chosen=self.laws, expect=self.expected, fast=self.fast)
        plan(self.planned)
        return run_audit(
            self.context, chosen=self.laws, expect=self.expected, allowed=self.allowed, fast=self.fast,
            before=self.before, progress=update,
        )  # fmt: skip

    def _scripted(self, report: Report | None, update: Update) -> Report | None:
        """The report with scripts of failed checks, if they are wanted; a script calls the model in eval mode."""
        if not self.with_scripts or self.layout.mode != "eval" or self.loaded is None or report is None:
            return report
        if not report.violations:
            return report
        from orderproof.reproduction import with_scripts

        update("writing scripts of failed checks", 0, 1)
        return with_scripts(self.loaded, report)


def _is_cut_short(report: Report, timeout: float | None) -> bool:
    """True if a law ran out of time: how much there is depends on what else the machine does."""
    limits = f"{timeout:g} s", "there was no time"
    theorems = [t for f in report.findings for t in (f.theorem, f.completion and f.completion.theorem) if t]
    texts = (*report.notes, *(f.reason for f in report.findings), *(t.reason for t in theorems))
    return bool(report.left) or any(limit in text for text in texts for limit in limits)
