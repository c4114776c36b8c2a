"""Context managers around torch.export: no output, source lines of helper functions, detection of untraced effects."""

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
def exporter_context() -> Iterator[None]:
    """Export without warnings and log output, with source lines of helper functions."""
    with warnings.catch_warnings(), _suppress_export_output(), _keep_helper_frames(), skip_distribution_validation():
        warnings.simplefilter("ignore")
        yield


class _UntracedCalls(TorchFunctionMode):
    """Calls that leave no operator in the graph."""

    def __init__(self, found: list[str]) -> None:
        super().__init__()
        self.found = found

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", "") == "__set__" and getattr(func, "__self__", None) is Tensor.data:
            self.found.append(f"it assigns to tensor.data, which the exported graph does not show{_caller_location()}")
        if func in _VALUE_READS and isinstance(args[0], FakeTensor):
            self.found.append(_SWALLOWED_ERROR + _caller_location())
        return func(*args, **(kwargs or {}))


_VALUE_READS = (Tensor.numpy, Tensor.__array__, Tensor.tolist, Tensor.data_ptr)
_DATA_DEPENDENT_ERRORS = (GuardOnDataDependentSymNode, DataDependentOutputException)
_SWALLOWED_ERROR = "control flow depends on data, and the model catches the error that says so"


@contextmanager
def record_untraced_effects() -> Iterator[list[str]]:
    """Record effects during export that make the exported program differ from the module, although export succeeds.

    The module asked for a value, caught the exporter's error and took another branch; or it assigned to `tensor.data`,
    which the exporter does not trace.
    """
    found: list[str] = []
    before: list[Any] = [kind.__init__ for kind in _DATA_DEPENDENT_ERRORS]

    def recording(make: Callable[..., None]) -> Callable[..., None]:
        def init(*args: Any, **kwargs: Any) -> None:
            found.append(_SWALLOWED_ERROR + _caller_location())
            make(*args, **kwargs)

        return init

    try:
        for kind in _DATA_DEPENDENT_ERRORS:
            kind.__init__ = recording(kind.__init__)  # type: ignore[method-assign]
        with _UntracedCalls(found):
            yield found
    finally:
        for k, make in enumerate(before):
            _DATA_DEPENDENT_ERRORS[k].__init__ = make  # type: ignore[method-assign]


def _caller_location() -> str:
    return _model_source_location(traceback.extract_stack())


def source_of_error(error: BaseException) -> str:
    """`, file.py:12`: the innermost line of the model that an error passed; empty if there is none."""
    return _model_source_location(traceback.extract_tb(error.__traceback__))


def _model_source_location(frames: traceback.StackSummary) -> str:
    """`, file.py:12`: the innermost line of the model; empty if there is none."""
    own = [f for f in frames if _is_model_source(f.filename)]
    return f", {Path(own[-1].filename).name}:{own[-1].lineno}" if own else ""


def _is_model_source(filename: str) -> bool:
    """True if a source file belongs to neither torch, nor Python, nor this package."""
    path = Path(filename)
    if path.is_relative_to(Path(torch.__file__).parent) or path.is_relative_to(Path(__file__).parents[2]):
        return False
    python = Path(traceback.__file__).parent  # which may contain site-packages
    return "site-packages" in path.parts or (path.exists() and not path.is_relative_to(python))


@contextmanager
def _suppress_export_output() -> Iterator[None]:
    """Suppress the log and the standard error of the exporter; its exception has the same content in one line."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.disable(before)


@contextmanager
def skip_distribution_validation() -> Iterator[None]:
    """Skip the validation of `torch.distributions`, which reads values only to raise an error."""
    before = Distribution._validate_args
    Distribution.set_default_validate_args(False)
    try:
        yield
    finally:
        Distribution.set_default_validate_args(before)


@contextmanager
def _keep_helper_frames() -> Iterator[None]:
    """Keep the frames of helper functions in the file of `forward`; the exporter keeps those of `forward` only."""
    keep = getattr(TracerBase, "_filter_traceback_frames", None)
    if keep is None:  # a private hook; without it reports name the line of `forward`
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
