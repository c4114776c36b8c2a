"""What is put around torch's exporter while it records: quiet, and source lines that name the model's own code."""

from __future__ import annotations

import io
import logging
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr

from torch.distributions import Distribution
from torch.fx.proxy import TracerBase


@contextmanager
def around_the_exporter() -> Iterator[None]:
    """All of it."""
    with warnings.catch_warnings(), _silent_exporter(), _lines_of_the_model(), _unchecked_distributions():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def _silent_exporter() -> Iterator[None]:
    """The exporter logs and prints pages about what it cannot record; the error it raises says it in a line."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.disable(before)


@contextmanager
def _unchecked_distributions() -> Iterator[None]:
    """`torch.distributions` looks at its arguments only to raise an error; a recording has nothing to look at."""
    before = Distribution._validate_args
    Distribution.set_default_validate_args(False)
    try:
        yield
    finally:
        Distribution.set_default_validate_args(before)


@contextmanager
def _lines_of_the_model() -> Iterator[None]:
    """Have each operator remember the line that called it in the file of its module, not only that of `forward`.

    The exporter keeps the frames of `forward` alone; a helper function in the same file would go unnamed.
    """
    keep = getattr(TracerBase, "_filter_traceback_frames", None)
    if keep is None:  # a private hook: without it, the line of `forward` is named
        yield
        return

    def kept(tracer: TracerBase, summary: traceback.StackSummary) -> traceback.StackSummary:
        frames = list(keep(tracer, summary))
        own = [f for f in frames if f.name == "forward" and "/torch/" not in f.filename.replace("\\", "/")]
        if not own:
            return traceback.StackSummary.from_list(frames)
        everything = list(summary)
        last = max(i for i, f in enumerate(everything) if (f.filename, f.lineno) == (own[-1].filename, own[-1].lineno))
        within = [f for f in everything[last + 1 :] if f.filename == own[-1].filename]
        return traceback.StackSummary.from_list([*frames, *within])

    TracerBase._filter_traceback_frames = kept  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        TracerBase._filter_traceback_frames = keep  # type: ignore[method-assign]
