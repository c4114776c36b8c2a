"""Sentences about an entry map: the places at which order, or a token that should not be seen, enters the graph."""

from __future__ import annotations

from orderproof.records.audit import Entry, Finding, Report
from orderproof.report import phrases
from orderproof.report.theorem_phrases import lengths_text

LEAK_TITLES = {
    "causal": "Where outputs depend on later tokens",
    "padding": "Where outputs depend on pad tokens",
    "packing": "Where outputs depend on other documents",
    "batch": "Where outputs depend on other rows",
}


def sites(entry: Entry) -> str:
    """``constant in 12 layers``, ``constant at 24 sites in 12 layers`` or ``constant at 1 site``."""
    return f"{entry.kind} {repetitions(entry)}"


def repetitions(entry: Entry) -> str:
    """``in 12 layers``, ``at 24 sites in 12 layers`` or ``at 1 site``."""
    at_sites = f"at {phrases.pluralize(entry.node_count, 'site')}"
    if entry.layer_count == 1:
        return at_sites
    in_layers = f"in {entry.layer_count:,} layers"
    return in_layers if entry.node_count == entry.layer_count else f"{at_sites} {in_layers}"


def completeness(finding: Finding) -> str:
    """The sentence about the completeness of an entry map; empty where it was not checked."""
    if finding.entries_complete is None:
        return ""
    if finding.entries_complete:
        return f"The map is complete{_for_lengths(finding)}: order enters here and nowhere else."
    return "The map is not shown to be complete: order may enter elsewhere too."


def _for_lengths(finding: Finding) -> str:
    theorem = finding.completion.theorem if finding.completion else None
    if theorem is None:
        return ""
    if theorem.proved:
        return f" for {lengths_text(theorem)}"
    return f" at {phrases.pluralize(finding.scope.length, 'token')}"


def entry_maps(report: Report) -> list[tuple[tuple[Finding, ...], tuple[Entry, ...]]]:
    """Every distinct entry map with the findings that share it; a finding whose completeness is known comes first."""
    maps: dict[tuple[str, ...], list[Finding]] = {}
    for finding in report.findings:
        if finding.entries:
            maps.setdefault((finding.output, *(e.model_dump_json() for e in finding.entries)), []).append(finding)
    for findings in maps.values():
        findings.sort(key=lambda f: f.entries_complete is None)
    return [(tuple(findings), findings[0].entries) for findings in maps.values()]


def order_maps(report: Report) -> list[tuple[tuple[Finding, ...], tuple[Entry, ...]]]:
    """The entry maps of order, without the places at which a token sees tokens that it should not see."""
    return [pair for pair in entry_maps(report) if pair[0][0].law not in LEAK_TITLES]


def entry_map_title(findings: tuple[Finding, ...]) -> str:
    """The title of an entry map: where order enters, or where a token sees tokens that it should not see."""
    laws = ", ".join(phrases.law_title(f) for f in sorted(findings, key=lambda f: f.code))
    return f"{LEAK_TITLES.get(findings[0].law, 'Where order enters')}: {laws}"


def constant_source(entry: Entry) -> str:
    """The line that computes a constant or a mask, where it is not the line at which it enters."""
    if not entry.origin_source or (entry.origin_source, entry.origin_module) == (entry.source, entry.module):
        return ""
    return f"{entry.origin_source} ({entry.origin_module})" if entry.origin_module else entry.origin_source
