"""The report as a section of a model card, between two marks by which it is found again.

A mark counts only as a line of its own. No line of the section can be one: whatever comes from a model stands behind
words of ours in its line.
"""

from __future__ import annotations

from orderproof.errors import UsageError
from orderproof.record import Report
from orderproof.report.markdown import render_markdown

BEGIN = "<!-- orderproof: begin, written by `orderproof card` -->"
END = "<!-- orderproof: end -->"


def render_card(report: Report) -> str:
    """The section with its marks."""
    return f"{BEGIN}\n\n{render_markdown(report)}\n{END}\n"


def placed(section: str, text: str) -> str:
    """A card with the section in the place of the one it has; at its end where it has none. Raises `UsageError`."""
    lines = text.splitlines(keepends=True)
    bare = [line.rstrip("\r\n") for line in lines]
    begins, ends = ([i for i, line in enumerate(bare) if line == mark] for mark in (BEGIN, END))
    newline = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
    section = section.replace("\n", newline)
    if not begins and not ends:
        gap = "" if not text else newline if text.endswith("\n") else 2 * newline
        return text + gap + section
    if len(begins) != 1 or len(ends) != 1 or begins[0] > ends[0]:
        raise UsageError(
            f"expected the marks of one section, {BEGIN!r} and below it {END!r}; got {len(begins)} of the first and "
            f"{len(ends)} of the second; take them out, and the section is written at the end"
        )
    return "".join(lines[: begins[0]]) + section + "".join(lines[ends[0] + 1 :])
