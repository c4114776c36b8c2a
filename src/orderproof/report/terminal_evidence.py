"""The evidence of a report in a terminal: proofs, comparisons, witnesses and places, block by block."""

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
    Theorem,
    Verdict,
    Witness,
)
from orderproof.report import entry_map_phrases, phrases, terminal_tables, witness_phrases
from orderproof.report.place import remedy_code_label
from orderproof.report.terminal_blocks import print_block
from orderproof.report.terminal_tables import plain_text as _text

INDENT = 2


class EvidencePrinter:
    """Blocks of evidence on one console."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.marks = ("<<", ">>") if console.options.ascii_only else ("«", "»")

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
        self._key_values(self._witness_rows(finding, witness) + fix_rows(finding))

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
            *([(witness_phrases.onset_label(finding), _text(witness.onset))] if witness.onset else []),
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

    def _tokens(self, tokens: tuple[str, ...], marked: frozenset[int]) -> Text:
        left, right = self.marks
        positions, shown = witness_phrases.shown_positions(tokens, marked), []
        for before, i in zip([-1, *positions], positions, strict=False):
            shown += [Text("...", "dim")] * (i > before + 1)
            name = phrases.escape_control_characters(tokens[i])
            shown.append(Text(f"{left}{name}{right}", "bold magenta") if i in marked else _text(tokens[i]))
        if more := witness_phrases.more_tokens_text(tokens, positions):
            shown.append(Text(more, "dim"))
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


def fix_rows(finding: Finding) -> list[tuple[str, Text]]:
    """The remedy of a violation in words and as code."""
    rows = [("to do", _text(finding.remedy))] if finding.remedy else []
    label = remedy_code_label(finding)
    return rows + [("" if k else label, _text(line)) for k, line in enumerate(finding.remedy_diff.splitlines())]


def _deviation_text(deviation: Deviation) -> str:
    fall = phrases.precision_ratio_text(deviation)
    float32, float64 = map(phrases.format_difference, (deviation.float32, deviation.float64))
    text = f"float32 {float32}, float64 {float64}"
    return f"{text} ({fall})" if fall else text
