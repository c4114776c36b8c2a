"""Record a module's graph, and check that what was recorded is what runs.

Level of graph: `torch.export` (static shapes, non-strict, under no_grad), then `run_decompositions({})`:
functional, without higher-order operators, with linear, layer norm, softmax and attention kept whole.
Operators that have no rule here but a decomposition in torch are decomposed, and only these.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.fx import Graph, GraphModule, Node
from torch.utils import _pytree as pytree

from orderproof.errors import CaptureError, SubjectError
from orderproof.prover.exporter import around_the_exporter, place_of, what_no_graph_shows
from orderproof.prover.inlining import written_out
from orderproof.prover.readable import reading_constants
from orderproof.prover.rule import find


@dataclass(slots=True)
class Captured:
    """A recorded graph, its state, and the names of what goes in and out."""

    module: GraphModule
    inputs: tuple[Node, ...]  # one placeholder for each tensor input
    outputs: dict[str, Node]  # output name -> node
    state: dict[str, str]  # placeholder name -> qualified name of a parameter, buffer or constant
    parameters: frozenset[str]
    values: dict[str, Tensor]  # qualified name -> real tensor, where there is one
    start: Node | None = None  # the node that counts as the input, where the graph is cut (vision)
    read: bool = False  # constants were read while recording: at another length they may be others
    _wide: dict[str, Tensor] = field(default_factory=dict, repr=False)

    def in_float64(self, name: str) -> Tensor:
        """A stored tensor in float64, converted once."""
        if name not in self._wide:
            value = self.values[name]
            self._wide[name] = value.double() if value.is_floating_point() else value
        return self._wide[name]

    @property
    def graph(self) -> Graph:
        """The graph to walk."""
        return self.module.graph

    def copy(self) -> Captured:
        """A copy whose graph can be edited."""
        mapping: dict[Node, Node] = {}
        graph = Graph()
        output = graph.graph_copy(self.graph, mapping)
        graph.output(output)
        module = GraphModule(self.module, graph)
        return Captured(
            module=module,
            inputs=tuple(mapping[n] for n in self.inputs),
            outputs={name: mapping[n] for name, n in self.outputs.items()},
            state=self.state,
            parameters=self.parameters,
            values=self.values,
            start=None if self.start is None else mapping[self.start],
            read=self.read,
            _wide=self._wide,
        )


def capture(
    module: nn.Module,
    inputs: tuple[Tensor, ...],
    *,
    values: Mapping[str, Tensor] | None = None,
    quiet: Callable[[], AbstractContextManager[Any]] = nullcontext,
    cut: str | None = None,
    inside: str = "",
    read: bool = False,
) -> Captured:
    """Record the graph of a module on these inputs. Raises `CaptureError` with the reason where that fails.

    `inside` is the path of the module meant within wrappers of ours; paths are told from there. With `read`, constants
    are read at once while recording, not only where nothing can be recorded without.
    """
    names = _output_names(module, inputs)
    program, read = _recorded_at_one_length(module, inputs, quiet, read=read)
    signature = program.graph_signature
    state, parameters, real = {}, set(), dict(values or {})
    given: list[Node] = []
    by_name = {n.name: n for n in program.graph.nodes if n.op == "placeholder"}
    for spec in signature.input_specs:
        kind = spec.kind.name
        name = spec.arg.name
        if kind == "USER_INPUT":
            if name in by_name and isinstance(by_name[name].meta.get("val"), Tensor):
                given.append(by_name[name])
            continue
        if kind not in ("PARAMETER", "BUFFER", "CONSTANT_TENSOR"):
            continue  # an effect token or an opaque object: no tensor
        qualified = str(spec.target)
        state[name] = qualified
        if kind == "PARAMETER":
            parameters.add(qualified)
        stored = program.state_dict.get(qualified, program.constants.get(qualified))
        if qualified not in real and isinstance(stored, Tensor) and not stored.is_meta:
            real[qualified] = stored.detach()
    outputs = _outputs(program, names)
    graph_module = program.graph_module
    captured = Captured(graph_module, tuple(given), outputs, state, frozenset(parameters), real, read=read)
    for node in graph_module.graph.nodes if inside else ():
        stack = node.meta.get("nn_module_stack") or {}
        node.meta["nn_module_stack"] = {
            key: (path.removeprefix(inside).removeprefix("."), kind) for key, (path, kind) in stack.items()
        }
    if cut is not None:
        captured.start = _find_cut(graph_module.graph, cut)
    return captured


def _decomposed(program: Any) -> Any:
    """The functional graph, the operators without a rule taken apart; once, as each pass traces the whole again."""
    taken_apart = _without_rules()
    return written_out(program.run_decompositions(taken_apart), taken_apart)


@cache
def _without_rules() -> dict[Any, Any]:
    """How torch takes apart the operators that have no rule here."""
    table: Any = torch.export.default_decompositions()
    return {target: taken for target, taken in table.items() if find(target) is None}


class _DataRead(CaptureError):
    """The recording needs a value that it does not have."""


def _recorded_at_one_length(
    module: nn.Module, inputs: tuple[Tensor, ...], quiet: Callable[[], AbstractContextManager[Any]], *, read: bool
) -> tuple[Any, bool]:
    """The recording, and whether constants were read for it."""
    with reading_constants(module) if read else nullcontext():
        try:
            program = recorded(module, inputs, quiet)
            _refuse_sizes_from_data(program.graph)
        except _DataRead:
            if read:
                raise
        else:
            return program, read
    # A constant may be all that it needs; where it is not, the error now says where tokens are read.
    return _recorded_at_one_length(module, inputs, quiet, read=True)


def recorded(
    module: nn.Module, inputs: tuple[Tensor, ...], quiet: Callable[[], AbstractContextManager[Any]], **options: Any
) -> Any:
    """What the exporter makes of a module, functional. Raises `CaptureError` with the reason where that fails."""
    with quiet(), torch.no_grad(), around_the_exporter():
        try:
            with what_no_graph_shows() as hidden:
                program = torch.export.export(module, inputs, strict=False, **options)
            program = _decomposed(program)
        except Exception as error:
            raise (_DataRead if _is_about_data(error) else CaptureError)(_why(error)) from error
    if hidden:
        raise _DataRead(f"the graph cannot be recorded: {hidden[0]}")
    return program


def _refuse_sizes_from_data(graph: Graph) -> None:
    for node in graph.nodes:
        for value in pytree.tree_leaves(node.meta.get("val")):
            if isinstance(value, Tensor) and not all(isinstance(s, int) for s in value.shape):
                raise _DataRead(
                    f"the graph cannot be recorded: the size of a tensor depends on data ({node.target} in "
                    f"{module_path(node) or 'the top module'}{_line(node)})"
                )


def _line(node: Node) -> str:
    """`, file.py:12`: the line of the model that called an operator."""
    found = re.findall(r'File "(?:.*[/\\])?([^"]+)", line (\d+)', node.meta.get("stack_trace") or "")
    return f", {found[-1][0]}:{found[-1][1]}" if found else ""


def _output_names(module: nn.Module, inputs: tuple[Tensor, ...]) -> list[str]:
    """Names of the tensors a module returns, in the order of the flattened output."""
    with torch.no_grad():
        try:
            made = module(*inputs)
        except Exception as error:
            shapes = ", ".join(f"{str(x.dtype).removeprefix('torch.')}{list(x.shape)}" for x in inputs)
            raise SubjectError(
                f"the model could not be called with {shapes}: {type(error).__name__}: {first_line(error)}; "
                "give example inputs it accepts"
            ) from error
    found = named(made)
    if not any(isinstance(value, Tensor) for value in found.values()):
        raise SubjectError(f"the model returned {type(made).__name__} without a tensor; expected at least one tensor")
    return list(found)


def named(made: Any) -> dict[str, Any]:
    """The leaves of whatever a module returned, by name: a key, `output.0` of a tuple, `output` of one tensor."""
    leaves, _ = pytree.tree_flatten_with_path(made)
    return {_name(path): leaf for path, leaf in leaves}


def _name(path: tuple[Any, ...]) -> str:
    parts = [str(getattr(p, "key", getattr(p, "idx", getattr(p, "name", p)))) for p in path]
    return ".".join(["output", *parts] if not parts or parts[0].isdigit() else parts)


def _outputs(program: Any, names: list[str]) -> dict[str, Node]:
    node = next(n for n in program.graph.nodes if n.op == "output")
    specs = program.graph_signature.output_specs
    results = [x for x, spec in zip(node.args[0], specs, strict=True) if spec.kind.name == "USER_OUTPUT"]
    named = names if len(names) == len(results) else [f"output.{k}" for k in range(len(results))]
    return {
        name: x
        for name, x in zip(named, results, strict=True)
        if isinstance(x, Node) and isinstance(x.meta.get("val"), Tensor)
    }


def _find_cut(graph: Graph, path: str) -> Node:
    """The last node computed inside the submodule with this path."""
    found: Node | None = None
    for node in graph.nodes:
        if any(p == path or p.startswith(path + ".") for p, _ in node.meta.get("nn_module_stack", {}).values()):
            if isinstance(node.meta.get("val"), Tensor):
                found = node
    if found is None:
        raise CaptureError(f"no operator of the graph belongs to the submodule {path!r}, whose output counts as input")
    return found


def first_line(error: BaseException) -> str:
    """The first line of an error's message, cut to a readable length."""
    return (str(error).strip().splitlines() or [""])[0][:300]


def _is_about_data(error: Exception) -> bool:
    return "data-dependent" in str(error) or "DataDependent" in type(error).__name__


def _why(error: Exception) -> str:
    """Export errors are long: say what kind it is, where, in one line."""
    if _is_about_data(error):
        where = place_of(traceback.extract_tb(error.__traceback__))
        return f"the graph cannot be recorded: control flow depends on data (`if tensor:`, `.item()`, `nonzero`){where}"
    return f"the graph cannot be recorded: {type(error).__name__}: {first_line(error)}"


def module_path(node: Node) -> str:
    """The dotted path of the innermost module a node belongs to."""
    stack = node.meta.get("nn_module_stack")
    if not stack:
        return ""
    path = list(stack.values())[-1][0]
    return str(path).removeprefix("L['self'].").removeprefix("L__self__.")
