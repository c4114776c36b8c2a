"""Shared parts of all figures: colours, markers, escaped text, and reproducible files.

Needs matplotlib.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orderproof.errors import UsageError
from orderproof.optional_packages import require_packages
from orderproof.report import phrases

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUFFIXES = (".svg", ".png")
# Okabe and Ito 2008, "Color universal design": distinguishable with colour blindness.
COLOURS = ("#d55e00", "#cc79a7", "#e69f00", "#56b4e9", "#0072b2", "#009e73", "#000000")
MARKERS = ("o", "P", "s", "^", "D", "v", "X")
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.5, 1)), (0, (5, 1.5, 1.5, 1.5)))


def check_plot_path(target: str | Path) -> None:
    """Raise `UsageError` where a plot cannot be written, before anything is measured."""
    if Path(target).suffix.lower() not in SUFFIXES:
        raise UsageError(f"expected --plot PATH to end in .svg or .png; got {str(target)!r}")
    require_packages("--plot", "matplotlib", extra="plots")


def escape_mathtext(text: str) -> str:
    """Text that matplotlib does not parse as mathematics."""
    return phrases.escape_control_characters(text).replace("$", r"\$")


@contextmanager
def reproducible_style() -> Iterator[None]:
    """A context in which the same figure gives the same bytes."""
    import matplotlib as mpl

    with mpl.rc_context({"svg.hashsalt": "orderproof", "svg.fonttype": "none", "font.size": 10}):
        yield


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of this size [inches], without a window."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def figure_bytes(figure: Figure, suffix: str) -> bytes:
    """The figure as SVG or PNG, chosen by the suffix, without a date."""
    data = io.BytesIO()
    kind = suffix.lower().removeprefix(".")
    figure.savefig(data, format=kind, dpi=150, metadata={"Date": None} if kind == "svg" else {})
    return data.getvalue()
