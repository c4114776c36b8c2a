"""The sentences and numbers every renderer says in the same way."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterator

from orderproof.record import (
    Deviation,
    Entry,
    Finding,
    Measurement,
    Proof,
    Report,
    Scope,
    SubjectRecord,
    TrialRecord,
    Verdict,
    Witness,
)

VERDICTS: dict[Verdict, str] = {
    "proved": "PROVED",
    "refuted": "REFUTED",
    "undecided": "UNDECIDED",
    "held": "HELD",
    "not_applicable": "NOT APPLICABLE",
}
EXPECTED = {"holds": "holds", "fails": "fails", "any": "either"}

HOW_MEASURED = (
    "Each comparison is of two ways of working out the same numbers, and its number the largest relative difference "
    "between them; float64 is run where float32 leaves a doubt. The control changes what must matter: where that "
    "moves little, nothing can be told."
)
SEVERAL = ("packed", "blocked")  # settings of a law that is asked in several
LEAKS = {
    "causal": "Where tokens see later ones",
    "padding": "Where tokens see pads",
    "packing": "Where documents see each other",
    "batch": "Where rows see each other",
}


def visible(text: str) -> str:
    """The text with every control and direction character spelt out, so that none can act."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or unicodedata.category(c) == "Zs" else _spelt(c) for c in text)


def _spelt(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def count(number: int, one: str, many: str = "") -> str:
    """``1 step``, ``1,204 steps``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def size(value: float | None) -> str:
    """A difference, to two digits; an exact zero is ``0``."""
    return "not run" if value is None else "0" if value == 0 else f"{value:.2g}"


def cosine(value: float) -> str:
    """A cosine to four digits; one that rounds to 1 is given by its distance from 1."""
    gap = 1 - value
    if gap == 0:
        return "1"
    if abs(gap) < 5e-5:
        return f"1 {'-' if gap > 0 else '+'} {abs(gap):.1e}"
    return f"{value:.4f}"


def number(value: float | None) -> str:
    """A value to six digits."""
    return "not known" if value is None else f"{value:.6g}"


def subject_line(subject: SubjectRecord) -> str:
    """Kind, size and where it came from."""
    parts = [subject.kind, count(subject.parameters, "parameter")]
    if subject.layers is not None:
        parts.append(count(subject.layers, "layer"))
    return ", ".join(part for part in [*parts, subject.detail] if part)


def name(finding: Finding) -> str:
    """``OP101 order_blind``; ``OP203 packing (packed)`` where a law is asked in several settings."""
    return f"{finding.code} {law(finding)}"


def law(finding: Finding) -> str:
    """The law's name, with the setting where it has several."""
    return f"{finding.law} ({finding.setting})" if finding.setting in SEVERAL else finding.law


def verdict_of(verdict: Verdict, scope: Scope) -> str:
    """The verdict with what it is true of."""
    word = VERDICTS[verdict]
    if verdict != "proved":
        return word
    if scope.weights == "these":
        return f"{word} for these weights"
    return f"{word} for every value of every parameter"


def at_length(scope: Scope) -> str:
    """The length a proof was made at, and whether it holds at every other."""
    return f"at length {scope.length}" + (", and so at every other" if scope.lengths == "every" else "")


def consulted(scope: Scope, *, limit: int = 6) -> str:
    """Which tensors the proof read, or that it read none."""
    if not scope.consulted:
        return "no parameter's values were used"
    names = ", ".join(scope.consulted[:limit])
    rest = len(scope.consulted) - limit
    return f"values used: {names}" + (f" and {rest:,} more" if rest > 0 else "")


def lemmas(proof: Proof) -> list[tuple[str, int]]:
    """The lemmas a proof used, the most used first."""
    return sorted(proof.lemmas.items(), key=lambda item: (-item[1], item[0]))


def sites(entry: Entry) -> str:
    """``constant at 12 sites``."""
    return f"{entry.kind} at {count(entry.sites, 'site')}"


def uniformed(completion_operands: int) -> str:
    """``with the 3 entries made the same for every position``."""
    entries = "entry" if completion_operands == 1 else f"{completion_operands:,} entries"
    return f"with the {entries} made the same for every position"


def completeness(finding: Finding) -> str:
    """Whether order enters at the listed entries and nowhere else."""
    if finding.entries_complete is None:
        return ""
    if finding.entries_complete:
        return "The map is complete: order enters here and nowhere else."
    return "The map is not shown to be complete: order may enter elsewhere too."


def in_short(finding: Finding) -> str:
    """One clause for a table: why, or what was seen."""
    if finding.vacuous:
        return "vacuous: no token can see another, so the law says nothing about mixing"
    if finding.witness is not None:
        return f"{finding.witness.change}: differs by {size(finding.witness.difference)}"
    if finding.verdict == "held" and finding.measurement is not None:
        return compared(finding.measurement)
    if finding.reason:
        return finding.reason
    if finding.proof is not None:
        return f"{count(finding.proof.steps, 'step')}, {consulted(finding.scope, limit=1)}"
    return ""


def measured(report: Report) -> tuple[Finding, ...]:
    """The findings of measured laws of which some comparison was tried, in the order of the report."""
    return tuple(f for f in report.findings if f.measurement is not None and f.measurement.trials)


def compared(measurement: Measurement) -> str:
    """``3 comparisons, at most 9.4e-07 apart; the control 0.96; 1 more could not be made``."""
    made = [t for t in measurement.trials if t.float32 is not None]
    parts = [count(len(made), "comparison")]
    if made:
        most = max(made, key=lambda t: t.float32 or 0.0)
        doubled = "" if most.float64 is None else f" ({size(most.float64)} in float64)"
        parts[0] += f", at most {size(most.float32)} apart{doubled}" if most.float32 else ", no difference"
    if measurement.signal is not None:
        parts.append(f"the control {size(measurement.signal)}")
    if len(made) < len(measurement.trials):
        parts.append(f"{len(measurement.trials) - len(made):,} more could not be made")
    return "; ".join(parts)


def doubt(record: TrialRecord) -> str:
    """Why a comparison could not be made, or what is in doubt; empty where it was made and is decided."""
    why = record.reason.removeprefix(f"{record.what}: ")
    return "" if why == record.what else why


def single(record: TrialRecord) -> str:
    """The difference of a comparison in float32."""
    return "not made" if record.float32 is None else size(record.float32)


def double(record: TrialRecord) -> str:
    """The same in float64; empty where float32 left no doubt."""
    if record.float64 is None and (record.float32 is None or record.verdict == "held"):
        return ""
    return size(record.float64)


def control(finding: Finding) -> str:
    """How far the control of a measured law moved the output, or why it was not asked."""
    signal = finding.measurement.signal if finding.measurement is not None else None
    if signal is not None:
        return size(signal)
    return "not needed: a difference was seen" if finding.verdict == "refuted" else "not run"


def changed(witness: Witness) -> frozenset[int]:
    """The places of a witness's two sequences that are not the same."""
    before, after = witness.before, witness.after
    places = {i for i in range(max(len(before), len(after))) if before[i : i + 1] != after[i : i + 1]}
    return frozenset(places | {i for i, place in enumerate(witness.permutation or ()) if i != place})


def outcome(witness: Witness, output: str) -> str:
    """Where the outputs differ most, what the law asks for there and what came."""
    index = f"[{', '.join(map(str, witness.output_index))}]" if witness.output_index else ""
    where = f"{output or 'output'}{index}"
    if witness.expected is None or witness.found is None:
        return f"{where} differs"
    return f"{where}: the law asks for {number(witness.expected)}, the model gives {number(witness.found)}"


def origin(witness: Witness) -> str:
    """Where the difference is first seen, and on which weights."""
    first = f"first seen in {witness.module}; " if witness.module else ""
    return first + ("its own weights" if witness.weights == "given" else f"weights drawn with seed {witness.seed}")


def fall(deviation: Deviation) -> str:
    """How much smaller the difference is in float64, as a power of two."""
    if deviation.float32 is None or deviation.float64 is None:
        return ""
    if deviation.float64 == 0 or deviation.float32 == 0:
        return "exact" if deviation.float64 == 0 else ""
    power = round(math.log2(deviation.float64 / deviation.float32))
    return "it stays: no rounding" if power == 0 else f"falls by 2^{power}: rounding" if power < -15 else f"2^{power}"


def assumptions(report: Report) -> dict[str, list[str]]:
    """Every assumption, once, with the codes of the findings that rest on it; none named where all do."""
    found: dict[str, list[str]] = {}
    for finding in report.findings:
        scopes = [finding.scope, *([finding.completion.scope] if finding.completion else [])]
        for text in dict.fromkeys(text for scope in scopes for text in scope.assumptions):
            found.setdefault(text, []).append(finding.code)
    return {text: [] if len(codes) == len(report.findings) else codes for text, codes in found.items()}


def main_output(report: Report) -> str:
    """The output the report is mostly about: the first one."""
    return report.findings[0].output if report.findings else ""


def entry_maps(report: Report) -> list[tuple[tuple[Finding, ...], tuple[Entry, ...]]]:
    """Every distinct entry map, with the findings that share it; one whose completeness was asked comes first."""
    maps: dict[tuple[str, ...], list[Finding]] = {}
    for finding in report.findings:
        if finding.entries:
            maps.setdefault((finding.output, *(e.model_dump_json() for e in finding.entries)), []).append(finding)
    for findings in maps.values():
        findings.sort(key=lambda f: f.entries_complete is None)
    return [(tuple(findings), findings[0].entries) for findings in maps.values()]


def map_title(findings: tuple[Finding, ...]) -> str:
    """What an entry map shows: where order enters, or where a token sees what it must not."""
    laws = ", ".join(name(f) for f in sorted(findings, key=lambda f: f.code))
    what = "Where order enters" if findings[0].code.startswith("OP1") else LEAKS.get(findings[0].law, "Where it leaks")
    return f"{what}: {laws}"


def maker(entry: Entry) -> str:
    """The line that made a constant or a mask, where that is not the line at which it enters."""
    if not entry.made_at or (entry.made_at, entry.made_in) == (entry.source, entry.module):
        return ""
    return f"{entry.made_at} ({entry.made_in})" if entry.made_in else entry.made_at


def exit_sentence(report: Report) -> str:
    """What the exit code means, naming every finding that decides it."""
    code = report.exit_code
    if report.interrupted:
        return f"interrupted; {count(len(report.findings), 'finding')} so far"
    if code == 0:
        return "every expectation is met" if report.findings else "no law was asked about"
    findings = report.violations if code == 1 else report.undecided
    return "; ".join(_complaints(findings)) + ("; nothing is violated" if code == 3 else "")


def _complaints(findings: tuple[Finding, ...]) -> Iterator[str]:
    for finding in findings:
        should = {"holds": "should hold", "fails": "should fail", "any": "is decided"}[finding.expected]
        yield f"{name(finding)} {should} and is {VERDICTS[finding.verdict]}"
