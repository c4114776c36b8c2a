"""Capture the graph of a module's forward call, as it runs or with parts of the model replaced."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import Distribution

from orderproof.errors import CaptureError, SubjectError, first_line
from orderproof.library_messages import silent_messages
from orderproof.recording.captured_graph import CapturedGraph, find_cut, leaves_by_name
from orderproof.recording.recording import record
from orderproof.recording.refusal import reason_of, refusal_of


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
    """The recording of the call as it runs; of the call with the patches of `quiet` if it cannot be recorded so."""
    with silent_messages(), _without_checks_of_distributions():
        try:
            return record(module, inputs, values=values)
        except Exception as error:
            if quiet is nullcontext:
                raise
            reason = reason_of(error)
        with quiet():
            recorded = record(module, inputs, values=values)
    recorded.patched_because = reason
    return recorded


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
