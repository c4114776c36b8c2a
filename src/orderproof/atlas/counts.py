"""The rows of the atlas, counted and grouped."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from orderproof.atlas.document import AtlasDocument
from orderproof.atlas.row import CATEGORIES, AtlasRow, LawResult
from orderproof.laws import find_law
from orderproof.records.audit import Entry, Expectation, Outcome, Verdict, outcome_of
from orderproof.report import phrases

MAX_ENTRIES_SHOWN = 3
OUTCOME_ORDER: tuple[Outcome, ...] = ("pass", "fail", "yes", "no", "undecided", "not_applicable")
VERDICT_ORDER: tuple[Verdict, ...] = ("proved", "held", "refuted")
_NUMBER = re.compile(r"\d+")
_NO_WITNESS = "; no witness was found"


def law_label(result: LawResult) -> str:
    """`OP101 permutation`; `OP203 packing (packed)` if the model was not called with tokens alone."""
    return f"{result.code} {result.law}" + (f" ({result.call_mode})" if result.call_mode else "")


def is_check(law: str, expected: Expectation) -> bool:
    """True for a law that should hold, or fail, for this kind of model; other laws describe the model."""
    return find_law(law).kind == "check" and expected != "any"


def shown_outcome(result: LawResult) -> Outcome:
    """Pass or fail of a check; of a property yes or no, also if it is not as expected."""
    if is_check(result.law, result.expected):
        return outcome_of("check", result.verdict, met=result.expectation_met)
    return outcome_of("property", result.verdict, met=True, trait_if=find_law(result.law).trait_if)


def expectation_text(law: str, expected: Expectation) -> str:
    """`holds` or `does not hold` for a check; for a property `yes` or `no`, the answer that is expected."""
    if expected == "any":
        return "-"
    if is_check(law, expected):
        return "holds" if expected == "holds" else "does not hold"
    return "yes" if expected == find_law(law).trait_if else "no"


@dataclass(frozen=True)
class LawCounts:
    """The outcomes and verdicts of one law on all models of one kind."""

    label: str
    law: str
    model_kind: str
    expected: Expectation
    outcomes: Counter[Outcome]
    verdicts: Counter[Verdict]


def law_counts(rows: Iterable[AtlasRow]) -> list[LawCounts]:
    """Counts by law, kind of model and expectation, where the law applies to at least one of these models."""
    groups: dict[tuple[str, str, Expectation], list[LawResult]] = defaultdict(list)
    for row in rows:
        for result in row.laws:
            groups[law_label(result), row.model_kind, result.expected].append(result)
    return [
        LawCounts(
            label, results[0].law, model_kind, expected,
            Counter(map(shown_outcome, results)), Counter(result.verdict for result in results),
        )
        for (label, model_kind, expected), results in sorted(groups.items())
        if any(result.verdict != "not_applicable" for result in results)
    ]  # fmt: skip


def undecided_reason(result: LawResult) -> str:
    """The premise that was not established, or the reason without its ending that all such reasons share."""
    return (result.stop_reason or result.reason).removesuffix(_NO_WITNESS)


def is_without_graph(row: AtlasRow, result: LawResult) -> bool:
    """True if a result is undecided because the graph of its architecture cannot be recorded."""
    return row.failure is not None and undecided_reason(result) == row.failure.reason


def undecided_reasons(rows: Iterable[AtlasRow]) -> list[tuple[str, str, str, list[tuple[str, LawResult]]]]:
    """The undecided results by (law, operator, reason), each with its architectures; the largest group first.

    Without those of architectures whose graph cannot be recorded.
    """
    groups: dict[tuple[str, str, str], list[tuple[str, LawResult]]] = defaultdict(list)
    for row in rows:
        for result in row.laws:
            if result.verdict == "undecided" and not is_without_graph(row, result):
                reason = _NUMBER.sub("N", undecided_reason(result))
                groups[law_label(result), result.stopped_at_operator, reason].append((row.name, result))
    return sorted(((*key, members) for key, members in groups.items()), key=lambda g: (-len(g[3]), g[:3]))


@dataclass
class AssumptionUse:
    """An assumption of proofs, and the proofs that have it."""

    text: str  # of the first proof; numbers differ in the others
    laws: Counter[str] = field(default_factory=Counter)  # label of the law -> number of proofs
    architectures: list[str] = field(default_factory=list)


def assumptions(rows: Iterable[AtlasRow]) -> list[AssumptionUse]:
    """The assumptions of the proofs for the first output, the most frequent first."""
    uses: dict[str, AssumptionUse] = {}
    for row in rows:
        for result in row.laws:
            for text in dict.fromkeys(result.assumptions) if result.verdict == "proved" else ():
                use = uses.setdefault(_NUMBER.sub("N", text), AssumptionUse(text))
                use.laws[law_label(result)] += 1
                if row.name not in use.architectures:
                    use.architectures.append(row.name)
    return sorted(uses.values(), key=lambda use: (-use.laws.total(), use.text))


def entry_summary(entries: Iterable[Entry]) -> list[str]:
    """An entry map in short: the origin of each constant, the operators and the first line; repetitions are merged."""
    groups: dict[tuple[str, str], list[Entry]] = {}
    for entry in entries:
        groups.setdefault((entry.kind, _origin(entry)), []).append(entry)
    shown = []
    for (kind, origin), members in groups.items():
        operators = dict.fromkeys(entry.operator.removeprefix("aten.").split(".")[0] for entry in members)
        lines = dict.fromkeys(entry.source for entry in members if entry.source)
        place = ", ".join([*list(operators)[:MAX_ENTRIES_SHOWN], *list(lines)[:1]])
        more = len(lines) - 1
        place += f" and {phrases.pluralize(more, 'other line')}" if more > 0 else ""
        shown.append(code_span(f"{origin}: {place}" if origin else f"{kind}: {place}"))
    rest = len(shown) - MAX_ENTRIES_SHOWN
    return [*shown[:MAX_ENTRIES_SHOWN], f"and {rest} more"] if rest > 0 else shown


def _origin(entry: Entry) -> str:
    """The last two parts of each tensor name in the origin of a constant; at most two names."""
    names = dict.fromkeys(".".join(name.split(".")[-2:]) for name in entry.origin.split(", ") if name)
    return ", ".join(list(names)[:2]) + (", ..." if len(names) > 2 else "")


def code_span(text: str) -> str:
    """Untrusted text as Markdown code: control characters, backticks, bars and links escaped; empty stays empty."""
    safe = phrases.escape_control_characters(text).replace("`", "'").replace("|", "\\|").replace("](", "] (")
    return f"`{safe}`" if safe else ""


def summary(document: AtlasDocument) -> str:
    """The counts as plain text."""
    rows = document.rows
    lines = [f"{len(rows):,} of {phrases.pluralize(document.requested, 'architecture')} finished"]
    for counts in law_counts(rows):
        shown = ", ".join(
            f"{counts.outcomes[outcome]:,} {outcome.replace('_', ' ')}"
            for outcome in OUTCOME_ORDER
            if counts.outcomes[outcome]
        )
        lines.append(f"{counts.label:<32} {counts.model_kind:<10} {shown}")
    failed = Counter(row.failure.category for row in rows if row.failure)
    if failed:
        lines.append("failures: " + ", ".join(f"{failed[c]:,} {c}" for c in CATEGORIES if failed[c]))
    return "\n".join(lines)


def measured_by_part(row: AtlasRow, measured: Sequence[str]) -> dict[str, dict[str, LawResult]]:
    """The measured results of a row by part of the model ("" or "decoder"), each by law."""
    parts: dict[str, dict[str, LawResult]] = {}
    for result in row.laws:
        if result.law in measured:
            parts.setdefault(result.call_mode, {})[result.law] = result
    return parts
