"""Findings that are accepted for a time, each with a reason: a file that people read and edit.

    [[accepted]]
    subject = "decoder"
    law = "OP202 padding"
    line = "scores = scores + bias"      # of the model, where it is known
    reason = "pads are cut off before the loss"
    expires = 2027-02-27

An entry accepts a finding of the same subject, law, output, call, verdict and line of code. Line numbers may change.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from orderproof.catalogue.laws import find_law
from orderproof.configuration.toml_file import TomlFile, read_toml, shown_path
from orderproof.errors import UsageError
from orderproof.records.audit import Finding, Report, outcome_of
from orderproof.registry import did_you_mean
from orderproof.report.place import finding_place

ACCEPTED = "accepted"
DAYS = 90  # until an entry that is written expires
_IDENTITY = ("subject", "law", "output", "call", "verdict", "line")
_OPTIONAL = frozenset({"output", "call", "line"})
KEYS = (*_IDENTITY, "reason", "expires")
HEAD = """\
# Findings that `orderproof audit --baseline` accepts until they expire. Each needs a reason.
# `orderproof audit --write-baseline` adds new findings and removes those that are gone; it keeps reasons and dates.
"""
Identity = tuple[str, ...]  # the values of _IDENTITY, with the code of the law


@dataclass(frozen=True)
class Accepted:
    """One entry: the finding that it is about, why it is accepted, and until when."""

    number: int
    identity: Identity
    law: str
    reason: str
    expires: date


@dataclass
class Baseline:
    """The entries of a file, and which of them the reports so far needed."""

    file: TomlFile
    entries: Mapping[Identity, Accepted]
    today: date
    used: set[Identity] = field(default_factory=set)
    decided: set[tuple[str, str]] = field(default_factory=set)  # subjects and codes of laws

    def accept(self, report: Report) -> Report:
        """The report in which accepted findings are expected to be as they are; a note names each."""
        findings, notes = [], []
        unmet = {id(f) for f in report.unmet}
        for finding in report.findings:
            self.decided.add((report.subject.name, finding.code))
            entry = self.entries.get(identity_of(report, finding)) if id(finding) in unmet else None
            if entry is not None:
                self.used.add(entry.identity)
            if entry is None or entry.expires < self.today:
                findings.append(finding)
                continue
            findings.append(_as_expected(finding))
            notes.append(f"{entry.law} is accepted until {entry.expires} ({self._place(entry)}): {entry.reason}")
        return report.model_copy(update={"findings": tuple(findings), "notes": (*report.notes, *notes)})

    def problems(self, subjects: Collection[str] | None = None) -> list[str]:
        """A line for each entry that has expired, or that no finding needs although its law was decided.

        Also for each entry of another subject, if all `subjects` of a project are named.
        """
        lines = []
        for entry in self.entries.values():
            about = f"{entry.law} of {entry.identity[0]}"
            if entry.identity in self.used and entry.expires < self.today:
                lines.append(
                    f"{self._place(entry)}: expired on {entry.expires}: {about}; repair it, or state why not yet"
                )
            elif entry.identity not in self.used and (entry.identity[0], entry.identity[1]) in self.decided:
                lines.append(f"{self._place(entry)}: stale: no such finding of {about}; delete the entry")
            elif subjects is not None and entry.identity[0] not in subjects:
                hint = did_you_mean(entry.identity[0], subjects) or "; delete the entry"
                lines.append(f"{self._place(entry)}: no subject is named {entry.identity[0]!r}{hint}")
        return lines

    def _place(self, entry: Accepted) -> str:
        return f"{shown_path(self.file.path)}:{self.file.line((ACCEPTED, entry.number))}"


def read_baseline(path: Path, *, today: date, drafts: bool = False) -> Baseline:
    """The entries of a file; `drafts`: also those without a reason. Raises `UsageError` with file and line."""
    if not path.exists():
        how = f"orderproof audit --write-baseline {shown_path(path)} writes it"
        raise UsageError(f"{shown_path(path)}: expected a baseline; no such file; {how}")
    file = read_toml(path, "a baseline")
    stated = file.data.get(ACCEPTED, [])
    if unknown := next((key for key in file.data if key != ACCEPTED), None):
        raise file.error((unknown,), f"unknown key {unknown!r}; expected [[{ACCEPTED}]] only")
    if not isinstance(stated, list) or not all(isinstance(each, dict) for each in stated):
        raise file.error((ACCEPTED,), f"expected tables [[{ACCEPTED}]]; got {stated!r}")
    entries: dict[Identity, Accepted] = {}
    for number, each in enumerate(stated):
        entry = _entry(file, number, each, drafts=drafts)
        if entry.identity in entries:
            raise file.error((ACCEPTED, number), f"{entry.law} of {each['subject']} is accepted twice; keep one")
        entries[entry.identity] = entry
    return Baseline(file, entries, today)


def _entry(file: TomlFile, number: int, stated: dict[str, Any], *, drafts: bool) -> Accepted:
    def error(key: str | None, problem: str) -> UsageError:
        return file.error((ACCEPTED, number, *([] if key is None else [key])), problem)

    for key, value in stated.items():
        if key not in KEYS:
            hint = did_you_mean(key, KEYS) or f"; expected one of {', '.join(KEYS)}"
            raise error(key, f"unknown key {key!r}{hint}")
        kind, what = (date, "a date as 2027-02-27") if key == "expires" else (str, "a text")
        if type(value) is not kind:
            raise error(key, f"expected {key} to be {what}; got {value!r}")
    if missing := next((key for key in KEYS if key not in stated and key not in _OPTIONAL), None):
        raise error(None, f"expected {missing} in an accepted finding; got none")
    if not stated["reason"].strip() and not drafts:
        raise error("reason", "expected a reason why the finding is accepted; got none")
    try:
        law = find_law(stated["law"].partition(" ")[0])
    except UsageError as problem:
        raise error("law", str(problem)) from None
    identity = (stated["subject"], law.code, *(stated.get(key, "") for key in _IDENTITY[2:]))
    return Accepted(number, identity, f"{law.code} {law.name}", stated["reason"], stated["expires"])


def identity_of(report: Report, finding: Finding) -> Identity:
    """The values that an entry must have in common with a finding; no line number, which changes with other code."""
    text = " ".join(finding_place(finding).text.split())
    return (report.subject.name, finding.code, finding.output, finding.call_mode, finding.verdict, text)


def _as_expected(finding: Finding) -> Finding:
    law = find_law(finding.code)
    outcome = outcome_of("property", finding.verdict, met=True, trait_if=law.trait_if)
    return finding.model_copy(
        update={"expected": "any", "expectation_met": True, "kind": "property", "outcome": outcome}
    )


def baseline_text(reports: Sequence[Report], before: Baseline | None, *, today: date) -> str:
    """The text of a baseline of everything that is not as expected in reports, with the reasons that are known.

    Entries of subjects and laws of which the reports say nothing are kept.
    """
    old = {} if before is None else before.entries
    decided = {(report.subject.name, finding.code) for report in reports for finding in report.findings}
    new = {identity_of(report, finding): finding for report in reports for finding in report.unmet}
    expires = today + timedelta(DAYS)
    kept = [entry for identity, entry in old.items() if identity in new or identity[:2] not in decided]
    added = (
        Accepted(0, identity, f"{finding.code} {finding.law}", "", expires)
        for identity, finding in new.items()
        if identity not in old
    )
    return "\n".join([HEAD, *map(_written, (*kept, *added))])


def _written(entry: Accepted) -> str:
    values = {**dict(zip(_IDENTITY, entry.identity, strict=True)), "law": entry.law, "reason": entry.reason}
    return "\n".join([f"[[{ACCEPTED}]]", *_lines(values), f"expires = {entry.expires}", ""])


def _lines(values: Mapping[str, str]) -> Iterator[str]:
    for key, value in values.items():
        if value or key not in _OPTIONAL:
            yield f"{key} = {json.dumps(value, ensure_ascii=False)}"
