"""From finished runs to a study: runs that differ in nothing but the seed make a cell, and a cell gets its statistics.

At each length and each point of the curve a cell has the interquartile mean of its runs and a bootstrap interval. Over
several lengths each run is first averaged over them, so that a run stays one draw. Cells are compared over the lengths
beyond the longest trained one, where there are any; for a cross-entropy the lower score is the better one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from pydantic import JsonValue

import orderproof
from orderproof.errors import UsageError
from orderproof.lab.published import published
from orderproof.lab.question import Question
from orderproof.lab.statistics import Accuracy, Array, Interval, interquartile_interval, probability_of_improvement
from orderproof.study_record import Cell, CurvePoint, Improvement, LengthPoint, Over, Study

Run = Mapping[str, Any]
"""A finished run as plain data: id, config, curve, lengths, seconds and tokens_per_second."""

SEED, NAME = "seed", "question.name"
NAMED = ("encoding", "causal", "layers")  # what every cell tells, varied or not


def summarise(
    runs: Sequence[Run],
    *,
    study: str,
    question: type[Question],
    proved: Mapping[str, Iterable[str]] | None = None,
    command: str = "",
    versions: Mapping[str, str] | None = None,
    machine: Mapping[str, str] | None = None,
) -> Study:
    """The study of these runs; ``proved`` has the laws proved of a cell by its label. Raises `UsageError`."""
    grouped = cells(runs)
    laws = {label: tuple(names) for label, names in (proved or {}).items()}
    if unknown := sorted(laws.keys() - grouped.keys()):
        raise UsageError(f"expected laws for cells named {', '.join(grouped)}; got some for {', '.join(unknown)}")
    for run in runs:
        _check(run, question.name)
    varied = _varied(runs)
    longest = {label: _longest_trained(group, question) for label, group in grouped.items()}
    made = tuple(
        _cell(label, group, varied, laws.get(label, ()), longest=longest[label]) for label, group in grouped.items()
    )
    ranges = [run["config"].get("train_lengths") or question.train_lengths for run in runs]
    return Study(
        orderproof=orderproof.__version__,
        study=study,
        question=question.name,
        statement=question.statement,
        measure=question.measure,
        command=command,
        cells=made,
        improvements=tuple(_improvements(grouped, longest, lower_is_better=question.measure == "nats")),
        trained_lengths=(min(low for low, _ in ranges), max(high for _, high in ranges)),
        published=published(question.name),
        versions=dict(versions or {}),
        machine=dict(machine or {}),
        seconds=math.fsum(run["seconds"] for run in runs),
    )


def cells(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """The runs of each cell by its label, cells in the order they come, runs by seed. Raises `UsageError`."""
    if not runs:
        raise UsageError("expected at least one finished run; got none: run the study first")
    varied = _varied(runs)
    grouped: dict[str, list[Run]] = {}
    for run in runs:
        grouped.setdefault(_label(flat(run["config"]), varied), []).append(run)
    for label, group in grouped.items():
        group.sort(key=lambda run: run["config"][SEED])
        for one, other in pairwise(group):
            if one["config"][SEED] == other["config"][SEED]:
                who = f"{one['id']} and {other['id']}"
                raise UsageError(f"expected each seed of '{label}' once; {who} have seed {one['config'][SEED]}")
    return grouped


def flat(config: Mapping[str, Any]) -> dict[str, JsonValue]:
    """A configuration as one level of keys, with dots for the inner ones."""
    found: dict[str, JsonValue] = {}
    for key, value in config.items():
        if isinstance(value, Mapping):
            found.update({f"{key}.{inner}": each for inner, each in flat(value).items()})
        else:
            found[key] = list(value) if isinstance(value, tuple) else value
    return found


def _varied(runs: Sequence[Run]) -> tuple[str, ...]:
    """The keys of which the runs have several values: what every cell tells first, then the others in order."""
    configs = [flat(run["config"]) for run in runs]
    keys = dict.fromkeys((*NAMED, *(key for config in configs for key in config)))
    return tuple(key for key in keys if key != SEED and len({json.dumps(config.get(key)) for config in configs}) > 1)


def _label(config: Mapping[str, JsonValue], varied: Sequence[str]) -> str:
    """What sets the cell apart; nothing for what it does without."""
    said = [_said(key, config[key]) for key in varied if config.get(key) is not None]
    return ", ".join(said) or str(config["encoding"])


def _said(key: str, value: JsonValue) -> str:
    """``rotary``, ``causal``, ``2 layers``, ``width 64``."""
    if key == "encoding":
        return str(value)
    if key == "causal":
        return "causal" if value else "bidirectional"
    if key == "layers":
        return "1 layer" if value == 1 else f"{value} layers"
    return f"{key.removeprefix('question.')} {value if isinstance(value, str) else json.dumps(value)}"


def _check(run: Run, question: str) -> None:
    asked = flat(run["config"])[NAME]
    if asked != question:
        raise UsageError(f"expected runs of the question {question}; run {run['id']} was asked {asked}")
    for kind, key in (("curve", "step"), ("lengths", "length")):
        for point in run[kind]:
            score = point["score"]  # None: JSON has no NaN
            if score is None or not math.isfinite(score):
                why = f"it diverged at {key} {point[key]}; leave its configuration out or lower its learning rate"
                raise UsageError(f"expected finite scores; run {run['id']} has {score}: {why}")


def _longest_trained(runs: Sequence[Run], question: type[Question]) -> int:
    return int((runs[0]["config"].get("train_lengths") or question.train_lengths)[1])


def _cell(label: str, runs: Sequence[Run], varied: Sequence[str], proved: tuple[str, ...], *, longest: int) -> Cell:
    config = flat(runs[0]["config"])
    lengths = _lengths(label, runs)
    scores = _scores(runs, "lengths")
    return Cell(
        label=label,
        encoding=str(config["encoding"]),
        causal=bool(config["causal"]),
        layers=runs[0]["config"]["layers"],
        varied={key: config.get(key) for key in varied if key not in NAMED},
        seeds=len(runs),
        curve=_curve(label, runs),
        lengths=lengths,
        trained=_over(scores, lengths, [k for k, point in enumerate(lengths) if point.trained]),
        beyond=_over(scores, lengths, [k for k, point in enumerate(lengths) if point.length > longest]),
        proved=proved,
        seconds=math.fsum(run["seconds"] for run in runs),
        tokens_per_second=float(np.median([run["tokens_per_second"] for run in runs])),
    )


def _curve(label: str, runs: Sequence[Run]) -> tuple[CurvePoint, ...]:
    steps = _alike(label, runs, "curve", "step")
    if not steps:
        return ()
    found = interquartile_interval(_scores(runs, "curve"))
    return tuple(CurvePoint(step=step, **_ends(found, k)) for k, step in enumerate(steps))


def _lengths(label: str, runs: Sequence[Run]) -> tuple[LengthPoint, ...]:
    lengths = _alike(label, runs, "lengths", "length")
    found = interquartile_interval(_scores(runs, "lengths"))
    made = []
    for k, length in enumerate(lengths):
        points = [run["lengths"][k] for run in runs]
        ceiling = points[0]["ceiling"]
        counted = all(point["right"] is not None for point in points)
        right = sum(point["right"] for point in points) if counted else None
        above = None
        if counted and ceiling is not None:
            above = sum(Accuracy(right=p["right"], scored=p["scored"]).exceeds(ceiling) for p in points)
        scored = sum(point["scored"] for point in points)
        made.append(
            LengthPoint(
                length=length, trained=points[0]["trained"], **_ends(found, k), ceiling=ceiling, right=right,
                scored=scored, above=above,
            )
        )  # fmt: skip
    return tuple(made)


def _over(scores: Array, lengths: Sequence[LengthPoint], chosen: Sequence[int]) -> Over | None:
    """The runs' means over some of the lengths."""
    if not chosen:
        return None
    ceilings = [lengths[k].ceiling for k in chosen]
    known = [ceiling for ceiling in ceilings if ceiling is not None]
    ceiling = math.fsum(known) / len(known) if len(known) == len(ceilings) else None
    return Over(**_ends(interquartile_interval(scores[:, chosen].mean(axis=1, keepdims=True)), 0), ceiling=ceiling)


def _improvements(
    grouped: Mapping[str, Sequence[Run]], longest: Mapping[str, int], *, lower_is_better: bool
) -> Iterable[Improvement]:
    """Every pair of cells, over the lengths both were tested at: those beyond what either was trained at, if any."""
    for (first, ones), (second, others) in combinations(grouped.items(), 2):
        one, other = ([p["length"] for p in runs[0]["lengths"]] for runs in (ones, others))
        shared = [length for length in one if length in other]
        lengths = [length for length in shared if length > max(longest[first], longest[second])] or shared
        if not lengths:
            continue
        sign = -1.0 if lower_is_better else 1.0
        a, b = (sign * _at(runs, lengths) for runs in (ones, others))
        found = probability_of_improvement(a, b)
        yield Improvement(
            first=first,
            second=second,
            lengths=tuple(lengths),
            probability=float(found.value),
            low=float(found.low),
            high=float(found.high),
        )


def _at(runs: Sequence[Run], lengths: Sequence[int]) -> Array:
    by_length = [{p["length"]: p["score"] for p in run["lengths"]} for run in runs]
    return np.array([[scores[length] for length in lengths] for scores in by_length], dtype=np.float64)


def _scores(runs: Sequence[Run], kind: str) -> Array:
    return np.array([[point["score"] for point in run[kind]] for run in runs], dtype=np.float64)


def _alike(label: str, runs: Sequence[Run], kind: str, key: str) -> list[int]:
    """The steps or lengths, which all runs of a cell share."""
    first, *rest = ([point[key] for point in run[kind]] for run in runs)
    for run, found in zip(runs[1:], rest, strict=True):
        if found != first:
            what = f"{runs[0]['id']} and {run['id']} of '{label}'"
            raise UsageError(f"expected every run of a cell to have the same {key}s; {what} differ: run them again")
    return list(first)


def _ends(found: Interval, column: int) -> dict[str, float]:
    return {
        "iqm": float(found.value[column]),
        "low": float(found.low[column]),
        "high": float(found.high[column]),
    }
