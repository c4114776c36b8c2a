"""The results of the atlas, named, counted and grouped."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from orderproof.atlas.document import AtlasDocument
from orderproof.atlas.row import CATEGORIES, AtlasRow, LawResult
from orderproof.laws import find_law
from orderproof.records.audit import Entry, Expectation, Outcome, outcome_of
from orderproof.report import phrases

MAX_ENTRIES_SHOWN = 3
OUTCOME_ORDER: tuple[Outcome, ...] = ("pass", "fail", "yes", "no", "undecided", "not_applicable")


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
        return "hold" if expected == "holds" else "not hold"
    return "yes" if expected == find_law(law).trait_if else "no"


@dataclass(frozen=True)
class LawCounts:
    """The outcomes of one law on all models of which the same is expected."""

    label: str
    law: str
    expected: Expectation
    outcomes: Counter[Outcome]
    failing: tuple[str, ...]  # the architectures that fail it

    @property
    def model(self) -> str:
        """The law as a property of the model."""
        return find_law(self.law).trait


def law_counts(rows: Iterable[AtlasRow]) -> list[LawCounts]:
    """Counts by law and expectation, in all calls, where the law applies to at least one model.

    A property has one line, and a check of which nothing is expected none.
    """
    groups: dict[tuple[str, str, Expectation], list[tuple[str, LawResult]]] = defaultdict(list)
    for row in rows:
        for result in row.laws:
            checked = is_check(result.law, result.expected)
            if checked or find_law(result.law).kind == "property":
                key = (result.code, result.law, result.expected if checked else "any")
                groups[key].append((row.name, result))
    return [
        LawCounts(
            f"{code} {law}", law, expected,
            Counter(shown_outcome(result) for _, result in results),
            tuple(dict.fromkeys(name for name, result in results if shown_outcome(result) == "fail")),
        )
        for (code, law, expected), results in sorted(groups.items())
        if any(result.verdict != "not_applicable" for _, result in results)
    ]  # fmt: skip


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
        lines.append(f"{counts.label:<32} {shown}")
    failed = Counter(row.failure.category for row in rows if row.failure)
    if failed:
        lines.append("failures: " + ", ".join(f"{failed[c]:,} {c}" for c in CATEGORIES if failed[c]))
    return "\n".join(lines)
