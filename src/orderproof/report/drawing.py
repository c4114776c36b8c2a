"""What every picture drawn here has in common: colours, marks, safe text, and files that are the same every time.

Needs matplotlib.
"""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orderproof.errors import UsageError
from orderproof.report import words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUFFIXES = (".svg", ".png")
# Okabe and Ito 2008, "Color universal design": told apart by colour-blind readers too.
COLOURS = ("#d55e00", "#cc79a7", "#e69f00", "#56b4e9", "#0072b2", "#009e73", "#000000")
MARKS = ("o", "P", "s", "^", "D", "v", "X")
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.5, 1)), (0, (5, 1.5, 1.5, 1.5)))


def check_plot(target: str | Path) -> None:
    """Raises `UsageError` where a plot cannot be written: before anything is measured."""
    if Path(target).suffix.lower() not in SUFFIXES:
        raise UsageError(f"expected --plot PATH to end in .svg or .png; got {str(target)!r}")
    check_matplotlib("--plot")


def check_matplotlib(what: str) -> None:
    """Raises `UsageError` where what is asked for cannot be drawn."""
    if importlib.util.find_spec("matplotlib") is None:
        raise UsageError(f'{what} needs matplotlib, which is not installed: pip install "orderproof[plots]"')


def plain(text: str) -> str:
    """Text that matplotlib does not take for mathematics."""
    return words.visible(text).replace("$", r"\$")


@contextmanager
def steady() -> Iterator[None]:
    """Within this, figures are drawn in the same way every time; the same figure gives the same bytes."""
    import matplotlib as mpl

    with mpl.rc_context({"svg.hashsalt": "orderproof", "svg.fonttype": "none", "font.size": 10}):
        yield


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of this size [inches], with no window behind it."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def encoded(figure: Figure, suffix: str) -> bytes:
    """The figure as an SVG or PNG file, by the suffix, without a date."""
    data = io.BytesIO()
    kind = suffix.lower().removeprefix(".")
    figure.savefig(data, format=kind, dpi=150, metadata={"Date": None} if kind == "svg" else {})
    return data.getvalue()
