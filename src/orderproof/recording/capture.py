"""Capture the graph of a module's forward call, as it runs or with parts of the model replaced."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.distributions import Distribution

from orderproof.errors import CaptureError, SubjectError, first_line
from orderproof.library_messages import silent_messages
from orderproof.recording.captured_graph import CapturedGraph, find_cut, leaves_by_name
from orderproof.recording.recording import record
from orderproof.recording.refusal import reason_of, refusal_of
from orderproof.recording.selected_rows import DEPENDS_ON_DATA, OF_EVERY_ROW, every_row

_Recorded = TypeVar("_Recorded")


def capture(
    module: nn.Module,
    inputs: tuple[Tensor, ...],
    *,
    values: Mapping[str, Tensor] | None = None,
    quiet: Callable[[], AbstractContextManager[Any]] = nullcontext,
    cut: str | None = None,
    inside: str = "",
) -> CapturedGraph:
    """Record the call of a module on these inputs.

    Args:
        module: The module.
        inputs: Example inputs; shapes are static.
        values: Tensors by qualified name, instead of those of the module.
        quiet: Context manager that replaces parts of the model which cannot be recorded; entered only if needed.
        cut: Path of the submodule whose output counts as the input of the graph.
        inside: Path of the model within wrappers of this package; module paths are relative to it.

    Raises:
        CaptureError: The module cannot be recorded; the message is the reason.
        SubjectError: The module cannot be called with these inputs, or returns no tensor.

    """
    for path, part in module.named_modules():
        if isinstance(part, torch.jit.ScriptModule):
            raise CaptureError(
                f"the graph cannot be recorded: {path or 'the model'} is a torch.jit.ScriptModule; "
                "give the module from which it was made"
            )
    captured = _recorded(module, inputs, dict(values or {}), quiet)
    for node in captured.graph.nodes if inside else ():
        stack = node.meta.get("nn_module_stack") or {}
        node.meta["nn_module_stack"] = {
            key: (path.removeprefix(inside).removeprefix("."), kind) for key, (path, kind) in stack.items()
        }
    if cut is not None:
        captured.start = find_cut(captured.graph, cut)
    return captured


def _recorded(
    module: nn.Module,
    inputs: tuple[Tensor, ...],
    values: dict[str, Tensor],
    quiet: Callable[[], AbstractContextManager[Any]],
) -> CapturedGraph:
    """The recording. A model that cannot be called at all is the caller's error."""
    try:
        recorded = _as_it_runs_or_replaced(module, inputs, values, quiet)
    except CaptureError:
        _require_output(module, inputs)
        raise
    except Exception as error:
        _require_output(module, inputs)
        raise CaptureError(refusal_of(error)) from error
    if not recorded.outputs:
        _require_output(module, inputs)
    return recorded


def _as_it_runs_or_replaced(
    module: nn.Module,
    inputs: tuple[Tensor, ...],
    values: dict[str, Tensor],
    quiet: Callable[[], AbstractContextManager[Any]],
) -> CapturedGraph:
    """The recording of the call as it runs, or in another way if it cannot be recorded so."""
    with silent_messages(), _without_checks_of_distributions():
        recorded, reason = recorded_in_some_way(partial(record, module, inputs, values=values), quiet)
    recorded.patched_because = reason
    return recorded


def recorded_in_some_way(
    make: Callable[[], _Recorded], quiet: Callable[[], AbstractContextManager[Any]]
) -> tuple[_Recorded, str]:
    """The recording of a call as it runs; with the patches of `quiet`, or with every row, if it cannot be recorded so.

    Returns the recording, and why it is not of the call as it runs; empty if it is.
    """
    try:
        return make(), ""
    except Exception as error:
        if quiet is nullcontext and DEPENDS_ON_DATA not in str(error):
            raise
        reason, failure = reason_of(error), error
    if quiet is not nullcontext:
        try:
            with quiet():
                return make(), reason
        except Exception as error:
            if DEPENDS_ON_DATA not in str(error):
                raise
            failure = error
    try:
        with quiet(), every_row():
            return make(), f"{reason}; {OF_EVERY_ROW}"
    except Exception:  # noqa: BLE001 - the model reads what depends on data in another way
        raise failure from None


@contextmanager
def _without_checks_of_distributions() -> Iterator[None]:
    """Skip the checks of `torch.distributions`, which read values only to raise an error."""
    before = Distribution._validate_args
    Distribution.set_default_validate_args(False)
    try:
        yield
    finally:
        Distribution.set_default_validate_args(before)


def _require_output(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
    """Raise `SubjectError` if a module cannot be called with these inputs, or returns no tensor."""
    with torch.no_grad():
        try:
            output = module(*inputs)
        except Exception as error:
            shapes = ", ".join(f"{str(x.dtype).removeprefix('torch.')}{list(x.shape)}" for x in inputs)
            raise SubjectError(
                f"the model could not be called with {shapes}: {first_line(error)}; give example inputs it accepts"
            ) from error
    leaves = leaves_by_name(output)
    if not any(isinstance(value, Tensor) for value in leaves.values()):
        raise SubjectError(f"the model returned {type(output).__name__} without a tensor; expected at least one tensor")
