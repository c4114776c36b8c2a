"""Printing indented blocks on a console, without trailing blanks and without styles where colour is off."""

from __future__ import annotations

from rich.console import Console
from rich.padding import Padding
from rich.segment import Segment, Segments
from rich.table import Table
from rich.text import Text


def print_block(console: Console, renderable: Text | Table, *, indent: int) -> None:
    """Print text or a table, indented by `indent` columns."""
    for line in console.render_lines(Padding(renderable, (0, 0, 0, indent), expand=False), pad=False):
        trimmed = _without_trailing_blanks(line)
        if console.no_color:  # then neither bold nor underline either: plain text
            trimmed = list(Segment.strip_styles(trimmed))
        console.print(Segments([*trimmed, Segment.line()]))


def _without_trailing_blanks(line: list[Segment]) -> list[Segment]:
    """The line without the padding of a table at its end."""
    while line and not line[-1].text.strip():
        line = line[:-1]
    return [*line[:-1], Segment(line[-1].text.rstrip(), line[-1].style)] if line else []
