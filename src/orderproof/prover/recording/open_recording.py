"""Record a module with open sizes: one graph for every number of tokens and rows, with masks as inputs.

The recording is that of `recording.py` on tensors whose shapes contain open sizes. Inputs that a law holds fixed (an
attention mask, position ids) are inputs of the graph, whose values are arbitrary. Where the call asks about them or
about the sizes, several recordings cover all cases, each with the conditions under which it is the one that runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.fx import Graph, Node

from orderproof.errors import CaptureError
from orderproof.library_messages import suppress_warnings
from orderproof.prover.captured_graph import leaves_by_name
from orderproof.prover.logic.rewriting import Substitution
from orderproof.prover.logic.terms import Formula, Term
from orderproof.prover.recording.arguments import map_leaves
from orderproof.prover.recording.assumptions import custom_calls, custom_operator_assumptions
from orderproof.prover.recording.buffer_values import buffers_with_values
from orderproof.prover.recording.fixed_numbers import fixed_numbers, with_decided_cases
from orderproof.prover.recording.loop_rolling import conditions_without_indices, roll_loops
from orderproof.prover.recording.open_call import OpenCall
from orderproof.prover.recording.open_sizes import OpenSizes, text_fixes_sizes
from orderproof.prover.recording.reachable_state import ReachableState, reachable_state
from orderproof.prover.recording.recording import Recording
from orderproof.prover.recording.refusal import RecordingRefused, RecordingUnsupported

MAX_PATHS = 8


@dataclass(frozen=True)
class OpenInput:
    """An input of an open recording.

    Attributes:
        name: Its name in the graph.
        sizes: Its shape: numbers, and names of open sizes.
        dtype: Its dtype.
        fixed: It is the same in both runs of every law, so that branches may depend on its values.

    """

    name: str
    sizes: tuple[int | str, ...]
    dtype: torch.dtype
    fixed: bool = False


@dataclass(frozen=True)
class Question:
    """A tensor on which a branch of the call depends, and the answer that it got."""

    node: Node
    answer: bool
    line: str  # of the model


@dataclass(frozen=True)
class OpenGraph:
    """A recorded graph with open sizes.

    Attributes:
        graph: The graph. Sizes among its arguments are terms.
        inputs: The placeholder of each input.
        outputs: The node of each output by name.
        state: The name of the parameter, buffer or constant of each other placeholder.
        parameters: Names of those that are trained.
        values: Values of the others by name.
        shapes: The shape of each tensor.
        conditions: What the sizes fulfil in this recording.
        questions: What the inputs fulfil in this recording.
        changed_state: What the call changes in the module.
        assumptions: What else every claim about the recording assumes.

    """

    graph: Graph
    inputs: tuple[Node, ...]
    outputs: dict[str, Node]
    state: dict[str, str]
    parameters: frozenset[str]
    values: dict[str, Tensor]
    shapes: dict[Node, tuple[tuple[Term, ...], ...]]
    conditions: tuple[Formula, ...]
    questions: tuple[Question, ...]
    changed_state: tuple[str, ...]
    assumptions: tuple[str, ...]

    def shape(self, node: Node) -> tuple[Term, ...]:
        """The shape of a node that is one tensor."""
        (shape,) = self.shapes[node]
        return shape


def record_open(
    module: nn.Module,
    inputs: Sequence[OpenInput],
    examples: Mapping[str, int],
    *,
    values: Mapping[str, Tensor] | None = None,
) -> list[OpenGraph]:
    """The recordings of a module's forward call with open sizes, one for each branch that its inputs decide.

    Args:
        module: The module.
        inputs: Its inputs.
        examples: An example of each open size, by which branches that depend on sizes are decided.
        values: The values of buffers on the meta device, by qualified name.

    Raises:
        CaptureError: It cannot be recorded so; the message is the reason.

    """
    with buffers_with_values(module, values or {}):
        return _record_branches(module, inputs, examples)


def _record_branches(module: nn.Module, inputs: Sequence[OpenInput], examples: Mapping[str, int]) -> list[OpenGraph]:
    graphs: list[OpenGraph] = []
    reached = reachable_state(module)
    answers: list[bool] | None = []
    rolls_loops = True
    while answers is not None:
        if len(graphs) == MAX_PATHS:
            raise CaptureError(f"its inputs decide more than {MAX_PATHS} branches")
        call = OpenCall(OpenSizes(examples), answers)
        try:
            graphs.append(_record(module, inputs, call, reached, rolls_loops=rolls_loops))
        except Exception:
            if not call.sizes.has_indices:
                raise
            rolls_loops = False  # the loops are not of the form that can be rolled: they run for the example
            continue
        answers = call.next_answers()
    return graphs


def _record(
    module: nn.Module, inputs: Sequence[OpenInput], call: OpenCall, reached: ReachableState, *, rolls_loops: bool
) -> OpenGraph:
    sizes = call.sizes
    tensors = tuple(
        torch.empty([sizes.symbols[s] if isinstance(s, str) else s for s in x.sizes], dtype=x.dtype, device="meta")
        for x in inputs
    )
    recording = Recording(module, tensors, call, reached=reached, rolls_loops=rolls_loops)
    aliases = [recording.placeholder(x.name, tensor) for x, tensor in zip(inputs, tensors, strict=True)]
    nodes = tuple(alias.node for alias in aliases)
    for alias, one in zip(aliases, inputs, strict=True):
        alias.storage.fixed = one.fixed
    with suppress_warnings():
        with text_fixes_sizes():
            output, changed, assumptions = recording.call(aliases)
        if sizes.fixed:
            raise CaptureError(f"it runs for {sizes.examples[sizes.fixed[0]]} {sizes.fixed[0]} only")
        try:
            results = {
                name: recording.recorded.node_of(x)
                for name, x in leaves_by_name(output).items()
                if isinstance(x, Tensor)
            }
        except (RecordingRefused, RecordingUnsupported) as error:
            raise CaptureError(str(error)) from None
    graph = recording.graph
    graph.output((*results.values(), *(node for node, _, _ in call.questions)))
    conditions = sizes.conditions()
    of_loops: tuple[str, ...] = ()
    if recording.loops is not None:
        of_loops = recording.loops.assumptions
        conditions = conditions_without_indices(conditions, recording.loops)
        replaced = roll_loops(graph, recording.loops)
        results = {name: replaced.get(node, node) for name, node in results.items()}
    custom = custom_calls(graph)
    recording.erase_unused(nodes)
    fixed = fixed_numbers(conditions)
    for node in graph.nodes if fixed.terms else ():
        node.args, node.kwargs = map_leaves(Term, fixed.term, (node.args, node.kwargs))
    shapes = {node: _shapes(sizes, node, fixed) for node in graph.nodes if node.op in ("placeholder", "call_function")}
    return OpenGraph(
        graph,
        nodes,
        results,
        recording.state,
        frozenset(n for n in recording.state.values() if n in recording.tensors.parameters),
        recording.values(),
        shapes,
        tuple(with_decided_cases(conditions)),
        tuple(Question(*question) for question in call.questions),
        tuple(changed),
        (*assumptions, *of_loops, *custom_operator_assumptions(custom, graph)),
    )


def _shapes(sizes: OpenSizes, node: Node, fixed: Substitution) -> tuple[tuple[Term, ...], ...]:
    value = node.meta["val"]
    tensors = value if isinstance(value, list | tuple) else (value,)
    return tuple(tuple(map(fixed.term, sizes.shape(x))) for x in tensors if isinstance(x, Tensor))
