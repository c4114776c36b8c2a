"""What is put around torch's exporter while it records: quiet, source lines of the model's own, and what it hides."""

from __future__ import annotations

import io
import logging
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensor
from torch.distributions import Distribution
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from torch.fx.proxy import TracerBase
from torch.overrides import TorchFunctionMode


@contextmanager
def around_the_exporter() -> Iterator[None]:
    """All of it."""
    with warnings.catch_warnings(), _silent_exporter(), _lines_of_the_model(), _unchecked_distributions():
        warnings.simplefilter("ignore")
        yield


class _Unseen(TorchFunctionMode):
    """Calls that are no operators, so that no graph shows them."""

    def __init__(self, found: list[str]) -> None:
        super().__init__()
        self.found = found

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", "") == "__set__" and getattr(func, "__self__", None) is Tensor.data:
            self.found.append(f"a tensor is given the data of another, which no graph shows{_here()}")
        if func in _READ and isinstance(args[0], FakeTensor):
            self.found.append(_CAUGHT + _here())
        return func(*args, **(kwargs or {}))


_READ = (Tensor.numpy, Tensor.__array__, Tensor.tolist, Tensor.data_ptr)
_REFUSALS = (GuardOnDataDependentSymNode, DataDependentOutputException)
_CAUGHT = "control flow depends on data, and the model catches the error that says so"


@contextmanager
def what_no_graph_shows() -> Iterator[list[str]]:
    """What a module did while it was recorded that makes another program of it, though nothing failed.

    It asked for a value that a recording does not have, and went on without; or it changed a tensor behind the
    exporter, which goes on with the one it had.
    """
    found: list[str] = []
    before: list[Any] = [kind.__init__ for kind in _REFUSALS]

    def noting(make: Callable[..., None]) -> Callable[..., None]:
        def made(*args: Any, **kwargs: Any) -> None:
            found.append(_CAUGHT + _here())
            make(*args, **kwargs)

        return made

    try:
        for kind in _REFUSALS:
            kind.__init__ = noting(kind.__init__)  # type: ignore[method-assign]
        with _Unseen(found):
            yield found
    finally:
        for k, make in enumerate(before):
            _REFUSALS[k].__init__ = make  # type: ignore[method-assign]


def _here() -> str:
    return place_of(traceback.extract_stack())


def place_of(frames: traceback.StackSummary) -> str:
    """`, file.py:12`: the innermost line of the model, where there is one."""
    own = [f for f in frames if _is_of_the_model(f.filename)]
    return f", {Path(own[-1].filename).name}:{own[-1].lineno}" if own else ""


def _is_of_the_model(filename: str) -> bool:
    """Whether a source file is neither torch's, nor Python's, nor ours."""
    path = Path(filename)
    if path.is_relative_to(Path(torch.__file__).parent) or path.is_relative_to(Path(__file__).parents[1]):
        return False
    python = Path(traceback.__file__).parent  # which may hold what is installed, too
    return "site-packages" in path.parts or (path.exists() and not path.is_relative_to(python))


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
