"""The figure of `orderproof sensitivity`: effects by kind of reordering and by layer. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from orderproof.records.sensitivity import OTHER_SENTENCE, SAME_SENTENCE, PerturbationEffect, WordOrderSensitivity
from orderproof.report import file_output, phrases
from orderproof.report.figures import (
    COLOURS,
    MARKERS,
    check_plot_path,
    escape_mathtext,
    figure_bytes,
    new_figure,
    reproducible_style,
)
from orderproof.report.sensitivity_terminal import POOLINGS


def write_sensitivity_plot(found: WordOrderSensitivity, target: str | Path) -> None:
    """Write the figure as SVG or PNG, according to the suffix. Raises `UsageError`."""
    check_plot_path(target)
    with reproducible_style():
        figure = new_figure(11, 4.6)
        left, right = figure.subplots(1, 2, width_ratios=(1, 1.15))
        figure.suptitle(escape_mathtext(f"{found.subject.name}: sensitivity to word order"))
        _by_kind(left, found)
        _by_layer(right, found)
        file_output.write_file(figure_bytes(figure, Path(target).suffix), target)


def _kinds(effects: Sequence[PerturbationEffect]) -> list[str]:
    return [m.perturbation for m in effects if m.perturbation not in (OTHER_SENTENCE, SAME_SENTENCE)]


def _percent(axis: Any) -> None:
    from matplotlib.ticker import PercentFormatter

    axis.set_major_formatter(PercentFormatter(xmax=1.0))


def _by_kind(axes: Any, found: WordOrderSensitivity) -> None:
    """The share of each kind with its interval, with positions and without."""
    kinds = _kinds(found.effects)
    for effects, colour, mark, shift, name in (
        (found.effects, "#222222", "o", -0.12, "with positions"),
        (found.without_positions.effects, "#888888", "D", 0.12, "without positions"),
    ):
        shares = {m.perturbation: m.share_of_unrelated for m in effects if m.share_of_unrelated is not None}
        heights = [k + shift for k, kind in enumerate(kinds) if kind in shares]
        intervals = [shares[kind] for kind in kinds if kind in shares]
        if not intervals:
            continue
        middle = [s.median for s in intervals]
        around = [[s.median - s.low for s in intervals], [s.high - s.median for s in intervals]]
        axes.errorbar(middle, heights, xerr=around, fmt=mark, color=colour, capsize=3, label=name)
    axes.set_yticks(range(len(kinds)), kinds)
    axes.invert_yaxis()
    axes.set_xlim(left=min(0.0, axes.get_xlim()[0]))
    _percent(axes.xaxis)
    axes.grid(axis="x", alpha=0.3)
    axes.set_xlabel("cosine distance as a share of the distance\nto another sentence (median, 95% interval)")
    axes.set_title(escape_mathtext(f"sentence vector ({POOLINGS[found.pooling]})"), fontsize=10)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="best", fontsize=9)


def _by_layer(axes: Any, found: WordOrderSensitivity) -> None:
    """The share of each kind over the layers, as a line in its interval."""
    for kind, colour, mark in zip(_kinds(found.effects), COLOURS, MARKERS, strict=False):
        shares = [
            (x.layer, m.share_of_unrelated)
            for x in found.layers
            for m in x.effects
            if m.perturbation == kind and m.share_of_unrelated is not None
        ]
        layers = [layer for layer, _ in shares]
        axes.plot(layers, [s.median for _, s in shares], marker=mark, markersize=5, color=colour, label=kind)
        axes.fill_between(layers, [s.low for _, s in shares], [s.high for _, s in shares], color=colour, alpha=0.12)
    axes.set_xlabel("layer (0: input of the first)")
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    axes.xaxis.get_major_locator().set_params(integer=True)
    _percent(axes.yaxis)
    axes.grid(alpha=0.3)
    axes.set_title(escape_mathtext(f"by layer, {phrases.pluralize(found.sentences, 'sentence')}"), fontsize=10)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="best", fontsize=9)
