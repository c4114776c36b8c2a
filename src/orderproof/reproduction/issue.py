"""The text of an issue about a violation: versions, configuration, trials, where it starts, and the script."""

from __future__ import annotations

from orderproof.models import Subject
from orderproof.records.audit import ComparisonRecord, Finding
from orderproof.records.document import versions
from orderproof.report.markdown_table import markdown_table


def issue_text(finding: Finding, subject: Subject, script: str) -> str:
    """Markdown."""
    parts = [
        f"# {subject.name}: {finding.statement or finding.law}",
        f"The model violates {finding.code} `{finding.law}`. The script exits with 1 if it does and with 0 if not.",
        "```python\n" + script + "```",
        "## Versions", ", ".join(f"{name} {version}" for name, version in versions().items() if name != "orderproof"),
        "## Configuration that differs from the default",
        "\n".join(f"- `{key}`: {value}" for key, value in subject.configuration.items()) or "none",
    ]  # fmt: skip
    if finding.measurement is not None:
        parts += ["## Trials", _trials(finding.measurement.comparisons)]
    if where := _first_difference(finding):
        parts += ["## Where the two runs first differ", where]
    parts += ["## Severity", _severity(finding)]
    return "\n\n".join(parts) + "\n"


def _trials(records: tuple[ComparisonRecord, ...]) -> str:
    rows = [
        (
            r.description, r.verdict, _number(r.float32), _number(r.float64), ", ".join(map(str, r.lengths)),
            ", ".join(map(str, r.refuted_lengths)),
        )
        for r in records
    ]  # fmt: skip
    return markdown_table(("trial", "verdict", "float32", "float64", "lengths [tokens]", "fails at"), rows)


def _first_difference(finding: Finding) -> str:
    witness = finding.witness
    if witness is not None and witness.first_violating_module:
        source = f", {witness.first_violating_source}" if witness.first_violating_source else ""
        return f"`{witness.first_violating_module}`{source}"
    entry = next((e for e in finding.entries if e.source), None)
    return "" if entry is None else f"`{entry.module}`, {entry.source}: `{entry.operator}`"


def _severity(finding: Finding) -> str:
    witness = finding.witness
    if witness is None:
        return finding.reason
    text = f"relative difference {_number(witness.relative_difference)}: {witness.change}"
    return f"{text}; {witness.onset}" if witness.onset else text


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2g}"
