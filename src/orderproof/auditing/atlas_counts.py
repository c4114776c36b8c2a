"""The rows of the atlas, counted and grouped."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from orderproof.auditing.atlas_rows import CATEGORIES, LawRow, Row
from orderproof.record import Entry, Expectation, Verdict
from orderproof.report import words

COUNTED: tuple[Verdict, ...] = ("proved", "refuted", "undecided", "held", "not_applicable")
SHOULD: dict[Expectation, str] = {"holds": "hold", "fails": "fail", "any": "either"}
PLACES = 3  # how many places of an entry map are named
_NUMBER = re.compile(r"\d+")


def law_of(each: LawRow) -> str:
    """`OP101 order_blind`, with the way the model was called where it is not the plain one."""
    return f"{each.code} {each.law}" + (f" ({each.setting})" if each.setting else "")


def counts(rows: Sequence[Row]) -> dict[tuple[str, str, Expectation], Counter[Verdict]]:
    """How often each verdict came, by (law, kind, what is expected)."""
    found: dict[tuple[str, str, Expectation], Counter[Verdict]] = defaultdict(Counter)
    for row in rows:
        for each in row.laws:
            found[law_of(each), row.kind, each.expected][each.verdict] += 1
    return dict(sorted(found.items()))


def undecided(rows: Iterable[Row]) -> list[tuple[str, str, str, list[tuple[str, LawRow]]]]:
    """The reasons of the undecided, the most frequent first: (law, operator, reason, who)."""
    groups: dict[tuple[str, str, str], list[tuple[str, LawRow]]] = defaultdict(list)
    for row in rows:
        for each in row.laws:
            if each.verdict == "undecided":
                why = (each.cause or each.reason).removesuffix("; no witness was found")
                groups[law_of(each), each.operator, _NUMBER.sub("N", why)].append((row.name, each))
    return sorted(((*key, who) for key, who in groups.items()), key=lambda g: (-len(g[3]), g[:3]))


def assumptions(rows: Iterable[Row]) -> list[tuple[tuple[str, str], int]]:
    """How many proofs rest on each assumption: ((law, assumption), times), by law, the most frequent first."""
    found: Counter[tuple[str, str]] = Counter()
    for row in rows:
        for each in row.laws:
            if each.verdict == "proved":
                found.update((law_of(each), _NUMBER.sub("N", text)) for text in dict.fromkeys(each.assumptions))
    return sorted(found.items(), key=lambda item: (item[0][0], -item[1], item[0][1]))


def places(entries: Iterable[Entry]) -> list[str]:
    """An entry map in short: what enters, by which operator and at which line; layers and repetitions folded."""
    found: dict[tuple[str, str], list[Entry]] = {}
    for entry in entries:
        found.setdefault((entry.kind, _origin(entry)), []).append(entry)
    shown = []
    for (kind, origin), same in found.items():
        operators = dict.fromkeys(entry.operator.removeprefix("aten.").split(".")[0] for entry in same)
        lines = dict.fromkeys(entry.source for entry in same if entry.source)
        where = ", ".join([*list(operators)[:PLACES], *list(lines)[:1]])
        more = len(lines) - 1
        where += f" and {words.count(more, 'other line')}" if more > 0 else ""
        shown.append(code(f"{origin}: {where}" if origin else f"{kind}: {where}"))
    rest = len(shown) - PLACES
    return [*shown[:PLACES], f"and {rest} more"] if rest > 0 else shown


def _origin(entry: Entry) -> str:
    """The names of what a constant is made of, without the path that every one has."""
    parts = dict.fromkeys(".".join(part.split(".")[-2:]) for part in entry.origin.split(", ") if part)
    return ", ".join(list(parts)[:2]) + (", ..." if len(parts) > 2 else "")


def code(text: str) -> str:
    """Text of others as code, so that nothing in it can act; empty stays empty."""
    safe = words.visible(text).replace("`", "'").replace("|", "\\|").replace("](", "] (")
    return f"`{safe}`" if safe else ""


def summary(rows: Sequence[Row], *, asked: int) -> str:
    """The counts, for a terminal."""
    lines = [f"{len(rows):,} of {words.count(asked, 'architecture')} finished"]
    for (law, kind, expected), found in counts(rows).items():
        shown = ", ".join(f"{found[verdict]:,} {verdict.replace('_', ' ')}" for verdict in COUNTED if found[verdict])
        lines.append(f"{law:<18} {kind:<10} {'should ' + SHOULD[expected]:<14} {shown}")
    failed = Counter(row.failed.category for row in rows if row.failed)
    if failed:
        lines.append("failures: " + ", ".join(f"{failed[c]:,} {c}" for c in CATEGORIES if failed[c]))
    return "\n".join(lines)
