"""Export a module to a plain graph.

`torch.export` (static shapes, non-strict, under no_grad), then `run_decompositions`: a functional graph without
higher-order operators, in which linear, layer norm, softmax and attention are single operators. Only operators without
a rule here are decomposed, if torch has a decomposition.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.fx import Graph, Node
from torch.utils import _pytree as pytree

from orderproof.errors import CaptureError, SubjectError, first_line
from orderproof.library_messages import silent_messages
from orderproof.recording.assumptions import signed_zero_assumption
from orderproof.recording.captured_graph import CapturedGraph, find_cut, leaves_by_name, module_path
from orderproof.recording.compiled_code import forget_compiled_code
from orderproof.recording.eager_check import can_compare
from orderproof.recording.export.constant_reading import constants_readable
from orderproof.recording.export.exporter import (
    exporter_context,
    record_untraced_effects,
    skip_distribution_validation,
    source_of_error,
)
from orderproof.recording.export.source_lines import origins_in_blocks, restore_origins
from orderproof.recording.kept_operators import is_kept
from orderproof.recording.memory_layouts import unsound_node
from orderproof.recording.module_tensors import ModuleTensors
from orderproof.recording.observed_call import observe_call
from orderproof.recording.owned_state import owned_state
from orderproof.recording.recording import UnsupportedModel, record
from orderproof.recording.refusal import NOT_RECORDED, reason_of
from orderproof.recording.restored_state import restored_state


def capture(
    module: nn.Module,
    inputs: tuple[Tensor, ...],
    *,
    values: Mapping[str, Tensor] | None = None,
    quiet: Callable[[], AbstractContextManager[Any]] = nullcontext,
    cut: str | None = None,
    inside: str = "",
    read: bool = False,
) -> CapturedGraph:
    """Export a module on these inputs.

    Args:
        module: The module to export.
        inputs: Example inputs; shapes are static.
        values: Tensors by qualified name, instead of those of the module.
        quiet: Context manager that replaces parts of the model which cannot be recorded; entered only if needed.
        cut: Path of the submodule whose output counts as the input of the graph.
        inside: Path of the model within wrappers of this package; module paths are relative to it.
        read: Allow the module to read constants from the first attempt; otherwise only if export fails without.

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
    captured = _record_or_export(module, inputs, dict(values or {}), quiet, read=read)
    for node in captured.graph.nodes if inside else ():
        stack = node.meta.get("nn_module_stack") or {}
        node.meta["nn_module_stack"] = {
            key: (path.removeprefix(inside).removeprefix("."), kind) for key, (path, kind) in stack.items()
        }
    if cut is not None:
        captured.start = find_cut(captured.graph, cut)
    return captured


def _record_or_export(
    module: nn.Module,
    inputs: tuple[Tensor, ...],
    values: dict[str, Tensor],
    quiet: Callable[[], AbstractContextManager[Any]],
    *,
    read: bool,
) -> CapturedGraph:
    unsupported = ""
    try:
        recorded = _record(module, inputs, values, quiet)
    except UnsupportedModel as error:
        reason = unsupported = str(error)
    except CaptureError:
        _output_names(module, inputs)  # a model that cannot be called at all is the caller's error
        raise
    except Exception as error:  # noqa: BLE001 - the model's own error, or one that only recording raises
        reason = first_line(error)
    else:
        if not recorded.outputs:
            _output_names(module, inputs)
        return recorded
    forget_compiled_code()
    try:
        with restored_state(module):  # what the model assigns to `.data` during an export has no values
            captured = export(module, inputs, values=values, quiet=quiet, read=read)
    except CaptureError as error:
        if not unsupported:
            raise
        raise CaptureError(f"{NOT_RECORDED}{unsupported}, and torch.export fails: {reason_of(error)}") from error
    captured.exported_because = reason
    if unsound := unsound_node(captured.graph):
        raise CaptureError(f"{NOT_RECORDED}{unsound}")
    if can_compare(module, inputs):
        _refuse_parts_of_parameters(module, captured)
        captured.changed_state, captured.outside = observe_call(module, inputs)
    return captured


def _refuse_parts_of_parameters(module: nn.Module, captured: CapturedGraph) -> None:
    """Raise `CaptureError` if what torch.export takes for a constant shares the memory of a parameter."""
    tensors = ModuleTensors(module, owned_state(module).trained)
    for name, value in captured.values.items():
        if name not in captured.parameters and tensors.is_trained(value):
            raise CaptureError(f"{NOT_RECORDED}{name} shares the memory of a parameter")


def _record(
    module: nn.Module,
    inputs: tuple[Tensor, ...],
    values: dict[str, Tensor],
    quiet: Callable[[], AbstractContextManager[Any]],
) -> CapturedGraph:
    """The recording of the call as it runs; of the call with the patches of `quiet` if it cannot be recorded so."""
    with silent_messages(), skip_distribution_validation():
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


def export(
    module: nn.Module,
    inputs: tuple[Tensor, ...],
    *,
    values: Mapping[str, Tensor] | None = None,
    quiet: Callable[[], AbstractContextManager[Any]] = nullcontext,
    read: bool = False,
) -> CapturedGraph:
    """The graph of a module by torch.export, in which the model may behave as compiled. Raises as `capture`."""
    names = _output_names(module, inputs)
    program, read = _export_with_constants(module, inputs, quiet, read=read)
    signature = program.graph_signature
    state, parameters, real = {}, set(), dict(values or {})
    input_nodes: list[Node] = []
    by_name = {n.name: n for n in program.graph.nodes if n.op == "placeholder"}
    for spec in signature.input_specs:
        kind = spec.kind.name
        name = spec.arg.name
        if kind == "USER_INPUT":
            if name in by_name and isinstance(by_name[name].meta.get("val"), Tensor):
                input_nodes.append(by_name[name])
            continue
        if kind not in ("PARAMETER", "BUFFER", "CONSTANT_TENSOR"):
            continue  # an effect token or an opaque object, not a tensor
        qualified = str(spec.target)
        state[name] = qualified
        if kind == "PARAMETER":
            parameters.add(qualified)
        stored = program.state_dict.get(qualified, program.constants.get(qualified))
        if qualified not in real and isinstance(stored, Tensor) and not stored.is_meta:
            real[qualified] = stored.detach()
    outputs = _output_nodes(program, names)
    made = program.graph_module
    return CapturedGraph(
        made.graph, tuple(input_nodes), outputs, state, frozenset(parameters), real, read=read, attributes=made,
        assumptions=signed_zero_assumption(made.graph),
    )  # fmt: skip


def _decompose(program: Any) -> Any:
    """The functional graph with operators without a rule decomposed, in one pass: each pass traces the whole graph."""
    table = _decompositions_of_unsupported()
    origins = origins_in_blocks(program.graph_module)
    decomposed = program.run_decompositions(table)
    restore_origins(decomposed.graph, origins)
    return decomposed


@cache
def _decompositions_of_unsupported() -> dict[Any, Any]:
    """The decompositions in torch of the operators that have no rule here."""
    table: Any = torch.export.default_decompositions()
    return {target: function for target, function in table.items() if not is_kept(target)}


class _DataDependentExport(CaptureError):
    """The export needs a value that it does not have."""


def _export_with_constants(
    module: nn.Module, inputs: tuple[Tensor, ...], quiet: Callable[[], AbstractContextManager[Any]], *, read: bool
) -> tuple[Any, bool]:
    """The exported program, and True if constants were read during the export."""
    with constants_readable(module) if read else nullcontext():
        try:
            program = export_functional(module, inputs, quiet)
            _reject_data_dependent_shapes(program.graph)
        except _DataDependentExport:
            if read:
                raise
        else:
            return program, read
    # The value may be a constant. If it is not, the error of this attempt names the line that reads tokens.
    return _export_with_constants(module, inputs, quiet, read=True)


def export_functional(
    module: nn.Module, inputs: tuple[Tensor, ...], quiet: Callable[[], AbstractContextManager[Any]], **options: Any
) -> Any:
    """The functional exported program of a module. Raises `CaptureError` with the reason if export fails."""
    with quiet(), torch.no_grad(), exporter_context():
        try:
            with record_untraced_effects() as hidden:
                program = torch.export.export(module, inputs, strict=False, **options)
            program = _decompose(program)
        except Exception as error:
            raise (_DataDependentExport if _is_data_dependent(error) else CaptureError)(
                _export_error_message(error)
            ) from error
    if hidden:
        raise _DataDependentExport(f"{NOT_RECORDED}{hidden[0]}")
    return program


def _reject_data_dependent_shapes(graph: Graph) -> None:
    for node in graph.nodes:
        for value in pytree.tree_leaves(node.meta.get("val")):
            if isinstance(value, Tensor) and not all(isinstance(s, int) for s in value.shape):
                raise _DataDependentExport(
                    f"{NOT_RECORDED}the size of a tensor depends on data ({node.target} in "
                    f"{module_path(node) or 'the top module'}{_source_location(node)})"
                )


def _source_location(node: Node) -> str:
    """`, file.py:12`: the line of the model that called an operator."""
    found = re.findall(r'File "(?:.*[/\\])?([^"]+)", line (\d+)', node.meta.get("stack_trace") or "")
    return f", {found[-1][0]}:{found[-1][1]}" if found else ""


def _output_names(module: nn.Module, inputs: tuple[Tensor, ...]) -> list[str]:
    """Names of the tensors that a module returns, in the order of the flattened output."""
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
    return list(leaves)


def _output_nodes(program: Any, names: list[str]) -> dict[str, Node]:
    node = next(n for n in program.graph.nodes if n.op == "output")
    specs = program.graph_signature.output_specs
    results = [x for x, spec in zip(node.args[0], specs, strict=True) if spec.kind.name == "USER_OUTPUT"]
    named = names if len(names) == len(results) else [f"output.{k}" for k in range(len(results))]
    return {
        name: x
        for name, x in zip(named, results, strict=True)
        if isinstance(x, Node) and isinstance(x.meta.get("val"), Tensor)
    }


def _is_data_dependent(error: Exception) -> bool:
    return "data-dependent" in str(error) or "DataDependent" in type(error).__name__


def _export_error_message(error: Exception) -> str:
    """The kind and the source line of an export error, in one line."""
    if _is_data_dependent(error):
        where = source_of_error(error)
        return f"{NOT_RECORDED}control flow depends on data (`if tensor:`, `.item()`, `nonzero`){where}"
    return f"{NOT_RECORDED}{first_line(error)}"
