"""Plots of a study: the learning curves, and the score by length. Needs matplotlib.

Up to six cells share one panel. More cells get one panel per encoding, with all other cells in grey in the background,
so that the lines of a panel stay distinguishable. A band is the 95% interval over seeds, a dashed line the best score
without token order, and trained lengths are shaded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from orderproof.optional_packages import require_packages
from orderproof.records.study import Cell, CurvePoint, Estimate, LengthPoint, Study
from orderproof.report import file_output
from orderproof.report.figures import (
    COLOURS,
    DASHES,
    MARKERS,
    check_plot_path,
    escape_mathtext,
    figure_bytes,
    new_figure,
    reproducible_style,
)

Picture = Literal["curves", "lengths"]
CELLS_PER_PANEL = 6
PANELS_PER_ROW = 4
MEASURE_LABELS = {"accuracy": "accuracy", "exact_match": "exact match", "nats": "cross-entropy [nats]"}
LOG_SCALE_RATIO = 12  # largest / smallest value above which an axis is logarithmic
CEILING_LABEL, TRAINED_LABEL = "best without order", "trained lengths"
BACKGROUND_COLOUR = "#c9c9c9"
SERIES = tuple(COLOURS[k] for k in (4, 0, 5, 1, 3, 2))  # the strongest colours first; the ceiling is black


@dataclass(frozen=True)
class PlotPanel:
    """Cells drawn together, by the part of their label that distinguishes them."""

    title: str
    series: dict[str, Cell]


def write_study_plot(study: Study, target: str | Path, *, picture: Picture = "lengths") -> None:
    """Write a plot as SVG or PNG, by the suffix of the name. Raises `UsageError`."""
    check_plot_path(target)
    file_output.write_file(study_plot_bytes(study, picture=picture, suffix=Path(target).suffix), target)


def study_plot_bytes(study: Study, *, picture: Picture, suffix: str = ".svg") -> bytes:
    """The content of the file; the same study gives the same bytes. Raises `UsageError`."""
    require_packages("a picture of a study", "matplotlib", extra="plots")
    with reproducible_style():
        if picture == "lengths" and all(len(cell.lengths) <= 1 for cell in study.cells):
            return figure_bytes(_single_length_figure(study), suffix)
        title, draw = ("learning curves", _draw_curve) if picture == "curves" else ("score by length", _draw_lengths)
        return figure_bytes(_panels_figure(study, title, draw), suffix)


def panels(study: Study) -> list[PlotPanel]:
    """The distribution of the cells over panels."""
    if len(study.cells) <= CELLS_PER_PANEL:
        return [PlotPanel("", {cell.label: cell for cell in study.cells})]
    encodings = dict.fromkeys(cell.encoding for cell in study.cells)
    if len(encodings) == 1:
        return [PlotPanel(cell.label, {"": cell}) for cell in study.cells]
    by_encoding = []
    for encoding in encodings:
        cells = [cell for cell in study.cells if cell.encoding == encoding]
        by_encoding.append(
            PlotPanel(encoding, {cell.label.removeprefix(encoding).removeprefix(", "): cell for cell in cells})
        )
    return by_encoding


def _panels_figure(study: Study, title: str, draw: Callable[[Any, Study, Cell, dict[str, Any]], None]) -> Any:
    """A figure with all panels and one legend."""
    parts = panels(study)
    names = list(dict.fromkeys(name for part in parts for name in part.series))
    columns = 3 if len(parts) in (5, 6, 9) else min(PANELS_PER_ROW, len(parts))
    rows = math.ceil(len(parts) / columns)
    figure = new_figure(9 if columns == 1 else max(2.7 * columns, 6.5), 4.4 if columns == 1 else 2.3 * rows + 1.2)
    all_axes = list(figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flat)
    for k, (axes, part) in enumerate(zip(all_axes, parts, strict=False)):
        for cell in study.cells if len(parts) > 1 else ():
            draw(axes, study, cell, {"color": BACKGROUND_COLOUR, "linewidth": 0.7, "zorder": 1})
        for name, cell in part.series.items():
            draw(axes, study, cell, {**_style(names.index(name)), "label": escape_mathtext(name)})
        axes.set_title(escape_mathtext(part.title), fontsize=10, loc="left")
        axes.grid(alpha=0.25)
        _limits(axes, study)
        if k % columns == 0:
            axes.set_ylabel(MEASURE_LABELS[study.measure])
        if k + columns >= len(parts):  # the lowest panel of its column
            axes.set_xlabel("training step" if draw is _draw_curve else "length")
            axes.tick_params(labelbottom=True)
    for axes in all_axes[len(parts) :]:
        axes.set_visible(False)
    figure.suptitle(escape_mathtext(f"{study.name}: {title}"), fontsize=12)
    _legend(figure, all_axes, "outside lower center" if len(parts) > 1 else "outside right upper")
    return figure


def _legend(figure: Any, all_axes: Sequence[Any], location: str) -> None:
    """One legend for all panels."""
    from matplotlib.lines import Line2D

    entries: dict[str, Any] = {}
    for axes in all_axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    if any(line.get_color() == BACKGROUND_COLOUR for axes in all_axes for line in axes.lines):
        entries["all other cells"] = Line2D([], [], color=BACKGROUND_COLOUR, linewidth=0.7)
    last = {label: entries.pop(label) for label in (CEILING_LABEL, TRAINED_LABEL) if label in entries}
    handles, labels = [*entries.values(), *last.values()], [*entries, *last]
    if not labels:
        return
    columns = 1 if "right" in location else min(len(labels), 4 if max(map(len, labels)) < 24 else 3)
    figure.legend(handles, labels, loc=location, ncols=columns, fontsize=9, frameon=False, handlelength=3.4)


def _style(k: int) -> dict[str, Any]:
    """Colour, marker and line style of the k-th series; two series differ in more than the colour."""
    line = DASHES[(k + k // len(SERIES)) % len(DASHES)]
    return {
        "color": SERIES[k % len(SERIES)], "marker": MARKERS[k % len(MARKERS)], "linestyle": line, "linewidth": 1.6,
        "markersize": 4.5, "zorder": 3 + k,
    }  # fmt: skip


def _draw_line(axes: Any, x: Sequence[int], points: Sequence[Estimate], style: dict[str, Any]) -> None:
    if not x:
        return
    if "label" not in style:  # the background needs fewer points
        x, points = x[:: 1 + len(x) // 40], points[:: 1 + len(x) // 40]
    every = max(1, len(x) // 7)
    axes.plot(x, [p.iqm for p in points], markevery=(style.get("zorder", 0) % every, every), **style)
    if "label" in style:
        low, high = [p.low for p in points], [p.high for p in points]
        axes.fill_between(x, low, high, color=style["color"], alpha=0.16, linewidth=0, zorder=2)


def _draw_curve(axes: Any, study: Study, cell: Cell, style: dict[str, Any]) -> None:
    points: Sequence[CurvePoint] = cell.curve
    _draw_line(axes, [p.step for p in points], points, style)
    longest = max((p for p in cell.lengths if p.in_training_range), key=lambda p: p.length, default=None)
    same_length = longest is not None and longest.length == study.trained_lengths[1]  # as on the curve
    if "label" in style and longest is not None and same_length and longest.ceiling is not None:
        _plot_ceiling(
            axes, [min(p.step for p in points), max(p.step for p in points)] if points else [], [longest.ceiling] * 2
        )


def _draw_lengths(axes: Any, study: Study, cell: Cell, style: dict[str, Any]) -> None:
    points: Sequence[LengthPoint] = sorted(cell.lengths, key=lambda p: p.length)
    _draw_line(axes, [p.length for p in points], points, style)
    if "label" not in style:
        return
    known = [p for p in points if p.ceiling is not None]
    _plot_ceiling(axes, [p.length for p in known], [p.ceiling for p in known])
    _shade_trained_lengths(axes, *study.trained_lengths)
    lengths = [p.length for other in study.cells for p in other.lengths]
    if max(lengths) > LOG_SCALE_RATIO * min(lengths):
        from matplotlib.ticker import NullLocator, ScalarFormatter

        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(ScalarFormatter())
        axes.xaxis.set_minor_locator(NullLocator())


def _shade_trained_lengths(axes: Any, low: int, high: int) -> None:
    """Shade the trained lengths once per panel; a single length is a broad line."""
    style = {"color": "#8db6d9", "alpha": 0.25, "zorder": 0, "label": TRAINED_LABEL}
    if TRAINED_LABEL in axes.get_legend_handles_labels()[1]:
        return
    if low < high:
        axes.axvspan(low, high, linewidth=0, **style)
    else:
        axes.axvline(low, linewidth=12, **style)


def _plot_ceiling(axes: Any, x: Sequence[int], ceilings: Sequence[float | None]) -> None:
    """The dashed line of the ceiling, once if several cells of a panel have the same."""
    drawn = [
        (list(line.get_xdata()), list(line.get_ydata())) for line in axes.lines if line.get_label() == CEILING_LABEL
    ]
    if x and (list(x), list(ceilings)) not in drawn:
        axes.plot(x, ceilings, color="#222222", linestyle="--", linewidth=1.3, zorder=99, label=CEILING_LABEL)


def _limits(axes: Any, study: Study) -> None:
    if study.measure != "nats":
        axes.set_ylim(-0.03, 1.03)
        return
    scores = [p.iqm for cell in study.cells for p in (*cell.curve, *cell.lengths)]
    if scores and min(scores) > 0 and max(scores) > LOG_SCALE_RATIO * min(scores):
        axes.set_yscale("log")


def _single_length_figure(study: Study) -> Any:
    """A single length: a row for each cell with its score, its interval, the ceiling and the proved invariances."""
    figure = new_figure(9, 0.27 * len(study.cells) + 1.7)
    axes = figure.subplots()
    encodings = list(dict.fromkeys(cell.encoding for cell in study.cells))
    for row, cell in enumerate(study.cells):
        style = _style(encodings.index(cell.encoding))
        for point in cell.lengths:
            errors = [[max(point.iqm - point.low, 0.0)], [max(point.high - point.iqm, 0.0)]]
            marker = {"fmt": style["marker"], "color": style["color"], "capsize": 3, "markersize": 6, "clip_on": False}
            axes.errorbar([point.iqm], [row], xerr=errors, zorder=3, **marker)
            if point.ceiling is not None:
                label = None if CEILING_LABEL in axes.get_legend_handles_labels()[1] else CEILING_LABEL
                axes.plot(
                    [point.ceiling] * 2,
                    [row - 0.5, row + 0.5],
                    color="#222222",
                    linestyle="--",
                    linewidth=1.3,
                    label=label,
                )
        if cell.proved_invariances:
            text_style: dict[str, Any] = {
                "transform": axes.get_yaxis_transform(),
                "va": "center",
                "fontsize": 9,
                "color": "#444444",
            }
            axes.text(1.02, row, escape_mathtext(f"proved {', '.join(cell.proved_invariances)}"), **text_style)
        if row and cell.encoding != study.cells[row - 1].encoding:
            axes.axhline(row - 0.5, color="#dddddd", linewidth=0.7)
    axes.set_yticks(range(len(study.cells)), [escape_mathtext(cell.label) for cell in study.cells])
    axes.set_ylim(len(study.cells) - 0.5, -0.5)
    if study.measure != "nats":
        axes.set_xlim(-0.03, 1.03)
    axes.grid(axis="x", alpha=0.25)
    axes.set_xlabel(f"{MEASURE_LABELS[study.measure]} (interquartile mean, 95% interval)")
    figure.suptitle(escape_mathtext(f"{study.name}: score of each cell"), fontsize=12)
    _legend(figure, [axes], "outside lower center")
    return figure
