"""How far outputs move when words change places, drawn: each kind of change, and each layer. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from orderproof.report import destination, words
from orderproof.report.drawing import COLOURS, MARKS, check_plot, encoded, new_figure, plain, steady
from orderproof.report.sensitivity_text import POOLINGS
from orderproof.sensitivity_record import OTHER, SAME, Moved, Sensitivity


def write_plot(found: Sensitivity, target: str | Path) -> None:
    """Write the plot as SVG or PNG, by the name's ending. Raises `UsageError`."""
    check_plot(target)
    with steady():
        figure = new_figure(11, 4.6)
        left, right = figure.subplots(1, 2, width_ratios=(1, 1.15))
        figure.suptitle(plain(f"{found.subject.name}: how far a sentence moves when its words change places"))
        _by_kind(left, found)
        _by_layer(right, found)
        destination.write(encoded(figure, Path(target).suffix), target)


def _kinds(moved: Sequence[Moved]) -> list[str]:
    return [m.kind for m in moved if m.kind not in (OTHER, SAME)]


def _percent(axis: Any) -> None:
    from matplotlib.ticker import PercentFormatter

    axis.set_major_formatter(PercentFormatter(xmax=1.0))


def _by_kind(axes: Any, found: Sensitivity) -> None:
    """Each kind with its interval: with positions, and without."""
    kinds = _kinds(found.moved)
    for moved, colour, mark, shift, name in (
        (found.moved, "#222222", "o", -0.12, "with positions"),
        (found.without.moved, "#888888", "D", 0.12, "without positions"),
    ):
        shares = {m.kind: m.share for m in moved if m.share is not None}
        places = [k + shift for k, kind in enumerate(kinds) if kind in shares]
        spreads = [shares[kind] for kind in kinds if kind in shares]
        if not spreads:
            continue
        middle = [s.median for s in spreads]
        around = [[s.median - s.low for s in spreads], [s.high - s.median for s in spreads]]
        axes.errorbar(middle, places, xerr=around, fmt=mark, color=colour, capsize=3, label=name)
    axes.set_yticks(range(len(kinds)), kinds)
    axes.invert_yaxis()
    axes.set_xlim(left=min(0.0, axes.get_xlim()[0]))
    _percent(axes.xaxis)
    axes.grid(axis="x", alpha=0.3)
    axes.set_xlabel("cosine distance moved, share of the distance\nto another sentence (median, 95% interval)")
    axes.set_title(plain(f"the sentence vector ({POOLINGS[found.pooling]})"), fontsize=10)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="best", fontsize=9)


def _by_layer(axes: Any, found: Sensitivity) -> None:
    """A line for each kind over the layers, its interval around it."""
    for kind, colour, mark in zip(_kinds(found.moved), COLOURS, MARKS, strict=False):
        shares = [(x.layer, m.share) for x in found.layers for m in x.moved if m.kind == kind and m.share is not None]
        layers = [layer for layer, _ in shares]
        axes.plot(layers, [s.median for _, s in shares], marker=mark, markersize=5, color=colour, label=kind)
        axes.fill_between(layers, [s.low for _, s in shares], [s.high for _, s in shares], color=colour, alpha=0.12)
    axes.set_xlabel("layer (0: what goes into the first)")
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    axes.xaxis.get_major_locator().set_params(integer=True)
    _percent(axes.yaxis)
    axes.grid(alpha=0.3)
    axes.set_title(plain(f"layer by layer, over {words.count(found.sentences, 'sentence')}"), fontsize=10)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="best", fontsize=9)
