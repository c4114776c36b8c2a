"""The conclusion of a study in two sentences: one about the trained lengths, one about longer ones.

A cell is called better than another only if the interval of their paired difference, which holds together with all
others, excludes 0, and only with `CLAIM_SEEDS` seeds or more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from orderproof.records.study import Cell, Difference, Study

CLAIM_SEEDS = 10
"""Seeds from which cells are ranked."""
NAMED_CELLS = 5
"""Cells that a sentence lists with their scores; it counts more of them."""


def conclusion(study: Study) -> str:
    """The two sentences; empty for a study without scores."""
    if not any(cell.trained_lengths_score for cell in study.cells):
        return ""
    return f"{_trained_sentence(study)} {_longer_sentence(study)}"


def compared_cells(study: Study) -> list[Cell]:
    """The cells that are compared, best first: those that solve the trained lengths, if the score has a maximum."""
    cells = [cell for cell in study.cells if cell.solves_trained_lengths is not False and _mean(cell) is not None]
    sign = 1 if study.measure == "nats" else -1
    return sorted(cells, key=lambda cell: sign * (_mean(cell) or 0.0))


def differences_from_best(study: Study) -> list[Difference]:
    """The differences between the best compared cell and each other one, as best minus other, in order of the cells."""
    cells = compared_cells(study)
    known = {(pair.first, pair.second): pair for pair in study.differences}
    found = []
    for cell in cells[1:]:
        best = cells[0]
        if pair := known.get((best.label, cell.label)):
            found.append(pair)
        elif reverse := known.get((cell.label, best.label)):
            found.append(_reversed(reverse))
    return found


def _trained_sentence(study: Study) -> str:
    if study.measure == "nats":
        ranked = sorted((c for c in study.cells if c.trained_lengths_score), key=_trained)
        return f"At the trained lengths {_with_scores(ranked[:3], _trained)} have the lowest cross-entropy."
    solved = [cell for cell in study.cells if cell.solves_trained_lengths]
    failed = [cell for cell in study.cells if cell.solves_trained_lengths is False]
    text = f"{len(solved)} of {len(study.cells)} cells solve the trained lengths (0.95 or more)"
    if not failed:
        solve = "The only cell solves" if len(solved) == 1 else f"All {len(solved)} cells solve"
        return f"{solve} the trained lengths (0.95 or more)."
    return f"{text}; {_with_scores(failed, _trained)} {_do(failed)} not, and {_are(failed)} not compared beyond them."


def _longer_sentence(study: Study) -> str:
    cells = compared_cells(study)
    if len(cells) < 2:
        return "No two cells can be compared."
    where = "Beyond the trained lengths" if any(cell.longer_lengths_score for cell in cells) else "There"
    if (seeds := min(cell.seeds for cell in cells)) < CLAIM_SEEDS:
        return f"With {seeds} seeds ({CLAIM_SEEDS} are needed) the cells are not ranked."
    pairs = differences_from_best(study)
    equal = {pair.second for pair in pairs if not pair.low > 0}
    best, tied = cells[0], [cell for cell in cells[1:] if cell.label in equal]
    score = "lowest" if study.measure == "nats" else "highest"
    text = f"{where} {_with_scores([best], _value)} has the {score} score"
    if not tied:
        rest = cells[1:]
        named = _with_scores(rest, _value) if len(rest) <= NAMED_CELLS else "every other compared cell"
        return f"{text}, and is better than {named}."
    worse = len(cells) - 1 - len(tied)
    others = "the other one" if worse == 1 else f"the {worse} others"
    beyond = f" and is better than {others}" if worse else ""
    return f"{text}; it cannot be distinguished from {_with_scores(tied, _value)}{beyond}."


def _mean(cell: Cell) -> float | None:
    mean = cell.longer_lengths_score or cell.trained_lengths_score
    return None if mean is None else mean.iqm


def _value(cell: Cell) -> float:
    return _mean(cell) or 0.0


def _trained(cell: Cell) -> float:
    return 0.0 if cell.trained_lengths_score is None else cell.trained_lengths_score.iqm


def _with_scores(cells: Sequence[Cell], score: Callable[[Cell], float]) -> str:
    """``"rotary" (0.912), "t5" (0.700) and "none" (0.500)``: some labels are words, and some have commas."""
    texts = [f'"{cell.label}" ({score(cell):.3f})' for cell in cells]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def _do(cells: Sequence[Cell]) -> str:
    return "does" if len(cells) == 1 else "do"


def _are(cells: Sequence[Cell]) -> str:
    return "is" if len(cells) == 1 else "are"


def _reversed(pair: Difference) -> Difference:
    return Difference(
        first=pair.second, second=pair.first, lengths=pair.lengths, difference=-pair.difference,
        low=-pair.high, high=-pair.low, better=pair.worse, worse=pair.better, ties=pair.ties,
    )  # fmt: skip
