"""Markdown tables of the pages of the atlas."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Cells = Sequence[str]


def markdown_table(head: Cells, rows: Iterable[Cells], *, right: int | None = None, left: int | None = None) -> str:
    """A Markdown table. Columns from `right` on are right-aligned; with `left`, the first column is."""
    rule = ["---:" if right is not None and k >= right else "---" for k in range(len(head))]
    if left is not None:
        rule[0] = "---:"
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, rule, *rows))
