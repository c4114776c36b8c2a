"""The page of one engine, or its section of the page of all."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from orderproof.atlas.ports.document import PortsDocument
from orderproof.atlas.ports.row import PortLawResult, PortRow
from orderproof.atlas.ports.tables import differences, kind_of, summary
from orderproof.atlas.ports.variants import PLAIN
from orderproof.laws import port_laws
from orderproof.ports.engines.registry import engines
from orderproof.ports.port_run import NOT_LOADED
from orderproof.report.markdown_table import markdown_table

OTHER_PAGES = "[All engines](../ports.md). [How to compare a port](../../../how_to/audit_a_port.md)."
_SIGNS = {"held": "same", "undecided": "?", "not_applicable": "-"}


def engine_title(name: str) -> str:
    """The title of an engine, or of a version of it: "MLX (mlx-lm)"."""
    plain, at, version = name.partition("@")
    return f"{engines()[plain].title}{f' {version}' if at else ''}"


def engine_page(document: PortsDocument, name: str) -> str:
    """The page of an engine."""
    rows = [row for row in document.rows if row.engine == name]
    facts = (
        f"{', '.join(sorted({row.engine_version for row in rows}))}; transformers "
        f"{', '.join(sorted({row.transformers for row in rows}))}; {max(row.finished_on for row in rows)}; "
        f"{document.machine}. {time_text(rows)}"
    )
    parts = [
        f"# {engine_title(name)}", f"Written by `orderproof ports`; not edited by hand. {OTHER_PAGES}", facts.rstrip(),
        "## Summary", summary(rows, [name]), "## Differences", differences(rows, "../scripts"),
        "## Architectures", *engine_sections(rows),
    ]  # fmt: skip
    return "\n\n".join(parts) + "\n"


def time_text(rows: Sequence[PortRow]) -> str:
    """The processor time of an engine for a checkpoint; empty if the rows do not state it."""
    used = [row.engine_seconds for row in rows if row.engine_seconds and row.variant == PLAIN and row.is_compared]
    if not used:
        return ""
    imported = max(row.import_seconds for row in rows)
    after = f", after an import of {imported:.3g} s" if imported else ", with the import of its library"
    took = f"{median(used):.2g} s of processor time (median of {len(used)})"
    return f"A checkpoint with all calls takes it {took}{after}."


def engine_sections(rows: Sequence[PortRow]) -> list[str]:
    """Law by law: each architecture, and why some were refused or are undecided."""
    plain = [row for row in rows if row.variant == PLAIN and row.known and not row.failure]
    laws = [law for law in port_laws() if any(row.law(law.name) is not None for row in plain)]
    head = ("architecture", *(f"{law.code} {law.name}" for law in laws), "seconds", "date")
    signs = (
        "A number is a difference; *same* means a difference that is rounding; ? undecided; - not measured. *seconds*: "
        "of processor time of the engine, for the checkpoint and all calls."
    )
    cells = [(row.name, *(_cell(row.law(law.name), row) for law in laws), *_work(row)) for row in plain]
    table = markdown_table(head, cells, right=(len(head) - 2,))
    refused = [(row.name, row.law("loads_checkpoint")) for row in plain if kind_of(row).startswith("refused")]
    lines = [f"- {name}: {law.reason}" for name, law in refused if law is not None]
    others = sorted({row.name for row in rows if row.variant == PLAIN and not row.known})
    failed = [f"- {row.name}: {row.failure}" for row in rows if row.failure]
    undecided = [
        f"- {row.name}, {law.law}: {law.reason}"
        for row in plain for law in row.laws
        if law.verdict == "undecided" and NOT_LOADED not in law.reason
    ]  # fmt: skip
    listings = {"Refused": lines, "Undecided": undecided, "No reference": failed}
    sections = [signs, table]
    for title, listed in listings.items():
        if listed:
            sections += [f"### {title}", "\n".join(map(_escaped, listed))]
    if others:
        sections.append(f"Without an implementation in the engine: {', '.join(others)}.")
    return sections


def _work(row: PortRow) -> tuple[str, str]:
    return (f"{row.engine_seconds:.2g}" if row.engine_seconds else "-", row.finished_on)


def _cell(law: PortLawResult | None, row: PortRow) -> str:
    if law is None:
        return "-"
    if law.verdict == "refuted":
        if law.law == "loads_checkpoint":
            return "with older keys" if row.needs_older_keys else "refused"
        since = "" if law.first_token is None else f" from {law.first_token}"
        return f"**{law.difference:.1g}**{since}" if law.difference is not None else "**other tokens**"
    return _SIGNS.get(law.verdict, law.verdict)


def _escaped(text: str) -> str:
    """Markdown text in which `<`, `*` and `_` of error messages have no meaning."""
    for sign in ("\\", "<", ">", "*", "_", "|", "[", "]", "`"):
        text = text.replace(sign, f"\\{sign}" if sign not in "<>" else {"<": "&lt;", ">": "&gt;"}[sign])
    return text
