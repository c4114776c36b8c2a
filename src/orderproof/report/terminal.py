"""The report in a terminal; the text is the same with and without colour."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from orderproof.records.audit import (
    Completion,
    Deviation,
    Entry,
    Finding,
    Proof,
    Report,
    Scope,
    SentencePair,
    Theorem,
    Verdict,
    Witness,
)
from orderproof.report import entry_map_phrases, phrases, summary, terminal_tables, witness_phrases
from orderproof.report.law_groups import groups_with, property_groups
from orderproof.report.place import MASK_LEGEND, finding_place, mask_lines, mask_of, remedy_code_label
from orderproof.report.terminal_blocks import print_block
from orderproof.report.terminal_tables import plain_text as _text

TOKENS_SHOWN = 64
INDENT = 2


def render_text(report: Report, console: Console, *, details: bool = True) -> None:
    """Print the report on the console; `details`: with every proof, comparison, witness and assumption."""
    _AuditPrinter(console, details=details).report(report)


class _AuditPrinter:
    """One report on one console."""

    def __init__(self, console: Console, *, details: bool) -> None:
        self.console = console
        self.details = details
        self.marks = ("<<", ">>") if console.options.ascii_only else ("«", "»")

    def report(self, report: Report) -> None:
        self._line(_text(report.subject.name, "bold"), indent=0)
        self._line(_text(phrases.subject_line(report.subject)), indent=0)
        self.console.print()
        self._line(_text(summary.summary_sentence(report)), indent=0)
        self._failed(report)
        self._undecided(report)
        self._properties(report.findings)
        if report.sentence_pair:
            self._swap(report.sentence_pair)
        self._entry_maps(report)
        self._passed(report.findings)
        if self.details:
            self._details(report)
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

    # ------------------------------------------------------------ sections

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
        place = finding_place(finding)
        rows = [("line", _text(place.source)), ("", _text(place.text))]
        if (mask := mask_of(finding)) is not None:
            drawn = [_text(line, "bold") for line in mask_lines(mask)]
            rows += [("mask" if k == 0 else "", line) for k, line in enumerate(drawn)] + [("", _text(MASK_LEGEND))]
        if finding.witness is not None:
            rows += self._witness_rows(finding, finding.witness)
        else:
            rows.append(("found", _text(phrases.evidence_text(finding))))
        return [row for row in [*rows, *_fix_rows(finding)] if row[1].plain]

    def _undecided(self, report: Report) -> None:
        lines = [
            f"{phrases.law_title(g.first)}: {phrases.summary_clause(g.first)}"
            for g in groups_with(report.findings, "undecided")
        ]
        self._list("Undecided", lines)

    def _properties(self, findings: tuple[Finding, ...]) -> None:
        if property_groups(findings):
            self._heading("Properties")
            self._block(terminal_tables.property_table(findings))

    def _passed(self, findings: tuple[Finding, ...]) -> None:
        if passed := groups_with(findings, "pass"):
            self._heading("Passed")
            self._block(terminal_tables.passed_table(passed))

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

    def _entry(self, entry: Entry) -> None:
        self._line(Text.assemble(_text(entry.operator, "bold"), "  ", entry_map_phrases.sites(entry)))
        rows = [
            ("module", entry.module or "(the model itself)"),
            ("source", entry.source),
            ("text", entry.source_line.strip()),
            ("origin", entry.origin),
            ("computed at", entry_map_phrases.constant_source(entry)),
            ("reason", entry.reason),
        ]
        self._key_values([(key, _text(value)) for key, value in rows if value], indent=2 * INDENT)

    def _proofs(self, findings: Iterable[Finding]) -> None:
        first = True
        for finding in findings:
            if finding.proof:
                first = self._proof_heading(first=first)
                title = phrases.law_title(finding)
                self._proof(
                    title, finding.verdict, finding.scope, finding.proof, finding.deviation,
                    theorem=finding.theorem, vacuous=finding.vacuous,
                )  # fmt: skip
            if finding.completion:
                first = self._proof_heading(first=first)
                self._completion(finding, finding.completion)

    def _proof_heading(self, *, first: bool) -> bool:
        if first:
            self._heading("Proof")
        return False

    def _completion(self, finding: Finding, done: Completion) -> None:
        title = (
            f"{finding.law} {phrases.without_positions_text(done.uniform_operand_count)}"
            if done.uniform_operand_count
            else f"{finding.law} without order"
        )
        if done.proof:
            self._proof(title, done.verdict, done.scope, done.proof, done.deviation)
        else:
            self._verdict_line(title, done.verdict, done.scope)
        if done.reason:
            self._line(_text(done.reason), indent=2 * INDENT)

    def _proof(
        self, title: str, verdict: Verdict, scope: Scope, proof: Proof, deviation: Deviation, *,
        theorem: Theorem | None = None, vacuous: bool = False,
    ) -> None:  # fmt: skip
        self._verdict_line(title, verdict, scope, theorem)
        lemmas = ", ".join(f"{lemma} {count:,}" for lemma, count in phrases.lemma_counts(proof))
        distinct = (
            f" ({proof.distinct_step_count:,} distinct)" if 0 < proof.distinct_step_count < proof.step_count else ""
        )
        rows = [
            (
                "steps",
                f"{proof.step_count:,}{distinct}, {phrases.length_text(scope)}; {phrases.values_used_text(scope)}",
            ),
            ("lemmas", lemmas),
        ]
        if vacuous:
            rows.append(("vacuous", "no token can see another, so the law says nothing about mixing"))
        rows.append(("measured", _deviation_text(deviation)))
        self._key_values([(key, _text(value)) for key, value in rows], indent=2 * INDENT)

    def _verdict_line(self, title: str, verdict: Verdict, scope: Scope, theorem: Theorem | None = None) -> None:
        word = phrases.PROOF_LABELS[verdict]
        rest = phrases.verdict_text(verdict, scope, theorem).removeprefix(word)
        self._line(Text.assemble(_text(title), ": ", Text(word, "bold"), _text(rest)))

    def _measurements(self, findings: tuple[Finding, ...]) -> None:
        if not findings:
            return
        self._heading("Measured")
        self._line(_text(phrases.MEASUREMENT_NOTE))
        self._block(terminal_tables.measurement_table(findings))

    def _witness(self, finding: Finding, witness: Witness) -> None:
        self._heading(f"Witness: {witness_phrases.witness_title(finding)}")
        if finding.same_cause_as:
            self._line(_text(witness_phrases.same_cause_text(finding)))
            return
        self._key_values(self._witness_rows(finding, witness) + _fix_rows(finding))

    def _witness_rows(self, finding: Finding, witness: Witness) -> list[tuple[str, Text]]:
        difference = phrases.format_difference(witness.relative_difference)
        rows = [("compared" if finding.measurement is not None else "change", _text(witness.change))]
        if witness.tokens_before or witness.tokens_after:
            marked = witness_phrases.changed_positions(witness)
            rows += [
                ("before", self._tokens(witness.tokens_before, marked)),
                ("after", self._tokens(witness.tokens_after, marked)),
            ]
        rows += [
            ("output", _text(witness_phrases.witness_outcome(witness, finding.output))),
            ("difference", _text(f"{difference}, {witness_phrases.witness_origin(witness)}")),
            ("measured", _text(_deviation_text(finding.deviation))),
            *([("lengths", _text(witness.onset))] if witness.onset else []),
        ]
        return rows

    def _other_outputs(self, report: Report) -> None:
        """Entries of other outputs that the first output does not have, one line each."""
        maps = entry_map_phrases.entry_maps(report)
        main = phrases.main_output(report)
        seen = {e.model_dump_json() for findings, entries in maps if findings[0].output == main for e in entries}
        lines = []
        for findings, entries in maps:
            for e in entries:
                if findings[0].output != main and e.model_dump_json() not in seen:
                    seen.add(e.model_dump_json())
                    lines.append(f"{findings[0].output}: {e.operator} in {e.module} ({e.source}): {e.reason}")
        self._list("Other outputs", lines)

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
        self._line(
            Text.assemble((f"exit code {report.exit_code}", style), ": ", summary.exit_code_text(report)), indent=0
        )
        if not self.details and report.findings:
            self._line(_text(summary.details_hint(report)), indent=0)
        if hint := summary.gate_hint(report):
            self._line(Text.assemble("to make this a gate: ", hint), indent=0)

    # ------------------------------------------------------------ pieces

    def _tokens(self, tokens: tuple[str, ...], marked: frozenset[int]) -> Text:
        left, right = self.marks
        shown = [
            Text(f"{left}{phrases.escape_control_characters(token)}{right}", "bold magenta")
            if i in marked
            else _text(token)
            for i, token in enumerate(tokens[:TOKENS_SHOWN])
        ]
        if len(tokens) > TOKENS_SHOWN:
            shown.append(Text(f"and {len(tokens) - TOKENS_SHOWN:,} more tokens", "dim"))
        return Text(" ").join(shown)

    def _heading(self, title: str, style: str = "bold underline") -> None:
        self.console.print()
        self._line(_text(title, style), indent=0)

    def _line(self, text: Text, *, indent: int = INDENT) -> None:
        if text.plain:
            self._block(text, indent=indent)

    def _list(self, title: str, lines: Iterable[str]) -> None:
        texts = [_text(line) for line in lines]
        if texts:
            self._heading(title)
            self._key_values([("-", text) for text in texts])

    def _key_values(self, rows: Iterable[tuple[str, Text]], *, indent: int = INDENT) -> None:
        """Aligned names and values; long values wrap under themselves."""
        grid = Table.grid(padding=(0, 2))
        grid.add_column(no_wrap=True, style="dim")
        grid.add_column(overflow="fold")
        for key, value in rows:
            grid.add_row(key, value)
        self._block(grid, indent=indent)

    def _block(self, renderable: Text | Table, *, indent: int = INDENT) -> None:
        print_block(self.console, renderable, indent=indent)


def _fix_rows(finding: Finding) -> list[tuple[str, Text]]:
    """The remedy of a violation in words and as code."""
    rows = [("to do", _text(finding.remedy))] if finding.remedy else []
    label = remedy_code_label(finding)
    return rows + [("" if k else label, _text(line)) for k, line in enumerate(finding.remedy_diff.splitlines())]


def _assumption_lines(report: Report) -> list[str]:
    return [
        f"{text} ({', '.join(dict.fromkeys(codes))})" if codes else text
        for text, codes in phrases.assumptions(report).items()
    ]


def _deviation_text(deviation: Deviation) -> str:
    fall = phrases.precision_ratio_text(deviation)
    float32, float64 = map(phrases.format_difference, (deviation.float32, deviation.float64))
    text = f"float32 {float32}, float64 {float64}"
    return f"{text} ({fall})" if fall else text
