"""The page of an atlas of settings: the failed checks that the default configuration does not have."""

from __future__ import annotations

from collections import defaultdict

from orderproof.atlas.document import AtlasDocument
from orderproof.atlas.row import AtlasRow, LawResult
from orderproof.report.markdown_table import markdown_table

HEAD = """# Atlas of settings

Written by `orderproof atlas NAMES --settings --markdown docs/atlas_settings.md`; not edited by hand.

Each architecture is built small with random weights, in variants that cover every pair of the values that its
configuration can state: rope types, windows, layer types in both orders, attention implementations, switches, shared
keys and dtypes. Variants are measured, and not proved. The tables list the failed checks. Those of the default
configuration are in [the atlas](atlas.md).
"""


def settings_page(document: AtlasDocument) -> str:
    """Markdown."""
    groups: dict[str, list[AtlasRow]] = defaultdict(list)
    for row in document.rows:
        groups[row.name.partition("?")[0]].append(row)
    audited = [row for row in document.rows if row.failure is None and not row.alias_of]
    refused = [row for row in document.rows if row.failure is not None]
    new = [cells for name, rows in sorted(groups.items()) for cells in _new_failures(name, rows)]
    versions = document.rows[0] if document.rows else None
    lines = [
        HEAD,
        f"- transformers {versions.transformers}, torch {versions.torch}" if versions else "",
        f"- {len(groups)} architectures, {len(document.rows)} variants, {len(audited)} audited",
        f"- {sum(row.processor_seconds for row in audited) / max(len(audited), 1):.1f} s of processor time a variant",
        "", "## Failed checks that the default configuration passes", "",
        markdown_table(("architecture", "setting", "law", "in", "witness"), new) if new else "None.",
        "", "## Variants that are not audited", "",
        markdown_table(("variant", "reason"), [(f"`{_cell(r.name)}`", _cell(_reason(r))) for r in refused])
        if refused else "None.",
        "",
    ]  # fmt: skip
    return "\n".join(lines)


def _new_failures(name: str, rows: list[AtlasRow]) -> list[tuple[str, ...]]:
    """One line for each law: the value that all failing variants share, if there is one."""
    default = next((row for row in rows if row.name == name), None)
    known = {result.law for result in _failed(default)} if default is not None else set()
    failing: dict[str, list[tuple[AtlasRow, LawResult]]] = defaultdict(list)
    for row in rows:
        for result in _failed(row):
            if result.law not in known:
                failing[result.law].append((row, result))
    lines: list[tuple[str, ...]] = []
    for law, found in sorted(failing.items()):
        shared = set.intersection(*({*row.name.partition("?")[2].split("&")} for row, _ in found))
        setting = ", ".join(sorted(shared)) or found[0][0].name.partition("?")[2]
        count = f"{len(found)} of {len(rows)}"
        lines.append((name, f"`{_cell(setting)}`", law, count, _cell(found[0][1].witness or found[0][1].reason)))
    return lines


def _failed(row: AtlasRow) -> list[LawResult]:
    return [r for r in (*row.laws, *row.other_output_laws) if r.outcome == "fail"]


def _reason(row: AtlasRow) -> str:
    return row.failure.reason if row.failure else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
