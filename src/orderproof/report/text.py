"""The report in a terminal: restrained and exact, and the same words without colour as with it."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from orderproof.record import Completion, Deviation, Entry, Finding, Proof, Report, Scope, Swap, Verdict, Witness
from orderproof.report import tables, words
from orderproof.report.printing import print_block
from orderproof.report.tables import STYLES
from orderproof.report.tables import text as _text

TOKENS_SHOWN = 64
INDENT = 2


def render_text(report: Report, console: Console) -> None:
    """Print the report on the console."""
    _Page(console).report(report)


class _Page:
    """One report on one console."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.marks = ("<<", ">>") if console.options.ascii_only else ("«", "»")

    def report(self, report: Report) -> None:
        self._line(_text(report.subject.name, "bold"), indent=0)
        self._line(_text(words.subject_line(report.subject)), indent=0)
        if report.swap:
            self._swap(report.swap)
        main = [f for f in report.findings if f.output == words.main_output(report) or f.measurement is not None]
        self._entry_maps(report)
        self._proofs(main)
        self._fingerprint(report.findings)
        self._measured(words.measured(report))
        for finding in main:
            if finding.witness:
                self._witness(finding, finding.witness)
        for finding in main:
            if finding.fix and not finding.witness:
                self._heading(f"What to do about {words.name(finding)}")
                self._pairs(_remedy(finding))
        self._others(report)
        self._list("Assumptions", _assumptions(report))
        self._list("Notes", report.notes)
        self._exit(report)

    # ------------------------------------------------------------ sections

    def _swap(self, swap: Swap) -> None:
        self._heading("Does it know order?")
        moved = frozenset(
            i for i, (a, b) in enumerate(zip(swap.tokens_first, swap.tokens_second, strict=False)) if a != b
        )
        self._pairs(
            [("first", self._tokens(swap.tokens_first, moved)), ("second", self._tokens(swap.tokens_second, moved))]
        )
        table = tables.table("condition", "dtype", ">cosine", ">largest difference")
        for row in swap.rows:
            cells = (row.condition, row.dtype, words.cosine(row.cosine), words.size(row.largest_difference))
            table.add_row(*map(_text, cells))
        self._block(table)

    def _entry_maps(self, report: Report) -> None:
        for findings, entries in words.entry_maps(report):
            if findings[0].output != words.main_output(report):
                continue
            self._heading(words.map_title(findings))
            for entry in entries:
                self._entry(entry)
            self._line(_text(words.completeness(findings[0])))

    def _entry(self, entry: Entry) -> None:
        self._line(Text.assemble(_text(entry.operator, "bold"), "  ", words.sites(entry)))
        rows = [
            ("module", entry.module or "(the model itself)"),
            ("source", entry.source),
            ("text", entry.text.strip()),
            ("origin", entry.origin),
            ("made at", words.maker(entry)),
            ("reason", entry.reason),
        ]
        self._pairs([(key, _text(value)) for key, value in rows if value], indent=2 * INDENT)

    def _proofs(self, findings: Iterable[Finding]) -> None:
        first = True
        for finding in findings:
            if finding.proof:
                first = self._proof_heading(first=first)
                title = words.name(finding)
                self._proof(
                    title, finding.verdict, finding.scope, finding.proof, finding.deviation, vacuous=finding.vacuous
                )
            if finding.completion:
                first = self._proof_heading(first=first)
                self._completion(finding, finding.completion)

    def _proof_heading(self, *, first: bool) -> bool:
        if first:
            self._heading("Proof")
        return False

    def _completion(self, finding: Finding, done: Completion) -> None:
        made = f"{finding.law} {words.uniformed(done.uniform)}" if done.uniform else f"{finding.law} without order"
        if done.proof:
            self._proof(made, done.verdict, done.scope, done.proof, done.deviation, vacuous=False)
        else:
            self._verdict_line(made, done.verdict, done.scope)
        if done.reason:
            self._line(_text(done.reason), indent=2 * INDENT)

    def _proof(
        self, title: str, verdict: Verdict, scope: Scope, proof: Proof, deviation: Deviation, *, vacuous: bool
    ) -> None:
        self._verdict_line(title, verdict, scope)
        lemmas = ", ".join(f"{lemma} {count:,}" for lemma, count in words.lemmas(proof))
        distinct = f" ({proof.distinct:,} distinct)" if 0 < proof.distinct < proof.steps else ""
        rows = [
            (
                "steps",
                f"{proof.steps:,}{distinct}, {words.at_length(scope)}; {words.consulted(scope)}",
            ),
            ("lemmas", lemmas),
        ]
        if vacuous:
            rows.append(("vacuous", "no token can see another, so the law says nothing about mixing"))
        rows.append(("measured", _ladder(deviation)))
        self._pairs([(key, _text(value)) for key, value in rows], indent=2 * INDENT)

    def _verdict_line(self, title: str, verdict: Verdict, scope: Scope) -> None:
        word, _, rest = words.verdict_of(verdict, scope).partition(" for ")
        quantifier = Text(f" for {rest}" if rest else "")
        self._line(Text.assemble(_text(title), ": ", Text(word, STYLES[verdict]), quantifier))

    def _fingerprint(self, findings: tuple[Finding, ...]) -> None:
        if not findings:
            return
        self._heading("Symmetry fingerprint")
        self._block(tables.fingerprint(findings))

    def _measured(self, findings: tuple[Finding, ...]) -> None:
        if not findings:
            return
        self._heading("Measured")
        self._line(_text(words.HOW_MEASURED))
        self._block(tables.measured(findings))

    def _witness(self, finding: Finding, witness: Witness) -> None:
        self._heading(f"Witness against {words.name(finding)}")
        rows = [("compared" if finding.measurement is not None else "change", _text(witness.change))]
        if witness.before or witness.after:
            marked = words.changed(witness)
            rows += [("before", self._tokens(witness.before, marked)), ("after", self._tokens(witness.after, marked))]
        rows += [
            ("output", _text(words.outcome(witness, finding.output))),
            ("difference", _text(f"{words.size(witness.difference)}, {words.origin(witness)}")),
            ("measured", _text(_ladder(finding.deviation))),
        ]
        self._pairs(rows + _remedy(finding))

    def _others(self, report: Report) -> None:
        """What the other outputs add to the main one's entry map, in a line each; the files hold the rest."""
        maps = words.entry_maps(report)
        main = words.main_output(report)
        seen = {e.model_dump_json() for findings, entries in maps if findings[0].output == main for e in entries}
        lines = []
        for findings, entries in maps:
            for e in entries:
                if findings[0].output != main and e.model_dump_json() not in seen:
                    seen.add(e.model_dump_json())
                    lines.append(f"{findings[0].output}: {e.operator} in {e.module} ({e.source}): {e.reason}")
        self._list("Other outputs", lines)

    def _exit(self, report: Report) -> None:
        style = {0: "bold green", 1: "bold red"}.get(report.exit_code, "bold yellow")
        self.console.print()
        self._line(Text.assemble((f"exit code {report.exit_code}", style), ": ", words.exit_sentence(report)), indent=0)

    # ------------------------------------------------------------ pieces

    def _tokens(self, tokens: tuple[str, ...], marked: frozenset[int]) -> Text:
        left, right = self.marks
        shown = [
            Text(f"{left}{words.visible(token)}{right}", "bold magenta") if i in marked else _text(token)
            for i, token in enumerate(tokens[:TOKENS_SHOWN])
        ]
        if len(tokens) > TOKENS_SHOWN:
            shown.append(Text(f"and {len(tokens) - TOKENS_SHOWN:,} more tokens", "dim"))
        return Text(" ").join(shown)

    def _heading(self, title: str) -> None:
        self.console.print()
        self._line(_text(title, "bold underline"), indent=0)

    def _line(self, text: Text, *, indent: int = INDENT) -> None:
        if text.plain:
            self._block(text, indent=indent)

    def _list(self, title: str, lines: Iterable[str]) -> None:
        texts = [_text(line) for line in lines]
        if texts:
            self._heading(title)
            self._pairs([("-", text) for text in texts])

    def _pairs(self, rows: Iterable[tuple[str, Text]], *, indent: int = INDENT) -> None:
        """Aligned names and values; long values wrap under themselves."""
        grid = Table.grid(padding=(0, 2))
        grid.add_column(no_wrap=True, style="dim")
        grid.add_column(overflow="fold")
        for key, value in rows:
            grid.add_row(key, value)
        self._block(grid, indent=indent)

    def _block(self, renderable: Text | Table, *, indent: int = INDENT) -> None:
        print_block(self.console, renderable, indent=indent)


def _remedy(finding: Finding) -> list[tuple[str, Text]]:
    """What to do about a violation, in words and as code."""
    rows = [("to do", _text(finding.fix))] if finding.fix else []
    return rows + [("" if k else "as code", _text(line)) for k, line in enumerate(finding.diff.splitlines())]


def _assumptions(report: Report) -> list[str]:
    return [
        f"{text} ({', '.join(dict.fromkeys(codes))})" if codes else text
        for text, codes in words.assumptions(report).items()
    ]


def _ladder(deviation: Deviation) -> str:
    fall = words.fall(deviation)
    text = f"float32 {words.size(deviation.float32)}, float64 {words.size(deviation.float64)}"
    return f"{text} ({fall})" if fall else text
