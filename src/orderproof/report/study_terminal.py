"""A study in a terminal: the scores of every cell with their ceilings."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from orderproof.records.study import Study
from orderproof.report import phrases, study_phrases
from orderproof.report.study_conclusion import conclusion
from orderproof.report.terminal_blocks import print_block
from orderproof.report.terminal_tables import plain_text


def render_study(study: Study, console: Console) -> None:
    """Print the study on the console."""

    def block(content: Text | Table) -> None:
        print_block(console, content, indent=2)

    print_block(console, plain_text(study.name, "bold"), indent=0)
    print_block(console, plain_text(f"{study.question}: {study.statement}"), indent=0)
    console.print()
    block(plain_text(study_phrases.measurement_text(study)))
    block(plain_text(study_phrases.method_text(study)))
    if text := conclusion(study):
        block(plain_text(text))
    console.print()
    block(_scores_table(study))
    if laws := study_phrases.cells_by_proved_laws(study):
        console.print()
        print_block(console, Text("Proved", style="bold"), indent=0)
        for names, labels in laws.items():
            block(Text.assemble(plain_text(names, "green"), " for ", plain_text("; ".join(labels))))
    if study.published:
        console.print()
        print_block(console, Text("Results from the literature", style="bold"), indent=0)
        for row in study.published:
            block(plain_text(f"{row.label}: {row.text}"))
            block(plain_text(row.source, "dim"))
    console.print()
    print_block(console, plain_text(f"{phrases.pluralize(len(study.cells), 'cell')}, {_time(study)}"), indent=0)


def _time(study: Study) -> str:
    machine = ", ".join(f"{key} {value}" for key, value in study.machine.items())
    return f"{study_phrases.duration(study.seconds)} of training{f' ({machine})' if machine else ''}"


def _scores_table(study: Study) -> Table:
    """A row for each cell; empty columns are omitted."""
    ceiling = study_phrases.CEILING[study.measure]
    has_longer = any(cell.longer_lengths_score for cell in study.cells)
    has_ceiling = study_phrases.ceiling_known(study)
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("cell", overflow="fold", min_width=12)
    for heading in ("trained lengths", "longer lengths")[: 2 if has_longer else 1]:
        table.add_column(heading, justify="right", no_wrap=True)
        if has_ceiling:
            table.add_column(ceiling, justify="right", no_wrap=True)
    for cell in study.cells:
        scores = study_phrases.cell_scores(cell, longer=has_longer, ceiling=has_ceiling)
        table.add_row(plain_text(cell.label), *scores)
    return table
