"""The record of a study from its finished runs: runs that differ only in the seed form a cell.

At each length and at each point of the learning curve, a cell has the interquartile mean of its runs and its
interval. A mean over lengths is taken within each run first, because runs are independent and lengths are not. Cells
that solve the trained lengths are compared within each seed, over the lengths longer than any in training, if there are
any; for a cross-entropy, lower is better.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from pydantic import JsonValue

import orderproof
from orderproof.errors import UsageError
from orderproof.lab.literature_results import literature_results
from orderproof.lab.proof_consistency import proved_invariances
from orderproof.lab.question import Measure, Question
from orderproof.lab.setting_keys import NAME_KEY, QUESTION_KEY, SEED_KEY
from orderproof.lab.statistics import (
    Array,
    BinomialAccuracy,
    Interval,
    interquartile_interval,
    paired_difference,
)
from orderproof.records.study import Cell, CurvePoint, Difference, LengthPoint, MeanScore, Study, SweepPoint

Run = Mapping[str, Any]
"""A finished run as plain data: id, config, curve, lengths, seconds and tokens_per_second."""

FLAT_NAME_KEY = f"{QUESTION_KEY}.{NAME_KEY}"
RATE_KEY = "learning_rate"
SOLVED = 0.95  # the mean score over the trained lengths from which a cell is compared beyond them
CELL_FIELDS = ("encoding", "causal", "layers")  # have a field of their own in every cell


def summarise(
    runs: Sequence[Run],
    *,
    study: str,
    question: type[Question],
    proved: Mapping[str, Iterable[str]] | None = None,
    sweep: Mapping[str, tuple[SweepPoint, ...]] | None = None,
    exhaustive: Callable[[Run, int], bool] = lambda run, length: False,
    command: str = "",
    versions: Mapping[str, str] | None = None,
    machine: Mapping[str, str] | None = None,
) -> Study:
    """The record of these runs. Raises `UsageError`.

    ``proved`` and ``sweep`` map the label of a cell to the laws proved of it and to the learning rates tried.
    ``exhaustive`` is true where a run was tested on every row of a length, so that its score has no sampling error.
    """
    grouped = group_cells(runs)
    laws = {label: tuple(dict.fromkeys(names)) for label, names in (proved or {}).items()}  # once, for all calls
    if unknown := sorted(laws.keys() - grouped.keys()):
        raise UsageError(f"expected laws for cells named {', '.join(grouped)}; got some for {', '.join(unknown)}")
    for run in runs:
        _check(run, question.name)
    varied = _varied_keys(runs)
    longest = {label: _longest_trained(group, question) for label, group in grouped.items()}
    cells = tuple(
        _cell(
            label,
            group,
            varied,
            laws.get(label, ()),
            (sweep or {}).get(label, ()),
            longest=longest[label],
            measure=question.measure,
            exhaustive=exhaustive,
        )
        for label, group in grouped.items()
    )
    compared = {cell.label: grouped[cell.label] for cell in cells if cell.solves_trained_lengths is not False}
    ranges = [run["config"].get("train_lengths") or question.train_lengths for run in runs]
    return Study(
        orderproof=orderproof.__version__,
        name=study,
        question=question.name,
        statement=question.statement,
        measure=question.measure,
        command=command,
        cells=cells,
        differences=tuple(_differences(compared, longest, lower_is_better=question.measure == "nats")),
        trained_lengths=(min(low for low, _ in ranges), max(high for _, high in ranges)),
        published=literature_results(question.name),
        versions=dict(versions or {}),
        machine=dict(machine or {}),
        seconds=math.fsum(run["seconds"] for run in runs),
    )


def group_cells(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """The runs of each cell by its label: cells in order of appearance, runs by seed. Raises `UsageError`."""
    if not runs:
        raise UsageError("expected at least one finished run; got none: run the study first")
    varied = _varied_keys(runs)
    grouped: dict[str, list[Run]] = {}
    for run in runs:
        grouped.setdefault(_label(flatten_config(run["config"]), varied), []).append(run)
    for label, group in grouped.items():
        group.sort(key=lambda run: run["config"][SEED_KEY])
        for run, following in pairwise(group):
            if (seed := run["config"][SEED_KEY]) == following["config"][SEED_KEY]:
                ids = f"{run['id']} and {following['id']}"
                raise UsageError(f"expected each seed of '{label}' once; {ids} have seed {seed}")
    return grouped


def flatten_config(config: Mapping[str, Any]) -> dict[str, JsonValue]:
    """A nested configuration as one level of dotted keys."""
    flat: dict[str, JsonValue] = {}
    for key, value in config.items():
        if isinstance(value, Mapping):
            flat.update({f"{key}.{inner}": each for inner, each in flatten_config(value).items()})
        else:
            flat[key] = list(value) if isinstance(value, tuple) else value
    return flat


def _varied_keys(runs: Sequence[Run]) -> tuple[str, ...]:
    """The keys with several values among the runs: those of `CELL_FIELDS` first, then the others in order."""
    configs = [flatten_config(run["config"]) for run in runs]
    keys = dict.fromkeys((*CELL_FIELDS, *(key for config in configs for key in config)))
    varied = [key for key in keys if key != SEED_KEY and len({json.dumps(config.get(key)) for config in configs}) > 1]
    others = [key for key in varied if key != RATE_KEY]
    cells = {json.dumps([config.get(key) for key in others]) for config in configs}
    with_rates = {json.dumps([config.get(key) for key in varied]) for config in configs}
    return tuple(others if len(cells) == len(with_rates) else varied)  # a rate that a sweep chose is no setting


def _label(config: Mapping[str, JsonValue], varied: Sequence[str]) -> str:
    """The varied settings of the cell, without those that are None."""
    settings = [_format_setting(key, config[key]) for key in varied if config.get(key) is not None]
    return ", ".join(settings) or str(config["encoding"])


def _format_setting(key: str, value: JsonValue) -> str:
    """``rotary``, ``causal``, ``2 layers``, ``width 64``."""
    if key == "encoding":
        return str(value)
    if key == "causal":
        return "causal" if value else "bidirectional"
    if key == "layers":
        return "1 layer" if value == 1 else f"{value} layers"
    name = key.removeprefix("question.").removeprefix("encoding_arguments.").replace("_", " ")
    if value is True:
        return name
    return f"{name} {value if isinstance(value, str) else json.dumps(value)}"


def _check(run: Run, question: str) -> None:
    name = flatten_config(run["config"])[FLAT_NAME_KEY]
    if name != question:
        raise UsageError(f"expected runs of the question {question}; run {run['id']} has {name}")
    for kind, key in (("curve", "step"), ("lengths", "length")):
        for point in run[kind]:
            score = point["score"]  # None: JSON has no NaN
            if score is None or not math.isfinite(score):
                advice = f"it diverged at {key} {point[key]}; remove its configuration or lower its learning rate"
                raise UsageError(f"expected finite scores; run {run['id']} has {score}: {advice}")


def _longest_trained(runs: Sequence[Run], question: type[Question]) -> int:
    return int((runs[0]["config"].get("train_lengths") or question.train_lengths)[1])


def _cell(
    label: str,
    runs: Sequence[Run],
    varied: Sequence[str],
    proved: tuple[str, ...],
    sweep: tuple[SweepPoint, ...],
    *,
    longest: int,
    measure: Measure,
    exhaustive: Callable[[Run, int], bool],
) -> Cell:
    config = flatten_config(runs[0]["config"])
    lengths = _lengths(label, runs, measure, exhaustive)
    scores = _scores(runs, "lengths")
    trained = _mean_over_lengths(
        scores, lengths, [k for k, point in enumerate(lengths) if point.in_training_range], measure
    )
    return Cell(
        label=label,
        encoding=str(config["encoding"]),
        causal=bool(config["causal"]),
        layers=runs[0]["config"]["layers"],
        grid_values={key: config.get(key) for key in varied if key not in CELL_FIELDS},
        seeds=len(runs),
        curve=_curve(runs, measure),
        lengths=lengths,
        trained_lengths_score=trained,
        longer_lengths_score=_mean_over_lengths(
            scores, lengths, [k for k, point in enumerate(lengths) if point.length > longest], measure
        ),
        solves_trained_lengths=None if measure == "nats" or trained is None else trained.iqm >= SOLVED,
        proved_laws=proved,
        proved_invariances=proved_invariances(proved),
        learning_rate=float(runs[0]["config"]["learning_rate"]),
        sweep=sweep,
        parameters=runs[0]["parameters"],
        seconds=math.fsum(run["seconds"] for run in runs),
        tokens_per_second=float(np.median([run["tokens_per_second"] for run in runs])),
    )


def _curve(runs: Sequence[Run], measure: Measure) -> tuple[CurvePoint, ...]:
    steps = sorted({point["step"] for run in runs for point in run["curve"]})
    if not steps:
        return ()
    interval = _interval([[_score_at(run, step) for step in steps] for run in runs], measure)
    return tuple(CurvePoint(step=step, **_interval_fields(interval, k)) for k, step in enumerate(steps))


def _score_at(run: Run, step: int) -> float:
    """The score of the last measurement up to a step; a run that stopped keeps its last score."""
    scores = [point["score"] for point in run["curve"] if point["step"] <= step]
    return float(scores[-1] if scores else run["curve"][0]["score"])


def _lengths(
    label: str, runs: Sequence[Run], measure: Measure, exhaustive: Callable[[Run, int], bool]
) -> tuple[LengthPoint, ...]:
    lengths = _shared_steps(label, runs, "lengths", "length")
    interval = _interval(_scores(runs, "lengths"), measure)
    length_points = []
    for k, length in enumerate(lengths):
        points = [run["lengths"][k] for run in runs]
        ceiling = points[0]["ceiling"]
        counted = all(point["right"] is not None for point in points)
        right = sum(point["right"] for point in points) if counted else None
        above = None
        if counted and ceiling is not None:
            above = sum(BinomialAccuracy(right=p["right"], scored=p["scored"]).exceeds(ceiling) for p in points)
        scored = sum(point["scored"] for point in points)
        if counted and interval.low[k] == interval.high[k] and not exhaustive(runs[0], length):
            low, high = BinomialAccuracy(right=right or 0, scored=scored).interval()
            # A seed that the mean drops can move this interval of all rows away from it.
            interval.low[k], interval.high[k] = min(low, interval.value[k]), max(high, interval.value[k])
        length_points.append(
            LengthPoint(
                length=length, in_training_range=points[0]["trained"], **_interval_fields(interval, k), ceiling=ceiling,
                correct_count=right, scored_count=scored, seeds_above_ceiling=above,
            )
        )  # fmt: skip
    return tuple(length_points)


def _interval(scores: ArrayLike, measure: Measure) -> Interval:
    """The interquartile mean of each column with its interval, within 0 and 1 for a share."""
    found = interquartile_interval(scores)
    high = math.inf if measure == "nats" else 1.0
    return Interval(value=found.value, low=np.maximum(found.low, 0.0), high=np.minimum(found.high, high))


def _mean_over_lengths(
    scores: Array, lengths: Sequence[LengthPoint], chosen: Sequence[int], measure: Measure
) -> MeanScore | None:
    """The score averaged over some of the lengths in each run, over the runs."""
    if not chosen:
        return None
    ceilings = [lengths[k].ceiling for k in chosen]
    known = [ceiling for ceiling in ceilings if ceiling is not None]
    ceiling = math.fsum(known) / len(known) if len(known) == len(ceilings) else None
    return MeanScore(
        **_interval_fields(_interval(scores[:, chosen].mean(axis=1, keepdims=True), measure), 0), ceiling=ceiling
    )


def _differences(
    grouped: Mapping[str, Sequence[Run]], longest: Mapping[str, int], *, lower_is_better: bool
) -> Iterable[Difference]:
    """Every pair of cells, over their common test lengths beyond both training ranges, or over all common ones."""
    sign = -1.0 if lower_is_better else 1.0
    pairs = list(combinations(grouped.items(), 2))
    for (first, first_runs), (second, second_runs) in pairs:
        tested, other_tested = ([p["length"] for p in runs[0]["lengths"]] for runs in (first_runs, second_runs))
        shared = [length for length in tested if length in other_tested]
        lengths = [length for length in shared if length > max(longest[first], longest[second])] or shared
        seeds = sorted({r["config"][SEED_KEY] for r in first_runs} & {r["config"][SEED_KEY] for r in second_runs})
        if not lengths or len(seeds) < 2:
            continue
        a, b = (
            sign * _score_matrix([run for run in runs if run["config"][SEED_KEY] in seeds], lengths).mean(axis=1)
            for runs in (first_runs, second_runs)
        )
        if (found := paired_difference(a, b, comparisons=len(pairs))) is not None:
            yield Difference(
                first=first, second=second, lengths=tuple(lengths), difference=found.value, low=found.low,
                high=found.high, better=found.better, worse=found.worse, ties=len(seeds) - found.better - found.worse,
            )  # fmt: skip


def _score_matrix(runs: Sequence[Run], lengths: Sequence[int]) -> Array:
    by_length = [{p["length"]: p["score"] for p in run["lengths"]} for run in runs]
    return np.array([[scores[length] for length in lengths] for scores in by_length], dtype=np.float64)


def _scores(runs: Sequence[Run], kind: str) -> Array:
    return np.array([[point["score"] for point in run[kind]] for run in runs], dtype=np.float64)


def _shared_steps(label: str, runs: Sequence[Run], kind: str, key: str) -> list[int]:
    """The steps or lengths, which must be the same in all runs of a cell. Raises `UsageError`."""
    first, *rest = ([point[key] for point in run[kind]] for run in runs)
    for run, values in zip(runs[1:], rest, strict=True):
        if values != first:
            ids = f"{runs[0]['id']} and {run['id']} of '{label}'"
            raise UsageError(f"expected every run of a cell to have the same {key}s; {ids} differ: run them again")
    return list(first)


def _interval_fields(interval: Interval, column: int) -> dict[str, float]:
    return {
        "iqm": float(interval.value[column]),
        "low": float(interval.low[column]),
        "high": float(interval.high[column]),
    }
