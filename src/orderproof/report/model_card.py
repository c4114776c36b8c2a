"""The report as a section of a model card, between two marks by which it is found and replaced.

A mark counts only where it is a whole line. No line of the section can equal a mark: a text from a model never starts
a line.
"""

from __future__ import annotations

from orderproof.errors import UsageError
from orderproof.records.audit import Report
from orderproof.report.markdown import render_markdown

BEGIN = "<!-- orderproof: begin, written by `orderproof card` -->"
END = "<!-- orderproof: end -->"


def render_card_section(report: Report) -> str:
    """The section with its marks."""
    return f"{BEGIN}\n\n{render_markdown(report)}\n{END}\n"


def insert_section(section: str, text: str) -> str:
    """The card with its section replaced, or appended where it has none. Raises `UsageError`."""
    lines = text.splitlines(keepends=True)
    stripped = [line.rstrip("\r\n") for line in lines]
    begins, ends = ([i for i, line in enumerate(stripped) if line == mark] for mark in (BEGIN, END))
    newline = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
    section = section.replace("\n", newline)
    if not begins and not ends:
        gap = "" if not text else newline if text.endswith("\n") else 2 * newline
        return text + gap + section
    if len(begins) != 1 or len(ends) != 1 or begins[0] > ends[0]:
        raise UsageError(
            f"expected the marks of one section, {BEGIN!r} and below it {END!r}; got {len(begins)} of the first and "
            f"{len(ends)} of the second; delete them, and the section is appended"
        )
    return "".join(lines[: begins[0]]) + section + "".join(lines[ends[0] + 1 :])
