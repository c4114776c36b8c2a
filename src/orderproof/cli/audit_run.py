"""One audit, as the options of `orderproof audit` describe it: checked before torch is imported, and run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orderproof.cli import options
from orderproof.cli.console import model_output_on_stderr, progress
from orderproof.cli.subject_argument import check_port_options, check_subject, load_subject
from orderproof.cli.watched_process import go_on_in_child, keep, noted, plan
from orderproof.configuration.kept_reports import KeptReports, environment
from orderproof.configuration.read_files import followed_reads
from orderproof.records.audit import Expectation, Report
from orderproof.subject_spec import Layout

if TYPE_CHECKING:
    from orderproof.auditing.record.context import AuditContext
    from orderproof.models import Subject

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
    timeout: float
    against: Sequence[str] | None
    allow_network: bool
    fast: bool
    dtype: options.DtypeName | None
    with_scripts: bool  # of failed checks, which the page shows
    context: AuditContext | None = None
    loaded: Subject | None = None
    interrupted: bool = False

    def check(self, *, certificate: str | None) -> None:
        """Raises `UsageError` or `SubjectError` for what does not fit together."""
        if self.against:
            check_port_options(
                self.subject, self.against, certificate=certificate, layout=self.layout, attention=self.attention,
                dtype=self.dtype, length=self.length,
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
        if kept is None:
            return self._audit(quiet=quiet)
        began, then = time.time_ns(), environment()
        with followed_reads() as read:
            report = self._audit(quiet=quiet)
            if not self.interrupted and not _is_cut_short(report, self.timeout):
                kept.keep(report, read, began=began, environment_then=then)
        return report

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
        if last is None:
            raise KeyboardInterrupt
        return last

    def _against_engines(self, update: Update) -> Iterator[Report]:
        from orderproof.auditing.port_audit import audit_against

        return audit_against(
            self.subject, self.against or (), laws=self.laws, expect=self.expected, seed=self.seed,
            timeout=self.timeout, progress=update,
        )  # fmt: skip

    def _reports(self, update: Update) -> Iterator[Report]:
        self.loaded = load_subject(
            self.subject, tiny=self.tiny, attention=self.attention, seed=self.seed, layout=self.layout,
            allow_network=self.allow_network, kind=self.kind, timeout=self.timeout, dtype=self.dtype,
        )  # fmt: skip
        from orderproof.auditing.api import audit_context
        from orderproof.auditing.run import run_audit, undecided_report

        self.context = audit_context(self.loaded, length=self.length, seed=self.seed)
        plan(undecided_report(self.context, chosen=self.laws, expect=self.expected, fast=self.fast))
        return run_audit(
            self.context, chosen=self.laws, expect=self.expected, timeout=self.timeout, fast=self.fast, progress=update,
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


def _is_cut_short(report: Report, timeout: float) -> bool:
    """True if a law ran out of time: how much there is depends on what else the machine does."""
    limits = f"{timeout:g} s", "there was no time"
    theorems = [t for f in report.findings for t in (f.theorem, f.completion and f.completion.theorem) if t]
    texts = (*report.notes, *(f.reason for f in report.findings), *(t.reason for t in theorems))
    return any(limit in text for text in texts for limit in limits)
