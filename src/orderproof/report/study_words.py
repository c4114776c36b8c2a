"""The sentences and numbers that every rendering of a study says in the same way."""

from __future__ import annotations

from collections.abc import Sequence

from orderproof.report import words
from orderproof.study_record import Cell, Estimate, Improvement, LengthPoint, Study

MEASURES = {
    "accuracy": "accuracy: the share of the scored places that are right",
    "exact_match": "exact match: the share of the rows with every place right",
    "nats": "cross-entropy a place in nats: lower is better",
}
CEILING = {"accuracy": "ceiling", "exact_match": "ceiling", "nats": "best blind"}
ABOVE = (
    "n of m above: seeds whose own accuracy exceeds the ceiling beyond chance, by the 95% interval of Clopper and "
    "Pearson, which takes the scored places as independent."
)
LENGTHS_SHOWN = 8
MATRIX = 12  # cells whose pairs are shown in a table


def score(value: float | None) -> str:
    """A score to three digits after the point."""
    return "-" if value is None else f"{value:.3f}"


def between(found: Estimate | None) -> str:
    """A score with its interval; without, where it is as short as the last digit."""
    if found is None:
        return "-"
    return f"{score(found.iqm)} {interval(found)}".rstrip()


def setting(study: Study) -> str:
    """What was measured, on which lengths, how often."""
    low, high = study.trained_lengths
    lengths = f"length {low}" if low == high else f"lengths {low} to {high}"
    return f"{MEASURES[study.measure].capitalize()}. Trained at {lengths}, {seeds(study)}."


def how(study: Study) -> str:
    """What a score, its interval and the ceiling are."""
    return (
        "A score is the interquartile mean over seeds, with a 95% bootstrap interval of it, which over few seeds is "
        f"too narrow. {CEILING[study.measure].capitalize()}: the best score that any reader blind to order can have."
    )


def seeds(study: Study) -> str:
    """How many seeds a cell has."""
    counts = sorted({cell.seeds for cell in study.cells})
    if len(counts) == 1:
        return words.count(counts[0], "seed")
    return f"{counts[0]} to {counts[-1]} seeds" if counts else "no seeds"


def ceiling_known(study: Study) -> bool:
    """Whether any cell has a ceiling: where none has, a column of dashes tells nothing."""
    return any(at.ceiling is not None for cell in study.cells for at in cell.lengths)


def lengths(study: Study) -> list[int]:
    """The lengths to show: all, or some evenly apart with the first, the last and the border of training among them."""
    every = sorted({point.length for cell in study.cells for point in cell.lengths})
    if len(every) <= LENGTHS_SHOWN:
        return every
    trained = [length for length in every if length <= study.trained_lengths[1]]
    border = len(trained) - 1
    must = {0, len(every) - 1, *(k for k in (border, border + 1) if 0 <= k < len(every))}
    for k in (round(i * (len(every) - 1) / (LENGTHS_SHOWN - 1)) for i in range(LENGTHS_SHOWN)):
        if len(must) < LENGTHS_SHOWN:
            must.add(k)
    return [every[k] for k in sorted(must)]


def at(cell: Cell, length: int) -> LengthPoint | None:
    """The cell's point at a length, where it was tested there."""
    return next((point for point in cell.lengths if point.length == length), None)


def trained_at(study: Study, length: int) -> bool:
    """Whether any cell was trained at the length."""
    return any(point.trained for cell in study.cells if (point := at(cell, length)))


def above(point: LengthPoint | None, cell: Cell) -> str:
    """In how many seeds the accuracy is above the ceiling beyond chance; nothing where none is or it is not counted."""
    return f"{point.above} of {cell.seeds} above" if point and point.above else ""


def counted(study: Study) -> bool:
    """Whether any accuracy was held against a ceiling."""
    return any(point.above is not None for cell in study.cells for point in cell.lengths)


def pairs(study: Study) -> list[list[Improvement | None]]:
    """A row for each cell: how probably it is better than each other; nothing where there are too many cells."""
    if not 2 <= len(study.cells) <= MATRIX:
        return []
    known = {(p.first, p.second): p for p in study.improvements}
    turned = {(p.second, p.first): _turned(p) for p in study.improvements}
    labels = [cell.label for cell in study.cells]
    rows = [[known.get((a, b)) or turned.get((a, b)) for b in labels] for a in labels]
    return rows if study.improvements else []


def _turned(pair: Improvement) -> Improvement:
    """The same of the second over the first."""
    return Improvement(
        first=pair.second, second=pair.first, lengths=pair.lengths,
        probability=1 - pair.probability, low=1 - pair.high, high=1 - pair.low,
    )  # fmt: skip


def interval(found: Estimate) -> str:
    """The interval alone; nothing where it is as short as the last digit shown."""
    low, high = score(found.low), score(found.high)
    return "" if low == high == score(found.iqm) else f"[{low}, {high}]"


def elsewhere(study: Study) -> str:
    """Where the comparisons are that a page has no room for."""
    return f"How probably each cell is better than each other, {len(study.improvements):,} pairs, is in the JSON."


def proved(study: Study) -> dict[str, list[str]]:
    """The cells of which the same laws were proved, by these laws."""
    found: dict[str, list[str]] = {}
    for cell in study.cells:
        if cell.proved:
            found.setdefault(", ".join(cell.proved), []).append(cell.label)
    return found


def compared(study: Study) -> str:
    """Over which lengths cells are compared."""
    over = {pair.lengths for pair in study.improvements}
    if len(over) == 1:
        (found,) = over
        return f"over {'length' if len(found) == 1 else 'lengths'} {_listed(found)}"
    return "over the lengths that both were tested at, beyond the trained ones where there are any"


def _listed(numbers: Sequence[int]) -> str:
    shown = [str(number) for number in numbers]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def duration(seconds: float) -> str:
    """``8.2 s``, ``3.5 min``, ``2.1 h``."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 3600 else f"{seconds / 3600:.1f} h"
