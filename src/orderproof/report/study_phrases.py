"""The sentences and number formats shared by all renderings of a study."""

from __future__ import annotations

from collections.abc import Sequence

from orderproof.records.study import Cell, Difference, Estimate, LengthPoint, Study
from orderproof.report import phrases
from orderproof.report.study_conclusion import compared_cells

MEASURE_TEXT = {
    "accuracy": "accuracy: the share of the scored positions that are right",
    "exact_match": "exact match: the share of the rows with every scored position right",
    "nats": "cross-entropy per position in nats: lower is better",
}
CEILING = {"accuracy": "ceiling", "exact_match": "ceiling", "nats": "bag optimum"}
ABOVE_CEILING_NOTE = (
    "n of m above: seeds whose own accuracy exceeds the ceiling beyond chance, by the 95% interval of Clopper and "
    "Pearson, which assumes independent positions."
)
MAX_LENGTHS = 8  # shown in a table


def score(value: float | None) -> str:
    """A score with three decimals."""
    return "-" if value is None else f"{value:.3f}"


def format_estimate(estimate: Estimate | None) -> str:
    """A score with its interval, which is omitted if it is below the last decimal."""
    if estimate is None:
        return "-"
    return f"{score(estimate.iqm)} {interval(estimate)}".rstrip()


def cell_scores(cell: Cell, *, longer: bool, ceiling: bool) -> list[str]:
    """The scores of a cell over the trained lengths and, if asked, over the longer ones, each with its ceiling."""
    scores = []
    for mean in (cell.trained_lengths_score, *([cell.longer_lengths_score] if longer else [])):
        scores.append(format_estimate(mean))
        if ceiling:
            scores.append(score(mean.ceiling if mean else None))
    return scores


def measurement_text(study: Study) -> str:
    """The measure, the trained lengths and the number of seeds."""
    low, high = study.trained_lengths
    lengths = f"length {low}" if low == high else f"lengths {low} to {high}"
    return f"{MEASURE_TEXT[study.measure].capitalize()}. Trained at {lengths}, {seeds(study)}."


def method_text(study: Study) -> str:
    """The definitions of score, interval and ceiling."""
    return (
        "A score is the interquartile mean over seeds, with its 95% interval (Tukey and McLaughlin). Each seed has its "
        "own initial weights, training data and test rows, so that the interval includes the error of the test set. "
        f"{CEILING[study.measure].capitalize()}: the best score of a predictor that ignores token order."
    )


def seeds(study: Study) -> str:
    """The number of seeds per cell."""
    counts = sorted({cell.seeds for cell in study.cells})
    if len(counts) == 1:
        return phrases.pluralize(counts[0], "seed")
    return f"{counts[0]} to {counts[-1]} seeds" if counts else "no seeds"


def ceiling_known(study: Study) -> bool:
    """True if any cell has a ceiling."""
    return any(at.ceiling is not None for cell in study.cells for at in cell.lengths)


def shown_lengths(study: Study) -> list[int]:
    """The lengths to show: all, or an even selection with the ends and both sides of the training limit."""
    lengths = sorted({point.length for cell in study.cells for point in cell.lengths})
    if len(lengths) <= MAX_LENGTHS:
        return lengths
    trained = [length for length in lengths if length <= study.trained_lengths[1]]
    limit = len(trained) - 1
    chosen = {0, len(lengths) - 1, *(k for k in (limit, limit + 1) if 0 <= k < len(lengths))}
    for k in (round(i * (len(lengths) - 1) / (MAX_LENGTHS - 1)) for i in range(MAX_LENGTHS)):
        if len(chosen) < MAX_LENGTHS:
            chosen.add(k)
    return [lengths[k] for k in sorted(chosen)]


def point_at_length(cell: Cell, length: int) -> LengthPoint | None:
    """The cell's score at a length; None if it was not tested there."""
    return next((point for point in cell.lengths if point.length == length), None)


def is_trained_length(study: Study, length: int) -> bool:
    """True if any cell was trained at the length."""
    return any(point.in_training_range for cell in study.cells if (point := point_at_length(cell, length)))


def above_ceiling_text(point: LengthPoint | None, cell: Cell) -> str:
    """The number of seeds significantly above the ceiling; empty if there are none."""
    return f"{point.seeds_above_ceiling} of {cell.seeds} above" if point and point.seeds_above_ceiling else ""


def has_ceiling_test(study: Study) -> bool:
    """True if any accuracy was compared with a ceiling."""
    return any(point.seeds_above_ceiling is not None for cell in study.cells for point in cell.lengths)


def interval(estimate: Estimate) -> str:
    """The interval; empty if it is below the last decimal."""
    low, high = score(estimate.low), score(estimate.high)
    return "" if low == high == score(estimate.iqm) else f"[{low}, {high}]"


def cells_by_proved_laws(study: Study) -> dict[str, list[str]]:
    """The labels of the cells by the laws proved of them."""
    labels: dict[str, list[str]] = {}
    for cell in study.cells:
        if cell.proved_laws:
            labels.setdefault(", ".join(cell.proved_laws), []).append(cell.label)
    return labels


def differences_text(study: Study) -> str:
    """The definition of the differences."""
    best = compared_cells(study)[0].label
    lengths = {pair.lengths for pair in study.differences}
    where = "over the common test lengths, longer than those in training if there are any"
    if len(lengths) == 1:
        (common,) = lengths
        where = f"over {'length' if len(common) == 1 else 'lengths'} {_join_numbers(common)}"
    sign = "lower" if study.measure == "nats" else "higher"
    return (
        f"{best} minus each other compared cell within a seed, {where}; a positive number: the score of {best} is "
        f"{sign}. The intervals of all {phrases.pluralize(len(study.differences), 'pair')} of cells hold together with "
        "95%; one that includes 0 decides nothing."
    )


def difference_cells(pair: Difference) -> list[str]:
    """The difference, its interval, and the seeds in which the first cell is better, equal and worse."""
    return [
        f"{pair.difference:+.3f}",
        f"[{pair.low:+.3f}, {pair.high:+.3f}]",
        f"{pair.better} / {pair.ties} / {pair.worse}",
    ]


def sweep_text(cell: Cell) -> str:
    """``0.003 (0.998, 3 of 3 solved in 450 steps), 0.01 (...)``: the rates that were tried, the chosen one first."""
    texts = []
    for point in cell.sweep:
        solved = f", {point.solved} of {point.seeds} solved in {point.steps:.0f} steps" if point.solved else ""
        texts.append(f"{point.learning_rate:g} ({score(point.score)}{solved})")
    return ", ".join(texts)


def _join_numbers(numbers: Sequence[int]) -> str:
    texts = [str(number) for number in numbers]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def duration(seconds: float) -> str:
    """``8.2 s``, ``3.5 min``, ``2.1 h``."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 3600 else f"{seconds / 3600:.1f} h"
