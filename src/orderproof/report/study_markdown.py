"""A study as a page of Markdown: what was asked, how to repeat it, what came out, and beside it what others report.

The page states numbers and draws no conclusion from them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from orderproof.report import destination, study_words, words
from orderproof.report.markdown import code, escaped
from orderproof.study_record import Cell, Study


def write_study_markdown(study: Study, target: str | Path, *, pictures: Mapping[str, str] | None = None) -> None:
    """Write the page to a file in one step, or to standard output when the target is ``-``."""
    destination.write(render_study_markdown(study, pictures=pictures), target)


def render_study_markdown(study: Study, *, pictures: Mapping[str, str] | None = None) -> str:
    """The page as text; ``pictures`` has the paths of pictures, as the page links them, by what they show."""
    parts = [f"# {escaped(study.study)}", f"{escaped(study.statement)} (question {code(study.question)})"]
    if study.command:
        parts += ["## The command", _fenced(study.command)]
    parts += ["## What came out", escaped(study_words.setting(study)), study_words.how(study), _scores(study)]
    parts += [f"![{escaped(shows)}]({quote(path)})" for shows, path in (pictures or {}).items()]
    parts += [*_by_length(study), *_pairs(study), *_published(study), "## How it was measured", _measured(study)]
    return "\n\n".join(parts) + "\n"


def _fenced(command: str) -> str:
    """The command as a block of code, with a fence longer than any in it."""
    lines = "\n".join(words.visible(line) for line in command.splitlines())
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", lines)), default=0))
    return f"{fence}sh\n{lines}\n{fence}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; the first column is text, the others are numbers. All cells are Markdown already."""
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *rows))


def _scores(study: Study) -> str:
    ceiling = study_words.CEILING[study.measure]
    beyond = any(cell.beyond for cell in study.cells)
    known = study_words.ceiling_known(study)
    best = [ceiling] if known else []
    head = ["cell", "seeds", "trained lengths", *best, *(["beyond", *best] if beyond else []), "proved", "time"]
    rows = []
    for cell in study.cells:
        scores = []
        for found in (cell.trained, cell.beyond) if beyond else (cell.trained,):
            scores.append(study_words.between(found))
            if known:
                scores.append(study_words.score(found.ceiling if found else None))
        proved = ", ".join(code(law).replace("|", "\\|") for law in cell.proved)
        rows.append([escaped(cell.label), str(cell.seeds), *scores, proved, study_words.duration(cell.seconds)])
    return table(head, rows)


def _by_length(study: Study) -> Iterator[str]:
    """A column for each length, or for some of them; the last row has the ceilings where all cells share them."""
    shown = study_words.lengths(study)
    if len(shown) < 2:
        return
    head = ["cell", *(f"{n}, trained" if study_words.trained_at(study, n) else str(n) for n in shown)]
    ceilings = [{p.ceiling for cell in study.cells if (p := study_words.at(cell, n))} for n in shown]
    shared = all(len(found) == 1 for found in ceilings)
    rows = [[escaped(cell.label), *(_told(study, cell, n, ceiling=not shared) for n in shown)] for cell in study.cells]
    if shared and ceilings != [{None}] * len(shown):
        rows.append([study_words.CEILING[study.measure], *(study_words.score(*found) for found in ceilings)])
    yield "## By length"
    if study_words.counted(study):
        yield study_words.ABOVE
    yield table(head, rows)


def _told(study: Study, cell: Cell, length: int, *, ceiling: bool) -> str:
    """What a cell scores at a length; with the ceiling where cells have different ones."""
    point = study_words.at(cell, length)
    best = f"({study_words.CEILING[study.measure]} {study_words.score(point.ceiling)})" if ceiling and point else ""
    return " ".join(filter(None, (study_words.between(point), best, study_words.above(point, cell))))


def _pairs(study: Study) -> Iterator[str]:
    rows = study_words.pairs(study)
    if not rows:
        if study.improvements:
            yield study_words.elsewhere(study)
        return
    yield "## Which is better, how probably"
    yield (
        "The probability that a run of the row's cell scores better than a run of the column's, "
        f"{study_words.compared(study)}, with its 95% interval; 0.5 where the two are alike."
    )
    head = ["", *(str(k) for k in range(1, len(rows) + 1))]
    body = []
    for k, (cell, row) in enumerate(zip(study.cells, rows, strict=True), start=1):
        cells = [f"{p.probability:.2f} [{p.low:.2f}, {p.high:.2f}]" if p else "" for p in row]
        body.append([f"{k} {escaped(cell.label)}", *cells])
    yield table(head, body)


def _published(study: Study) -> Iterator[str]:
    if not study.published:
        return
    yield "## What others report"
    yield "Other models, trained and tested in another way: to read beside, not to compare with."
    yield "\n".join(f"- {escaped(row.label)}: {escaped(row.text)}. {escaped(row.source)}." for row in study.published)


def _measured(study: Study) -> str:
    lines = [f"- {escaped(key)}: {escaped(value)}" for key, value in study.machine.items()]
    versions = {"orderproof": study.orderproof, **study.versions}
    lines.append(
        "- versions: " + ", ".join(f"{escaped(name)} {escaped(version)}" for name, version in versions.items())
    )
    lines.append(f"- seeds: {study_words.seeds(study)} a cell")
    lines.append(f"- time: {study_words.duration(study.seconds)} of training")
    return "\n".join(lines)
