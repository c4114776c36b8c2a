"""Studies made up for the tests of their renderers: curves and scores from formulas, none of them measured."""

from __future__ import annotations

import math
from collections.abc import Sequence

from orderproof.records.study import (
    Cell,
    CurvePoint,
    Difference,
    LengthPoint,
    MeanScore,
    Measure,
    PublishedResult,
    Study,
)

ENCODINGS = (
    "none", "sinusoidal", "learned", "rotary", "alibi", "t5", "kerple", "fire", "sandwich", "shaw", "xpos", "cope",
)  # fmt: skip


def cell(
    label: str, *, reach: float = 20.0, encoding: str = "", causal: bool = True, layers: int = 2,
    lengths: Sequence[int] = (5, 10, 15, 20, 25, 30, 35, 40), trained: int = 20, seeds: int = 5,
    ceiling: float | None = 0.5, proved: tuple[str, ...] = (), measure: Measure = "accuracy",
) -> Cell:  # fmt: skip
    """A cell whose score falls from 1 to the ceiling around the length ``reach``."""
    bottom, width = ceiling or 0.0, 0.0 if seeds == 1 or reach == 0 else 0.06

    def points(values: Sequence[float]) -> list[dict[str, float]]:
        if measure == "nats":
            values = [3.0 - 2.5 * v for v in values]
            return [{"iqm": v, "low": v - width, "high": v + width} for v in values]
        return [{"iqm": v, "low": max(v - width, 0.0), "high": min(v + width, 1.0)} for v in values]

    after = [bottom + (1 - bottom) / (1 + math.exp((n - reach) / 3)) if reach else bottom for n in lengths]
    steps = range(50, 1001, 50)
    while_training = [bottom + (after[0] - bottom) * (1 - math.exp(-s / (9_000 / max(reach, 1.0)))) for s in steps]
    ceilings = [None if ceiling is None else 3.0 - 2.5 * ceiling if measure == "nats" else ceiling for _ in lengths]
    made = [
        LengthPoint(
            length=n,
            in_training_range=n <= trained,
            ceiling=c,
            scored_count=100 * seeds,
            correct_count=None if measure == "nats" else 50,
            seeds_above_ceiling=None if c is None or measure == "nats" else seeds * (p["iqm"] > 0.6),
            **p,
        )
        for n, c, p in zip(lengths, ceilings, points(after), strict=True)
    ]
    return Cell(
        label=label,
        encoding=encoding or label,
        causal=causal,
        layers=layers,
        seeds=seeds,
        curve=tuple(CurvePoint(step=s, **p) for s, p in zip(steps, points(while_training), strict=True)),
        lengths=tuple(made),
        trained_lengths_score=_over([p for p in made if p.in_training_range]),
        longer_lengths_score=_over([p for p in made if not p.in_training_range]),
        proved_laws=proved,
        proved_invariances=proved,
        seconds=12.5,
        tokens_per_second=40_000.0,
    )


def _over(points: Sequence[LengthPoint]) -> MeanScore | None:
    if not points:
        return None
    mean = {end: math.fsum(getattr(p, end) for p in points) / len(points) for end in ("iqm", "low", "high")}
    return MeanScore(**mean, ceiling=points[0].ceiling)


def study(
    *cells: Cell, name: str = "made_up", measure: Measure = "accuracy", suffix: str = "", **more: object
) -> Study:
    """A study of these cells; ``suffix`` is appended to every free text."""
    tested = {p.length for each in cells for p in each.lengths if p.in_training_range} or {1}
    settings: dict[str, object] = {
        "differences": tuple(
            Difference(
                first=a.label,
                second=b.label,
                lengths=(25,),
                difference=0.2,
                low=-0.1,
                high=0.5,
                better=3,
                worse=1,
                ties=1,
            )
            for k, a in enumerate(cells)
            for b in cells[k + 1 :]
        ),
        "published": (PublishedResult(label=f"a paper {suffix}", text=f"none .5 {suffix}", source=f"A 2020 {suffix}"),),
        "versions": {"torch": f"2 {suffix}"},
        "machine": {"processor": f"two cores {suffix}".strip()},
        "trained_lengths": (min(tested), max(tested)),
    }
    return Study(
        orderproof="0", name=name, question=f"example {suffix}", statement=f"Is it so? {suffix}", measure=measure,
        command=f"orderproof compare {name}", cells=cells, seconds=12.5,
        **{**settings, **more},  # type: ignore[arg-type]
    )  # fmt: skip


FEW = study(
    cell("none", reach=0.0, proved=("permutation", "prompt_permutation")),
    cell("rotary", reach=24.0),
    cell("alibi", reach=38.0),
)
ONE_LENGTH = study(
    *(
        cell(
            f"{e}, {way}, {n} layer{'s' * (n > 1)}", reach=0.0 if e == "none" and (n == 1 or way != "causal") else 30.0,
            encoding=e, causal=way == "causal", layers=n, lengths=(6,), trained=6,
            proved=("prompt_permutation",) if e == "none" and (n == 1 or way != "causal") else (),
        )
        for e in ENCODINGS[:6] for way in ("bidirectional", "causal") for n in (1, 2)
    )
)  # fmt: skip
MANY = study(
    *(
        cell(f"{e}, {n} layer{'s' * (n > 1)}", reach=12.0 + 2.3 * k + 4 * n, encoding=e, layers=n)
        for k, e in enumerate(ENCODINGS)
        for n in (1, 2)
    )
)
IN_NATS = study(
    *(
        cell(e, reach=70.0 + 60 * k, lengths=(64, 128, 256, 512, 1024), trained=64, measure="nats", ceiling=0.3)
        for k, e in enumerate(ENCODINGS[:5])
    ),
    measure="nats",
)
