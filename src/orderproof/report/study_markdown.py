"""A study as a page of Markdown: the question, a conclusion in two sentences, the command, and the results."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from urllib.parse import quote

from orderproof.records.study import Cell, Study
from orderproof.report import phrases, study_phrases
from orderproof.report.markdown import code_span, escape_markdown
from orderproof.report.markdown_table import markdown_table
from orderproof.report.study_conclusion import conclusion, differences_from_best


def render_study_markdown(study: Study, *, pictures: Mapping[str, str] | None = None) -> str:
    """The page as text; ``pictures`` maps a description to the path of the plot, relative to the page."""
    parts = [
        f"# {escape_markdown(study.name)}",
        f"{escape_markdown(study.statement)} (question {code_span(study.question)})",
    ]
    if text := conclusion(study):
        parts += ["## Conclusion", escape_markdown(text)]
    if study.command:
        parts += ["## Command", _code_block(study.command)]
    parts += [
        "## Results",
        escape_markdown(study_phrases.measurement_text(study)),
        study_phrases.method_text(study),
        _scores_table(study),
    ]
    parts += [f"![{escape_markdown(description)}]({quote(path)})" for description, path in (pictures or {}).items()]
    parts += [
        *_length_section(study),
        *_difference_section(study),
        *_sweep_section(study),
        *_literature_section(study),
        "## Method",
        _environment_section(study),
    ]
    return "\n\n".join(parts) + "\n"


def _code_block(command: str) -> str:
    """The command as a code block, with a fence longer than any run of backticks in it."""
    lines = "\n".join(phrases.escape_control_characters(line) for line in command.splitlines())
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", lines)), default=0))
    return f"{fence}sh\n{lines}\n{fence}"


def _scores_table(study: Study) -> str:
    ceiling = study_phrases.CEILING[study.measure]
    has_longer = any(cell.longer_lengths_score for cell in study.cells)
    has_ceiling = study_phrases.ceiling_known(study)
    columns = [ceiling] if has_ceiling else []
    longer = ["longer lengths", *columns] if has_longer else []
    head = ["cell", "seeds", "trained lengths", *columns, *longer, "proved", "time"]
    rows = []
    for cell in study.cells:
        scores = study_phrases.cell_scores(cell, longer=has_longer, ceiling=has_ceiling)
        proved = ", ".join(code_span(law).replace("|", "\\|") for law in cell.proved_laws)
        note = " (not solved, not compared)" if cell.solves_trained_lengths is False else ""
        rows.append(
            [escape_markdown(cell.label) + note, str(cell.seeds), *scores, proved, study_phrases.duration(cell.seconds)]
        )
    return markdown_table(head, rows, right=range(1, len(head)))


def _length_section(study: Study) -> Iterator[str]:
    """A column for each shown length; the last row has the ceilings if all cells share them."""
    shown = study_phrases.shown_lengths(study)
    if len(shown) < 2:
        return
    head = ["cell", *(f"{n}, trained" if study_phrases.is_trained_length(study, n) else str(n) for n in shown)]
    ceilings = [{p.ceiling for cell in study.cells if (p := study_phrases.point_at_length(cell, n))} for n in shown]
    shared = all(len(values) == 1 for values in ceilings)
    rows = [
        [escape_markdown(cell.label), *(_score_cell(study, cell, n, ceiling=not shared) for n in shown)]
        for cell in study.cells
    ]
    if shared and ceilings != [{None}] * len(shown):
        rows.append([study_phrases.CEILING[study.measure], *(study_phrases.score(*values) for values in ceilings)])
    yield "## By length"
    if study_phrases.has_ceiling_test(study):
        yield study_phrases.ABOVE_CEILING_NOTE
    yield markdown_table(head, rows, right=range(1, len(head)))


def _score_cell(study: Study, cell: Cell, length: int, *, ceiling: bool) -> str:
    """The score of a cell at a length, with the ceiling if cells have different ones."""
    point = study_phrases.point_at_length(cell, length)
    ceiling_text = (
        f"({study_phrases.CEILING[study.measure]} {study_phrases.score(point.ceiling)})" if ceiling and point else ""
    )
    return " ".join(
        filter(
            None, (study_phrases.format_estimate(point), ceiling_text, study_phrases.above_ceiling_text(point, cell))
        )
    )


def _difference_section(study: Study) -> Iterator[str]:
    pairs = differences_from_best(study)
    if not pairs:
        return
    yield "## Paired differences"
    yield escape_markdown(study_phrases.differences_text(study))
    head = ["cell", "difference", "interval", "seeds better / equal / worse"]
    rows = [[escape_markdown(pair.second), *study_phrases.difference_cells(pair)] for pair in pairs]
    yield markdown_table(head, rows, right=range(1, len(head)))


def _sweep_section(study: Study) -> Iterator[str]:
    if not any(cell.sweep for cell in study.cells):
        return
    yield "## Learning rates"
    yield (
        "Each cell was trained with every rate on other seeds; the rate that solves the longest trained length in most "
        "seeds, then in the fewest steps, then with the best score on validation rows, is used."
    )
    rows = [
        [escape_markdown(cell.label), f"{cell.learning_rate:g}", escape_markdown(study_phrases.sweep_text(cell))]
        for cell in study.cells
        if cell.learning_rate is not None
    ]
    yield markdown_table(["cell", "used", "tried, best first"], rows, right=[1])


def _literature_section(study: Study) -> Iterator[str]:
    if not study.published:
        return
    yield "## Results from the literature"
    yield "From other models, trained and tested differently: context, not a comparison."
    yield "\n".join(
        f"- {escape_markdown(row.label)}: {escape_markdown(row.text)}. {escape_markdown(row.source)}."
        for row in study.published
    )


def _environment_section(study: Study) -> str:
    lines = [f"- {escape_markdown(key)}: {escape_markdown(value)}" for key, value in study.machine.items()]
    versions = {"orderproof": study.orderproof, **study.versions}
    lines.append(
        "- versions: "
        + ", ".join(f"{escape_markdown(name)} {escape_markdown(version)}" for name, version in versions.items())
    )
    lines.append(f"- seeds: {study_phrases.seeds(study)} per cell")
    lines.append(f"- time: {study_phrases.duration(study.seconds)} of training")
    return "\n".join(lines)
