"""The place of a finding: the line to look at, the same in a terminal, on a page, in SARIF and in a failed test."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from orderproof.records.audit import Entry, Finding, Picture


@dataclass(frozen=True)
class Place:
    """A line of code: its file and number, its text and its module; empty where it is not known."""

    source: str = ""
    text: str = ""
    module: str = ""
    entry: Entry | None = None  # the entry of the finding that is there, or that has its mask there


def finding_place(finding: Finding) -> Place:
    """The line to change, else that of the first entry or the first difference, else of the proof's last step."""
    entry = first_entry(finding)
    if finding.fix_source:
        return Place(finding.fix_source, finding.fix_line, entry.module if entry else "", entry)
    if entry is not None:
        return Place(entry.source, entry.source_line.strip(), entry.module, entry)
    if finding.witness is not None and file_name(finding.witness.first_violating_source):
        return Place(finding.witness.first_violating_source, "", finding.witness.first_violating_module)
    if finding.proof is not None:
        last = next((step for step in reversed(finding.proof.steps) if file_name(step.source)), None)
        return Place(last.source, "", last.module) if last else Place()
    return Place()


def shown_place(finding: Finding) -> Place:
    """The line to show to a reader: that of `finding_place`; only a line to change for a law that is proved.

    The last step of a proof is a place for an alert, which must have one, and no cause.
    """
    return Place() if finding.verdict == "proved" and not finding.fix_source else finding_place(finding)


def first_entry(finding: Finding) -> Entry | None:
    """The entry in the first module that violates the law, or the first entry whose file is known.

    An entry for several layers has * as their number.
    """
    known = [e for e in finding.entries if file_name(e.source)]
    first = finding.witness.first_violating_module if finding.witness else ""
    return next((e for e in known if first and fnmatchcase(first, e.module)), known[0] if known else None)


def file_name(source: str) -> str:
    """The file's name without folders and line; empty for code that has no file."""
    place, colon, line = source.rpartition(":")
    name = (place if colon and line.isdecimal() else source).replace("\\", "/").rpartition("/")[2]
    return "" if name in ("", ".", "..") or name.startswith("<") else name


def relative_path(source: str) -> str:
    """The file of a source as a path from the root of the repository; the name alone of any other path."""
    place, colon, line = source.rpartition(":")
    path = PurePosixPath((place if colon and line.isdecimal() else source).replace("\\", "/"))
    is_relative = path.parts[:1] != ("/",) and not {"..", "~"} & set(path.parts) and not path.parts[0].endswith(":")
    return path.as_posix() if is_relative else path.name


def changes_own_line(finding: Finding) -> bool:
    """True if the remedy as code is a change of the model's own line, and not an example."""
    return bool(finding.fix_line) and finding.remedy_diff.startswith(f"-{finding.fix_line}\n")


def remedy_code_label(finding: Finding) -> str:
    """How the remedy as code is introduced."""
    return "edit" if changes_own_line(finding) else "for example"


def mask_of(finding: Finding) -> Picture | None:
    """The mask that lets a token through; None if the finding has none."""
    return next((e.picture for e in finding.entries if e.picture is not None and e.picture.kind == "mask"), None)


MASK_LEGEND = "a row is a query, a column a key: 1 seen, . hidden, ! seen and must not be"


def mask_lines(picture: Picture) -> list[str]:
    """The mask as lines of text."""
    return [" ".join(row.replace("0", ".")) for row in picture.rows]
