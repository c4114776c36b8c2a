"""The report in a terminal; the text is the same with and without colour."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from orderproof.records.audit import (
    Finding,
    Report,
    SentencePair,
)
from orderproof.records.input_role import InputRole
from orderproof.report import entry_map_phrases, phrases, summary, terminal_tables, witness_phrases
from orderproof.report.law_groups import groups_with, property_groups
from orderproof.report.place import MASK_LEGEND, mask_lines, mask_of, shown_place
from orderproof.report.terminal_evidence import EvidencePrinter, fix_rows
from orderproof.report.terminal_tables import plain_text as _text

KINDS_WITH_KNOWN_AXES = ("encoder", "causal_lm", "vision", "audio")  # of transformers, whose axes are documented


def render_text(report: Report, console: Console, *, details: bool = True) -> None:
    """Print the report on the console; `details`: with every proof, comparison, witness and assumption."""
    _AuditPrinter(console, details=details).report(report)


class _AuditPrinter(EvidencePrinter):
    """One report on one console."""

    def __init__(self, console: Console, *, details: bool) -> None:
        super().__init__(console)
        self.details = details

    def report(self, report: Report) -> None:
        self._line(_text(report.subject.name, "bold"), indent=0)
        self._line(_text(phrases.subject_line(report.subject)), indent=0)
        self.console.print()
        self._line(_text(summary.summary_sentence(report)), indent=0)
        if near := summary.almost_causal(report):
            self._line(_text(near), indent=0)
        self._failed(report)
        self._not_checked(report)
        self._properties(report.findings)
        if report.sentence_pair:
            self._swap(report.sentence_pair)
        self._entry_maps(report)
        self._passed(report.findings)
        self._inputs(report.subject.inputs)
        if self.details:
            self._details(report)
        if self.details or report.subject.kind not in KINDS_WITH_KNOWN_AXES:
            self._list("Axes", [f"{name}: {text}" for name, text in report.subject.axes.items()])
        self._list("Notes", report.notes)
        self._settings(report)
        self._exit_code(report)

    def _details(self, report: Report) -> None:
        """The evidence: proofs, comparisons, the witnesses that describe, what does not apply and the assumptions."""
        main = [f for f in report.findings if f.output == phrases.main_output(report) or f.measurement is not None]
        self._proofs(main)
        self._measurements(phrases.measured_findings(report))
        for finding in main:
            if finding.witness and finding.outcome != "fail":
                self._witness(finding, finding.witness)
        self._other_outputs(report)
        excluded = phrases.not_applicable(report.findings)
        self._list("Not applicable", [f"{', '.join(titles)}: {reason}" for reason, titles in excluded.items()])
        self._list("Assumptions", _assumption_lines(report))

    def _failed(self, report: Report) -> None:
        for group in groups_with(report.findings, "fail"):
            failed = [f for f in group.findings if f.outcome == "fail"]
            self._heading(f"FAIL {phrases.law_title(failed[0])}", "bold red")
            if failed[0].same_cause_as:
                self._line(_text(witness_phrases.same_cause_text(failed[0])))
                continue
            self._line(_text(failed[0].statement))
            self._key_values(self._failure_rows(failed[0]))
            if len(failed) > 1:
                self._line(_text(f"It fails for {len(failed)} outputs: {', '.join(f.output for f in failed)}."))

    def _failure_rows(self, finding: Finding) -> list[tuple[str, Text]]:
        """The line, its mask, the witness or the reason, and the change."""
        place = shown_place(finding)
        rows = [("because", _text(finding.expected_because))]
        rows += [("line", _text(place.source)), ("", _text(place.text))]
        if (mask := mask_of(finding)) is not None:
            drawn = [_text(line, "bold") for line in mask_lines(mask)]
            rows += [("mask" if k == 0 else "", line) for k, line in enumerate(drawn)] + [("", _text(MASK_LEGEND))]
        if finding.witness is not None:
            rows += self._witness_rows(finding, finding.witness)
        else:
            rows.append(("found", _text(phrases.evidence_text(finding))))
        return [row for row in [*rows, *fix_rows(finding)] if row[1].plain]

    def _not_checked(self, report: Report) -> None:
        untested = phrases.not_checked(report)
        self._list("Not checked", [f"{', '.join(titles)}: {reason}" for reason, titles in untested.items()])

    def _properties(self, findings: tuple[Finding, ...]) -> None:
        if property_groups(findings):
            self._heading("Properties")
            self._block(terminal_tables.property_table(findings))

    def _passed(self, findings: tuple[Finding, ...]) -> None:
        if passed := groups_with(findings, "pass"):
            self._heading("Passed")
            self._block(terminal_tables.passed_table(passed))

    def _inputs(self, inputs: tuple[InputRole, ...]) -> None:
        if inputs:
            self._heading("Inputs")
            self._block(terminal_tables.input_table(inputs))

    def _swap(self, swap: SentencePair) -> None:
        self._heading("Does it see token order?")
        moved = frozenset(
            i for i, (a, b) in enumerate(zip(swap.tokens_first, swap.tokens_second, strict=False)) if a != b
        )
        self._key_values(
            [("first", self._tokens(swap.tokens_first, moved)), ("second", self._tokens(swap.tokens_second, moved))]
        )
        table = terminal_tables.rich_table("condition", "dtype", ">cosine", ">largest difference")
        for row in swap.distances:
            cells = (
                row.condition,
                row.dtype,
                phrases.cosine(row.cosine),
                phrases.format_difference(row.max_abs_difference),
            )
            table.add_row(*map(_text, cells))
        self._block(table)

    def _entry_maps(self, report: Report) -> None:
        for findings, entries in entry_map_phrases.entry_maps(report):
            describes = findings[0].law in entry_map_phrases.LEAK_TITLES
            if findings[0].output != phrases.main_output(report) or (describes and not self.details):
                continue
            self._heading(entry_map_phrases.entry_map_title(findings))
            for entry in entries:
                self._entry(entry)
            self._line(_text(entry_map_phrases.completeness(findings[0])))

    def _settings(self, report: Report) -> None:
        """The configuration that differs from the default, and the versions of the libraries."""
        if report.subject.configuration and self.details:
            self._heading("Configuration")
            self._line(_text("; ".join(f"{key} {value}" for key, value in report.subject.configuration.items())))
        if report.versions:
            self._heading("Versions")
            self._line(_text(", ".join(f"{name} {version}" for name, version in report.versions.items())))

    def _exit_code(self, report: Report) -> None:
        style = {0: "bold green", 1: "bold red"}.get(report.exit_code, "bold yellow")
        self.console.print()
        if hint := summary.recheck_hint(report):
            self._line(_text(hint), indent=0)
        self._line(
            Text.assemble((f"exit code {report.exit_code}", style), ": ", summary.exit_code_text(report)), indent=0
        )
        if not self.details and report.findings:
            self._line(_text(summary.details_hint(report)), indent=0)
        if hint := summary.resume_hint(report):
            self._line(_text(hint), indent=0)
        if hint := summary.gate_hint(report):
            self._line(Text.assemble("to make this a gate: ", hint), indent=0)


def _assumption_lines(report: Report) -> list[str]:
    return [
        f"{text} ({', '.join(dict.fromkeys(codes))})" if codes else text
        for text, codes in phrases.assumptions(report).items()
    ]
