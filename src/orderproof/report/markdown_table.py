"""Markdown tables."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

Cells = Sequence[str]


def markdown_table(head: Cells, rows: Iterable[Cells], *, right: Container[int] = ()) -> str:
    """A table of Markdown cells; `right` are the indices of the columns with numbers, which are aligned right."""
    rule = ["---:" if column in right else "---" for column in range(len(head))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *rows))
