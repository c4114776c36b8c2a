"""The page of an atlas of settings: the failed checks that the default configuration does not have."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import combinations

from orderproof.atlas.document import AtlasDocument
from orderproof.atlas.row import AtlasRow, LawResult
from orderproof.report.markdown_table import markdown_table

HEAD = """# Atlas of settings

Written by `orderproof atlas NAMES --settings --markdown docs/evidence/atlas/settings.md`; not edited by hand.

Each architecture is built small with random weights, in variants that cover every pair of the values that its
configuration can state: rope types, windows, layer types in both orders, attention implementations, switches, shared
keys and dtypes. Variants are measured, and not proved. The tables list the failed checks. Those of the default
configuration are in [the atlas](atlas.md).
"""
MAX_VALUES = 2  # of a setting that explains failures: variants cover every pair of values, and no more
SEEN = "first seen in "  # in a witness, before the module at which outputs first differ


def settings_page(document: AtlasDocument) -> str:
    """Markdown."""
    groups: dict[str, list[AtlasRow]] = defaultdict(list)
    for row in document.rows:
        groups[row.name.partition("?")[0]].append(row)
    audited = [row for row in document.rows if row.failure is None and not row.alias_of]
    measured = [row for row in audited if "?" in row.name]  # a default configuration has proofs too
    seconds = sum(row.processor_seconds for row in measured) / max(len(measured), 1)
    refused = [row for row in document.rows if row.failure is not None]
    new = [cells for name, rows in sorted(groups.items()) for cells in _new_failures(name, rows)]
    versions = document.rows[0] if document.rows else None
    lines = [
        HEAD,
        f"- transformers {versions.transformers}, torch {versions.torch}" if versions else "",
        f"- {len(groups)} architectures, {document.requested} variants, {len(audited)} audited",
        *_incomplete(document, groups),
        f"- {seconds:.1f} s of processor time a variant, the default configurations left out",
        "", "## Failed checks that the default configuration passes", "",
        markdown_table(("architecture", "setting", "law", "in", "witness"), new) if new else "None.",
        "", "## Variants that are not audited", "",
        markdown_table(("variant", "reason"), [(f"`{_cell(r.name)}`", _cell(_reason(r))) for r in refused])
        if refused else "None.",
        "",
    ]  # fmt: skip
    return "\n".join(lines)


def _incomplete(document: AtlasDocument, groups: Mapping[str, list[AtlasRow]]) -> Iterator[str]:
    """How many variants of each architecture are audited, if some are missing."""
    if document.requested > len(document.rows):
        counts = ((name, sum("?" in row.name for row in rows)) for name, rows in sorted(groups.items()))
        run = ", ".join(f"{name} {count}" for name, count in counts if count) or "none"
        yield f"- the run is incomplete, so that pairs of values are missing; besides the default configurations: {run}"


def _new_failures(name: str, rows: list[AtlasRow]) -> list[tuple[str, ...]]:
    """One line for each setting and each place at which outputs first differ, with all laws that fail there."""
    default = next((row for row in rows if row.name == name), None)
    known = {result.law for result in _failed(default)} if default is not None else set()
    failing: dict[str, list[tuple[AtlasRow, LawResult]]] = defaultdict(list)
    for row in rows:
        for result in _failed(row):
            if result.law not in known:
                failing[result.law].append((row, result))
    lines: dict[tuple[str, str], list[tuple[str, int, str]]] = defaultdict(list)
    for law, found in sorted(failing.items()):
        for setting, part in _explained([row for row, _ in found], rows):
            result = next(result for row, result in found if row is part[0])
            witness = result.witness or result.reason
            lines[setting, witness.partition(SEEN)[2]].append((law, len(part), witness))
    return [_line(name, setting, found, len(rows)) for (setting, _), found in lines.items()]


def _line(name: str, setting: str, found: list[tuple[str, int, str]], variants: int) -> tuple[str, ...]:
    laws = ", ".join(law for law, *_ in found)
    most = max(count for _, count, _ in found)
    return name, f"`{_cell(setting)}`", laws, f"{most} of {variants}", _cell(found[0][2])


def _explained(failing: list[AtlasRow], rows: list[AtlasRow]) -> Iterator[tuple[str, list[AtlasRow]]]:
    """The settings that explain failures, and the rows that each explains.

    A setting is the least number of values, at most `MAX_VALUES`, such that every row that has them fails; the one that
    explains most rows comes first. Failures that no setting explains have the values that they share, or their own.
    """
    left = [*failing]
    failed = {row.name for row in failing}
    while left:
        choices = {c for row in left for n in range(1, MAX_VALUES + 1) for c in combinations(_values(row), n)}
        sure = [c for c in choices if all(row.name in failed for row in rows if {*c} <= {*_values(row)})]
        if not sure:
            shared = set.intersection(*({*_values(row)} for row in left))
            yield ", ".join(sorted(shared) or _values(left[0])), left
            return
        best = min(sure, key=lambda c: (len(c), -sum({*c} <= {*_values(row)} for row in left), c))
        part = [row for row in left if {*best} <= {*_values(row)}]
        same = [
            c for c in sure if len(c) == len(best) == 1 and [row for row in left if {*c} <= {*_values(row)}] == part
        ]
        yield " or ".join(sorted(value for (value,) in same)) or ", ".join(sorted(best)), part
        left = [row for row in left if row not in part]


def _values(row: AtlasRow) -> list[str]:
    return sorted(value for value in row.name.partition("?")[2].split("&") if value)


def _failed(row: AtlasRow) -> list[LawResult]:
    return [r for r in (*row.laws, *row.other_output_laws) if r.outcome == "fail"]


def _reason(row: AtlasRow) -> str:
    return row.failure.reason if row.failure else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
