"""The report as a short section of Markdown for a model card: checks, properties, assumptions and versions.

Names that come from a model are written as code spans. In every other text the characters that are active in Markdown
or HTML are escaped, so that no text starts a tag, a link, a list or a new cell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from orderproof.records.audit import Finding, Report
from orderproof.records.input_role import InputRole
from orderproof.report import file_output, phrases, summary, witness_phrases
from orderproof.report.markdown_table import markdown_table
from orderproof.report.theorem_phrases import proof_scope_text

ASSUMPTIONS_SHOWN = 8
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_ACTIVE = re.compile(r"[\\`*_\[\]{}|~#$!@^=&<>]")
_LINK = re.compile(r":(?=//)|(?<=\bwww)\.", re.IGNORECASE)  # some renderers turn bare addresses into links


def write_markdown(report: Report, target: str | Path) -> None:
    """Write the section to a file in one step, or to standard output when the target is ``-``."""
    file_output.write_file(render_markdown(report), target)


def render_markdown(report: Report) -> str:
    """The section as text."""
    parts = [f"## Token order of {code_span(report.subject.name)}", _summary(report)]
    untested = phrases.not_checked(report)
    lines = [f"{escape_markdown(', '.join(titles))}: {escape_markdown(why)}" for why, titles in untested.items()]
    parts += _bullet_section("Not checked", lines)
    parts += _table("Checks", ("check", "result"), [(_law(f), _result(f), f) for f in phrases.checks(report.findings)])
    described = [
        (escape_markdown(phrases.property_name(f)), _result(f), f) for f in phrases.properties(report.findings)
    ]
    parts += _table("Properties", ("property", "answer"), described)
    parts += _inputs(report.subject.inputs)
    excluded = phrases.not_applicable(report.findings)
    lines = [f"{escape_markdown(', '.join(titles))}: {escape_markdown(why)}" for why, titles in excluded.items()]
    parts += _bullet_section("Not applicable", lines)
    proved = [_proved_line(f, _name(f, report)) for f in report.findings if f.verdict == "proved"]
    parts += _bullet_section("Scope of the proofs", proved)
    parts += _bullet_section("Failed checks", [_failed_line(f, _name(f, report)) for f in report.violations])
    assumed = [escape_markdown(text) + _codes_suffix(codes) for text, codes in phrases.assumptions(report).items()]
    if len(assumed) > ASSUMPTIONS_SHOWN:
        assumed[ASSUMPTIONS_SHOWN:] = [f"{len(assumed) - ASSUMPTIONS_SHOWN:,} more in the JSON"]
    parts += _bullet_section("Assumptions", assumed)
    versions = {"orderproof": report.orderproof_version, **report.versions}
    parts.append(
        "Versions: "
        + ", ".join(f"{escape_markdown(name)} {escape_markdown(version)}" for name, version in versions.items())
    )
    return "\n\n".join(parts) + "\n"


def code_span(text: str) -> str:
    """The text as a code span, with a fence longer than any in it; in a table its bars need `_escape_bars`."""
    shown = " ".join(phrases.escape_control_characters(text).split()) or "-"
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", shown)), default=0))
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def escape_markdown(text: str) -> str:
    """The text on one line, with every character that is active in Markdown or HTML escaped."""
    shown = " ".join(phrases.escape_control_characters(text).split())
    shown = _ACTIVE.sub(lambda match: _ENTITIES.get(match[0], f"\\{match[0]}"), shown)
    return _LINK.sub(lambda match: f"\\{match[0]}", shown)


def _summary(report: Report) -> str:
    """The summary sentence with the subject as code, then what was audited."""
    sentence = summary.summary_sentence(report).removeprefix(report.subject.name)
    return f"{code_span(report.subject.name)}{escape_markdown(sentence)} {_audited(report)}"


def _audited(report: Report) -> str:
    return f"Audited: {escape_markdown(phrases.subject_line(report.subject))}."


def _result(finding: Finding) -> str:
    label = phrases.OUTCOME_LABELS[finding.outcome].lower()
    return f"**{label}**" if finding.kind == "check" and finding.outcome != "pass" else label


def _table(title: str, columns: tuple[str, str], rows: list[tuple[str, str, Finding]]) -> Iterator[str]:
    """A heading and a table of name, outcome and evidence; with the output where there are several."""
    if not rows:
        return
    several = _several_outputs(f for _, _, f in rows)
    head = ["code", columns[0], *(["output"] if several else []), columns[1], "how it is known", "law"]
    lines = []
    for name, result, f in rows:
        output = [_escape_bars(code_span(f.output)) if f.output else ""] if several else []
        known = escape_markdown(phrases.evidence_text(f))
        cells = [escape_markdown(f.code), _escape_bars(name), *output, result, known, escape_markdown(f.statement)]
        lines.append(cells)
    yield f"### {title}"
    yield markdown_table(head, lines)


def _inputs(inputs: tuple[InputRole, ...]) -> Iterator[str]:
    """A heading and a table of the role of each input, and how it is known."""
    if inputs:
        rows = [(_escape_bars(code_span(i.name)), escape_markdown(i.role), escape_markdown(i.known_by)) for i in inputs]
        yield "### Inputs"
        yield markdown_table(("input", "role", "how it is known"), rows)


def _escape_bars(span: str) -> str:
    """A code span in a table: there, and only there, a backslash keeps a bar from ending the cell."""
    return span.replace("|", "\\|")


def _proved_line(finding: Finding, name: str) -> str:
    text = escape_markdown(proof_scope_text(finding.scope, finding.theorem))
    length = phrases.length_text(finding.scope)
    if finding.theorem is None:
        text = f"{text}, {length}"
    if finding.scope.tensors_read:
        where = f"in the proof {length}, " if finding.theorem is not None and finding.theorem.proved else ""
        text = f"{text}; {where}{_values_used(finding)}"
    return f"{name}: {text}" + ("; vacuous: no token can see another" if finding.vacuous else "")


def _values_used(finding: Finding, limit: int = 3) -> str:
    names = finding.scope.tensors_read
    rest = f" and {len(names) - limit:,} more" if len(names) > limit else ""
    return f"values used: {', '.join(code_span(n) for n in names[:limit])}{rest}"


def _failed_line(finding: Finding, name: str) -> str:
    if finding.same_cause_as:
        return f"{name} failed: {escape_markdown(witness_phrases.same_cause_text(finding))}"
    text = f"{name} failed: {escape_markdown(phrases.summary_clause(finding))}"
    return f"{text}. To do: {escape_markdown(finding.remedy)}" if finding.remedy else text


def _name(finding: Finding, report: Report) -> str:
    """Code and law; with the output, where the report has several."""
    output = f" of {code_span(finding.output)}" if finding.output and _several_outputs(report.findings) else ""
    return f"{escape_markdown(finding.code)} {_law(finding)}{output}"


def _law(finding: Finding) -> str:
    mode = phrases.shown_call_mode(finding)
    return code_span(finding.law) + (f" ({escape_markdown(mode)})" if mode else "")


def _several_outputs(findings: Iterable[Finding]) -> bool:
    return len({f.output for f in findings if f.output}) > 1


def _codes_suffix(codes: Iterable[str]) -> str:
    named = ", ".join(escape_markdown(c) for c in dict.fromkeys(codes))
    return f" ({named})" if named else ""


def _bullet_section(title: str, lines: Iterable[str]) -> Iterator[str]:
    text = "\n".join(f"- {line}" for line in lines)
    if text:
        yield f"### {title}"
        yield text
