"""A study, drawn: how the score grows in training, and what it is at each length. Needs matplotlib.

Up to six cells share one panel. More are drawn one panel an encoding, with every other cell behind it in grey, so that
no panel has more lines than can be told apart. A band is the 95% interval over seeds, a dashed line the best that a
reader blind to order can score, and lengths that are trained are shaded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from orderproof.report import destination
from orderproof.report.drawing import (
    COLOURS,
    DASHES,
    MARKS,
    check_matplotlib,
    check_plot,
    encoded,
    new_figure,
    plain,
    steady,
)
from orderproof.study_record import Cell, CurvePoint, Estimate, LengthPoint, Study

Picture = Literal["curves", "lengths"]
TOGETHER = 6  # cells that share one panel
ACROSS = 4  # panels in a row
AXES = {"accuracy": "accuracy", "exact_match": "exact match", "nats": "cross-entropy [nats]"}
WIDE = 12  # from the smallest to the largest: beyond it an axis is logarithmic
BLIND, TRAINED = "best without order", "trained lengths"
QUIET = "#c9c9c9"
SERIES = tuple(COLOURS[k] for k in (4, 0, 5, 1, 3, 2))  # the strongest first; black is for the ceiling


@dataclass(frozen=True)
class Panel:
    """Some cells that are drawn together, each with what sets it apart from the others there."""

    title: str
    series: dict[str, Cell]


def write_plot(study: Study, target: str | Path, *, picture: Picture = "lengths") -> None:
    """Write a picture as SVG or PNG, by the name's ending. Raises `UsageError`."""
    check_plot(target)
    destination.write(draw(study, picture=picture, suffix=Path(target).suffix), target)


def draw(study: Study, *, picture: Picture, suffix: str = ".svg") -> bytes:
    """The picture as a file's content; the same study gives the same bytes. Raises `UsageError`."""
    check_matplotlib("a picture of a study")
    with steady():
        if picture == "lengths" and all(len(cell.lengths) <= 1 for cell in study.cells):
            return encoded(_ladder(study), suffix)
        title, one = ("learning curves", _curve) if picture == "curves" else ("score by length", _by_length)
        return encoded(_panels(study, title, one), suffix)


def panels(study: Study) -> list[Panel]:
    """How the cells are shared out."""
    if len(study.cells) <= TOGETHER:
        return [Panel("", {cell.label: cell for cell in study.cells})]
    encodings = dict.fromkeys(cell.encoding for cell in study.cells)
    if len(encodings) == 1:
        return [Panel(cell.label, {"": cell}) for cell in study.cells]
    shared = []
    for encoding in encodings:
        mine = [cell for cell in study.cells if cell.encoding == encoding]
        shared.append(Panel(encoding, {cell.label.removeprefix(encoding).removeprefix(", "): cell for cell in mine}))
    return shared


def _panels(study: Study, title: str, one: Callable[[Any, Study, Cell, dict[str, Any]], None]) -> Any:
    """A figure with all panels and one legend."""
    parts = panels(study)
    names = list(dict.fromkeys(name for part in parts for name in part.series))
    across = 3 if len(parts) in (5, 6, 9) else min(ACROSS, len(parts))
    down = math.ceil(len(parts) / across)
    figure = new_figure(9 if across == 1 else max(2.7 * across, 6.5), 4.4 if across == 1 else 2.3 * down + 1.2)
    every = list(figure.subplots(down, across, sharex=True, sharey=True, squeeze=False).flat)
    for k, (axes, part) in enumerate(zip(every, parts, strict=False)):
        for cell in study.cells if len(parts) > 1 else ():
            one(axes, study, cell, {"color": QUIET, "linewidth": 0.7, "zorder": 1})
        for name, cell in part.series.items():
            one(axes, study, cell, {**_style(names.index(name)), "label": plain(name)})
        axes.set_title(plain(part.title), fontsize=10, loc="left")
        axes.grid(alpha=0.25)
        _limits(axes, study)
        if k % across == 0:
            axes.set_ylabel(AXES[study.measure])
        if k + across >= len(parts):  # nothing stands below it
            axes.set_xlabel("step of training" if one is _curve else "length")
            axes.tick_params(labelbottom=True)
    for axes in every[len(parts) :]:
        axes.set_visible(False)
    figure.suptitle(plain(f"{study.study}: {title}"), fontsize=12)
    _legend(figure, every, "outside lower center" if len(parts) > 1 else "outside right upper")
    return figure


def _legend(figure: Any, every: Sequence[Any], place: str) -> None:
    """One legend for all panels: below small ones, beside a single one."""
    from matplotlib.lines import Line2D

    found: dict[str, Any] = {}
    for axes in every:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    if any(line.get_color() == QUIET for axes in every for line in axes.lines):
        found["all other cells"] = Line2D([], [], color=QUIET, linewidth=0.7)
    last = {label: found.pop(label) for label in (BLIND, TRAINED) if label in found}
    handles, labels = [*found.values(), *last.values()], [*found, *last]
    if not labels:
        return
    columns = 1 if "right" in place else min(len(labels), 4 if max(map(len, labels)) < 24 else 3)
    figure.legend(handles, labels, loc=place, ncols=columns, fontsize=9, frameon=False, handlelength=3.4)


def _style(k: int) -> dict[str, Any]:
    """Colour, mark and line of the k-th series: two of them differ in more than the colour."""
    line = DASHES[(k + k // len(SERIES)) % len(DASHES)]
    return {
        "color": SERIES[k % len(SERIES)], "marker": MARKS[k % len(MARKS)], "linestyle": line, "linewidth": 1.6,
        "markersize": 4.5, "zorder": 3 + k,
    }  # fmt: skip


def _line(axes: Any, at: Sequence[int], points: Sequence[Estimate], style: dict[str, Any]) -> None:
    if not at:
        return
    if "label" not in style:  # in the background every point would be too many
        at, points = at[:: 1 + len(at) // 40], points[:: 1 + len(at) // 40]
    every = max(1, len(at) // 7)
    axes.plot(at, [p.iqm for p in points], markevery=(style.get("zorder", 0) % every, every), **style)
    if "label" in style:
        low, high = [p.low for p in points], [p.high for p in points]
        axes.fill_between(at, low, high, color=style["color"], alpha=0.16, linewidth=0, zorder=2)


def _curve(axes: Any, study: Study, cell: Cell, style: dict[str, Any]) -> None:
    points: Sequence[CurvePoint] = cell.curve
    _line(axes, [p.step for p in points], points, style)
    longest = max((p for p in cell.lengths if p.trained), key=lambda p: p.length, default=None)
    measured = longest is not None and longest.length == study.trained_lengths[1]  # the curve's own length
    if "label" in style and longest is not None and measured and longest.ceiling is not None:
        _blind(
            axes, [min(p.step for p in points), max(p.step for p in points)] if points else [], [longest.ceiling] * 2
        )


def _by_length(axes: Any, study: Study, cell: Cell, style: dict[str, Any]) -> None:
    points: Sequence[LengthPoint] = sorted(cell.lengths, key=lambda p: p.length)
    _line(axes, [p.length for p in points], points, style)
    if "label" not in style:
        return
    known = [p for p in points if p.ceiling is not None]
    _blind(axes, [p.length for p in known], [p.ceiling for p in known])
    _shade(axes, *study.trained_lengths)
    lengths = [p.length for each in study.cells for p in each.lengths]
    if max(lengths) > WIDE * min(lengths):
        from matplotlib.ticker import NullLocator, ScalarFormatter

        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(ScalarFormatter())
        axes.xaxis.set_minor_locator(NullLocator())


def _shade(axes: Any, low: int, high: int) -> None:
    """The trained lengths, once a panel; a single one as a broad line."""
    look = {"color": "#8db6d9", "alpha": 0.25, "zorder": 0, "label": TRAINED}
    if TRAINED in axes.get_legend_handles_labels()[1]:
        return
    if low < high:
        axes.axvspan(low, high, linewidth=0, **look)
    else:
        axes.axvline(low, linewidth=12, **look)


def _blind(axes: Any, at: Sequence[int], ceilings: Sequence[float | None]) -> None:
    """The dashed line of the ceiling, once where several cells of a panel have the same."""
    drawn = [(list(line.get_xdata()), list(line.get_ydata())) for line in axes.lines if line.get_label() == BLIND]
    if at and (list(at), list(ceilings)) not in drawn:
        axes.plot(at, ceilings, color="#222222", linestyle="--", linewidth=1.3, zorder=99, label=BLIND)


def _limits(axes: Any, study: Study) -> None:
    if study.measure != "nats":
        axes.set_ylim(-0.03, 1.03)
        return
    scores = [p.iqm for cell in study.cells for p in (*cell.curve, *cell.lengths)]
    if scores and min(scores) > 0 and max(scores) > WIDE * min(scores):
        axes.set_yscale("log")


def _ladder(study: Study) -> Any:
    """One length only: a row for each cell with its score and interval, the ceiling, and the blindness proved of it."""
    figure = new_figure(9, 0.27 * len(study.cells) + 1.7)
    axes = figure.subplots()
    encodings = list(dict.fromkeys(cell.encoding for cell in study.cells))
    for row, cell in enumerate(study.cells):
        style = _style(encodings.index(cell.encoding))
        for point in cell.lengths:
            around = [[max(point.iqm - point.low, 0.0)], [max(point.high - point.iqm, 0.0)]]
            look = {"fmt": style["marker"], "color": style["color"], "capsize": 3, "markersize": 6, "clip_on": False}
            axes.errorbar([point.iqm], [row], xerr=around, zorder=3, **look)
            if point.ceiling is not None:
                label = None if BLIND in axes.get_legend_handles_labels()[1] else BLIND
                at = [row - 0.5, row + 0.5]
                axes.plot([point.ceiling] * 2, at, color="#222222", linestyle="--", linewidth=1.3, label=label)
        if blind := [law for law in cell.proved if law.endswith("_blind")]:
            where: dict[str, Any] = {
                "transform": axes.get_yaxis_transform(),
                "va": "center",
                "fontsize": 9,
                "color": "#444444",
            }
            axes.text(1.02, row, plain(f"proved {', '.join(blind)}"), **where)
        if row and cell.encoding != study.cells[row - 1].encoding:
            axes.axhline(row - 0.5, color="#dddddd", linewidth=0.7)
    axes.set_yticks(range(len(study.cells)), [plain(cell.label) for cell in study.cells])
    axes.set_ylim(len(study.cells) - 0.5, -0.5)
    if study.measure != "nats":
        axes.set_xlim(-0.03, 1.03)
    axes.grid(axis="x", alpha=0.25)
    axes.set_xlabel(f"{AXES[study.measure]} (interquartile mean, 95% interval)")
    figure.suptitle(plain(f"{study.study}: score of each cell"), fontsize=12)
    _legend(figure, [axes], "outside lower center")
    return figure
