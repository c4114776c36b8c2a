"""What supports a finding, as lines of plain text: the same in a failed test, an XML file and an alert.

Every text that comes from a model is spelt out where it holds control characters (`words.visible`), so that a
line stays a line and XML stays XML.
"""

from __future__ import annotations

from orderproof.record import Entry, Finding, Measurement, Witness
from orderproof.report import words

TOKENS_SHOWN = 64
_SHOULD = {"holds": "should hold", "fails": "should fail", "any": "may hold or fail"}


def headline(finding: Finding) -> str:
    """``OP201 causal should hold and is REFUTED``."""
    return words.visible(f"{words.name(finding)} {_SHOULD[finding.expected]} and is {words.VERDICTS[finding.verdict]}")


def evidence(finding: Finding) -> list[tuple[str, str]]:
    """Names and values, a line each: the law, the witness before and after, where it is first seen, the reason."""
    rows = [("law", finding.statement), ("output", finding.output), ("length", str(finding.scope.length))]
    if finding.witness is not None:
        rows += _witness(finding, finding.witness)
    if finding.measurement is not None:
        rows += _measured(finding, finding.measurement)
    if finding.proof is not None:
        rows.append(("proof", f"{words.count(finding.proof.steps, 'step')}, {words.consulted(finding.scope, limit=3)}"))
    if finding.vacuous:
        rows.append(("vacuous", "no token can see another"))
    rows += [("entry", entry_line(entry)) for entry in finding.entries]
    told = finding.witness is not None and finding.witness.change == finding.reason
    rows += [("reason", "" if told else finding.reason), ("to do", finding.fix)]
    rows += [("as code", line) for line in finding.diff.splitlines()]
    return [(name, words.visible(value)) for name, value in rows if value]


def aligned(rows: list[tuple[str, str]], *, indent: int = 2) -> list[str]:
    """The rows as lines, their values under each other."""
    width = max((len(name) for name, _ in rows), default=0)
    return [f"{' ' * indent}{name:<{width}}  {value}" for name, value in rows]


def entry_line(entry: Entry) -> str:
    """``aten.add.Tensor in embeddings (modeling_bert.py:104): why``."""
    place = f"{entry.operator} in {entry.module or '(the model itself)'}"
    if entry.source:
        place += f" ({entry.source})"
    if entry.sites > 1:
        place += f" at {entry.sites:,} sites"
    return f"{place}: {entry.reason}" if entry.reason else place


def _witness(finding: Finding, witness: Witness) -> list[tuple[str, str]]:
    marked = words.changed(witness)
    ladder = finding.deviation
    measured = f"float32 {words.size(ladder.float32)}, float64 {words.size(ladder.float64)}"
    drawn = "" if witness.weights == "given" else f"drawn anew with seed {witness.seed}"
    return [
        ("compared" if finding.measurement is not None else "change", witness.change),
        ("before", _tokens(witness.before, marked)),
        ("after", _tokens(witness.after, marked)),
        ("differs", f"{words.outcome(witness, finding.output)}, by {words.size(witness.difference)} ({measured})"),
        ("first seen", witness.module),
        ("weights", drawn),
    ]


def _measured(finding: Finding, measurement: Measurement) -> list[tuple[str, str]]:
    """A line for each comparison, what difference is allowed and how far the control moved it."""
    rows = []
    for trial in measurement.trials:
        double = words.double(trial)
        sizes = f"float32 {words.single(trial)}" + (f", float64 {double}" if double else "")
        why = words.doubt(trial)
        rows.append(("trial", f"{trial.what}: {sizes}" + (f" ({why})" if why else "")))
    return [*rows, ("tolerance", words.size(measurement.tolerance)), ("control", words.control(finding))]


def _tokens(tokens: tuple[str, ...], marked: frozenset[int]) -> str:
    shown = [f"«{token}»" if i in marked else token for i, token in enumerate(tokens[:TOKENS_SHOWN])]
    if len(tokens) > TOKENS_SHOWN:
        shown.append(f"and {len(tokens) - TOKENS_SHOWN:,} more tokens")
    return " ".join(shown)
