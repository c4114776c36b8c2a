"""A study in a terminal: every cell's scores where it was trained and beyond, beside the ceilings."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from orderproof.report import study_words, words
from orderproof.report.printing import print_block
from orderproof.report.tables import text
from orderproof.study_record import Study


def render_study(study: Study, console: Console) -> None:
    """Print the study on the console."""

    def block(content: Text | Table) -> None:
        print_block(console, content, indent=2)

    print_block(console, text(study.study, "bold"), indent=0)
    print_block(console, text(f"{study.question}: {study.statement}"), indent=0)
    console.print()
    block(text(study_words.setting(study)))
    block(text(study_words.how(study)))
    console.print()
    block(_scores(study))
    if laws := study_words.proved(study):
        console.print()
        print_block(console, Text("Proved", style="bold"), indent=0)
        for names, labels in laws.items():
            block(Text.assemble(text(names, "green"), " of ", text("; ".join(labels))))
    if study.published:
        console.print()
        print_block(console, Text("What others report", style="bold"), indent=0)
        for row in study.published:
            block(text(f"{row.label}: {row.text}"))
            block(text(row.source, "dim"))
    console.print()
    print_block(console, text(f"{words.count(len(study.cells), 'cell')}, {_time(study)}"), indent=0)


def _time(study: Study) -> str:
    machine = ", ".join(f"{key} {value}" for key, value in study.machine.items())
    return f"{study_words.duration(study.seconds)} of training{f' ({machine})' if machine else ''}"


def _scores(study: Study) -> Table:
    """A row for each cell; columns of which no cell has anything are left out."""
    ceiling = study_words.CEILING[study.measure]
    beyond = any(cell.beyond for cell in study.cells)
    known = study_words.ceiling_known(study)
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("cell", overflow="fold", min_width=12)
    for heading in ("trained lengths", "beyond") if beyond else ("trained lengths",):
        table.add_column(heading, justify="right", no_wrap=True)
        if known:
            table.add_column(ceiling, justify="right", no_wrap=True)
    for cell in study.cells:
        cells = []
        for found in (cell.trained, cell.beyond) if beyond else (cell.trained,):
            cells.append(study_words.between(found))
            if known:
                cells.append(study_words.score(found.ceiling if found else None))
        table.add_row(text(cell.label), *cells)
    return table
