"""The report as a short section of Markdown for a model card: what holds, on what it rests, with which versions.

Names that come from a model are written as code, every other text with what Markdown or HTML could read escaped, so
that none can start a tag, a link, a list or a new cell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from orderproof.record import Finding, Report
from orderproof.report import destination, words

ASSUMPTIONS_SHOWN = 8
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_ACTIVE = re.compile(r"[\\`*_\[\]{}|~#$!@^=&<>]")
_LINK = re.compile(r":(?=//)|(?<=\bwww)\.", re.IGNORECASE)  # what some readers make a link of by itself


def write_markdown(report: Report, target: str | Path) -> None:
    """Write the section to a file in one step, or to standard output when the target is ``-``."""
    destination.write(render_markdown(report), target)


def render_markdown(report: Report) -> str:
    """The section as text."""
    parts = [f"## Token order of {code(report.subject.name)}", _about(report), *_table(report.findings)]
    parts += _list("Proved", [_proved(f, _name(f, report)) for f in report.findings if f.verdict == "proved"])
    parts += _list("Measured", [f"{_name(f, report)}: {_short(f)}" for f in report.findings if f.verdict == "held"])
    parts += _list("Not as expected", [_unmet(f, _name(f, report)) for f in (*report.violations, *report.undecided)])
    assumed = [escaped(text) + _of(codes) for text, codes in words.assumptions(report).items()]
    if len(assumed) > ASSUMPTIONS_SHOWN:
        assumed[ASSUMPTIONS_SHOWN:] = [f"{len(assumed) - ASSUMPTIONS_SHOWN:,} more in the JSON"]
    parts += _list("Assumptions", assumed)
    versions = {"orderproof": report.orderproof, **report.versions}
    parts.append("Versions: " + ", ".join(f"{escaped(name)} {escaped(version)}" for name, version in versions.items()))
    return "\n\n".join(parts) + "\n"


def code(text: str) -> str:
    """The text as a code span, with a fence longer than any in it; a bar in it does not end a table's cell."""
    shown = " ".join(words.visible(text).split()) or "-"
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", shown)), default=0))
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def escaped(text: str) -> str:
    """The text on one line, with every character that Markdown or HTML could read as more than itself escaped."""
    shown = " ".join(words.visible(text).split())
    shown = _ACTIVE.sub(lambda found: _ENTITIES.get(found[0], f"\\{found[0]}"), shown)
    return _LINK.sub(lambda found: f"\\{found[0]}", shown)


def _about(report: Report) -> str:
    return f"Audited: {escaped(words.subject_line(report.subject))}. {_ending(report)}"


def _ending(report: Report) -> str:
    bad, still_open = len(report.violations), len(report.undecided)
    if not bad and not still_open:
        return "Every law is as expected."
    parts = [f"{bad:,} {'is' if bad == 1 else 'are'} not as expected"] if bad else []
    parts += [f"{still_open:,} could not be decided"] if still_open else []
    return f"Of {words.count(len(report.findings), 'finding')}, {' and '.join(parts)}."


def _table(findings: tuple[Finding, ...]) -> Iterator[str]:
    if not findings:
        return
    several = _several(findings)
    head = ["code", "law", *(["output"] if several else []), "verdict", "expected", "met", "says"]
    rows = []
    for f in findings:
        output = [_cell(code(f.output)) if f.output else ""] if several else []
        verdict = words.VERDICTS[f.verdict].lower()
        verdict = verdict if f.met else f"**{verdict}**"
        met = "yes" if f.met else "**no**"
        cells = [
            escaped(f.code),
            _cell(_law(f)),
            *output,
            verdict,
            words.EXPECTED[f.expected],
            met,
            escaped(f.statement),
        ]
        rows.append(f"| {' | '.join(cells)} |")
    yield "\n".join([f"| {' | '.join(head)} |", f"| {' | '.join('---' for _ in head)} |", *rows])


def _cell(span: str) -> str:
    """A code span in a table: there, and only there, a backslash keeps a bar from ending the cell."""
    return span.replace("|", "\\|")


def _proved(finding: Finding, name: str) -> str:
    scope = words.verdict_of(finding.verdict, finding.scope).removeprefix(words.VERDICTS["proved"]).strip()
    consulted = f"; {_consulted(finding)}" if finding.scope.consulted else ""
    vacuous = "; vacuous: no token can see another" if finding.vacuous else ""
    return f"{name}: {scope}, {words.at_length(finding.scope)}{consulted}{vacuous}"


def _consulted(finding: Finding, limit: int = 3) -> str:
    names = finding.scope.consulted
    rest = f" and {len(names) - limit:,} more" if len(names) > limit else ""
    return f"values used: {', '.join(code(n) for n in names[:limit])}{rest}"


def _unmet(finding: Finding, name: str) -> str:
    told = f"{name} is {words.VERDICTS[finding.verdict].lower()}: {_short(finding)}"
    return f"{told}. To do: {escaped(finding.fix)}" if finding.fix else told


def _short(finding: Finding) -> str:
    return escaped(words.in_short(finding))


def _name(finding: Finding, report: Report) -> str:
    """Code and law; with the output, where the report has several."""
    output = f" of {code(finding.output)}" if finding.output and _several(report.findings) else ""
    return f"{escaped(finding.code)} {_law(finding)}{output}"


def _law(finding: Finding) -> str:
    setting = f" ({escaped(finding.setting)})" if finding.setting in words.SEVERAL else ""
    return f"{code(finding.law)}{setting}"


def _several(findings: tuple[Finding, ...]) -> bool:
    return len({f.output for f in findings if f.output}) > 1


def _of(codes: Iterable[str]) -> str:
    named = ", ".join(escaped(c) for c in dict.fromkeys(codes))
    return f" ({named})" if named else ""


def _list(title: str, lines: Iterable[str]) -> Iterator[str]:
    made = "\n".join(f"- {line}" for line in lines)
    if made:
        yield f"### {title}"
        yield made
