"""The graph of a module's forward call, with its stored tensors and the names of its inputs and outputs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor
from torch.fx import Graph, Node
from torch.utils import _pytree as pytree

from orderproof.errors import CaptureError
from orderproof.recording.float64_parameters import Float64Parameters
from orderproof.recording.token_branches import TokenBranch


@dataclass(slots=True)
class CapturedGraph:
    """A recorded graph with its stored tensors and the names of its inputs and outputs."""

    graph: Graph
    inputs: tuple[Node, ...]  # one placeholder for each tensor input
    outputs: dict[str, Node]  # output name -> node
    state: dict[str, str]  # placeholder name -> qualified name of a parameter, buffer or constant tensor
    parameters: frozenset[str]
    values: dict[str, Tensor]  # qualified name -> tensor; a tensor without storage (meta) is absent
    start: Node | None = None  # the node that counts as the input, if the graph is cut (vision)
    read: bool = False  # constants were read during recording: at another length they may differ
    changed_state: tuple[str, ...] = ()  # attributes, buffers and generators that the call changes
    outside: tuple[str, ...] = ()  # functions that the call calls whose answers come from outside the program
    assumptions: tuple[str, ...] = ()  # what else the recording assumes of the program
    branches: tuple[TokenBranch, ...] = ()  # that calls take by which values occur in their inputs
    branch_values: tuple[int, ...] = ()  # values that decide a branch, on this path or on another one
    uniform: tuple[str, ...] = ()  # constants that were made the same for every token: the graph is of another model
    uniform_at: tuple[Node, ...] = ()  # the nodes that read these constants so; others read them as they are
    without: str = ""  # fused implementations that are off in the recorded program
    eager: tuple[tuple[Tensor, ...], dict[str, Tensor]] | None = None  # a call of a large module: inputs and outputs
    patched_because: str = ""  # why parts of the model were replaced; empty if the program that runs was recorded
    nested: tuple[str, ...] = ()  # operators whose functions were recorded in their place: `cond`
    float64_parameters: Float64Parameters = field(default_factory=Float64Parameters, repr=False)
    _wide: dict[str, Tensor] = field(default_factory=dict, repr=False)

    def in_float64(self, name: str) -> Tensor:
        """A stored tensor in float64 (unchanged if it is not floating point), converted once."""
        if name in self.parameters:
            return self.float64_parameters.convert(self.values[name])
        if name not in self._wide:
            value = self.values[name]
            self._wide[name] = value.double() if value.is_floating_point() else value
        return self._wide[name]

    def copy(self) -> CapturedGraph:
        """A copy whose graph can be edited."""
        mapping: dict[Node, Node] = {}
        graph = Graph()
        output = graph.graph_copy(self.graph, mapping)
        graph.output(output)
        return CapturedGraph(
            graph=graph,
            inputs=tuple(mapping[n] for n in self.inputs),
            outputs={name: mapping[n] for name, n in self.outputs.items()},
            state=self.state,
            parameters=self.parameters,
            values=self.values,
            start=None if self.start is None else mapping[self.start],
            read=self.read,
            changed_state=self.changed_state,
            outside=self.outside,
            assumptions=self.assumptions,
            branches=self.branches,
            branch_values=self.branch_values,
            uniform=self.uniform,
            uniform_at=tuple(mapping[n] for n in self.uniform_at),
            without=self.without,
            patched_because=self.patched_because,
            nested=self.nested,
            float64_parameters=self.float64_parameters,
            _wide=self._wide,
        )


def leaves_by_name(output: Any) -> dict[str, Any]:
    """The leaves of the output of a module, by name: a key, `output.0` of a tuple, `output` of one tensor."""
    leaves, _ = pytree.tree_flatten_with_path(output)
    return {leaf_name(path): leaf for path, leaf in leaves}


def leaf_name(path: tuple[Any, ...]) -> str:
    """The name of the leaf at a path of an output."""
    parts = [str(getattr(p, "key", getattr(p, "idx", getattr(p, "name", p)))) for p in path]
    return ".".join(["output", *parts] if not parts or parts[0].isdigit() else parts)


def find_cut(graph: Graph, path: str) -> Node:
    """The last node computed inside the submodule with this path."""
    found: Node | None = None
    for node in graph.nodes:
        if any(p == path or p.startswith(path + ".") for p, _ in node.meta.get("nn_module_stack", {}).values()):
            if isinstance(node.meta.get("val"), Tensor):
                found = node
    if found is None:
        raise CaptureError(
            f"no operator of the graph belongs to the submodule {path!r}, whose output counts as the input"
        )
    return found


def module_path(node: Node) -> str:
    """The dotted path of the innermost module a node belongs to."""
    stack = node.meta.get("nn_module_stack")
    if not stack:
        return ""
    path = list(stack.values())[-1][0]
    return str(path).removeprefix("L['self'].").removeprefix("L__self__.")


def ancestors(targets: Iterable[Node]) -> set[Node]:
    """The nodes, and those that they depend on."""
    found: set[Node] = set()
    queue = list(targets)
    while queue:
        node = queue.pop()
        if node not in found:
            found.add(node)
            queue += node.all_input_nodes
    return found
