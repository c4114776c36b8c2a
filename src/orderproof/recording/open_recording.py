"""Record a module with open sizes: one graph for every number of tokens and rows, with masks as inputs.

The recording is that of `recording.py` on tensors whose shapes contain open sizes. Inputs that a law holds fixed (an
attention mask, position ids) are inputs of the graph, whose values are arbitrary. Where the call asks about them or
about the sizes, several recordings cover all cases, each with the conditions under which it is the one that runs. A
branch that no input takes is recorded up to the question that decides this.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import torch
from torch import Tensor, nn
from torch.fx import Graph, Node

from orderproof.errors import CaptureError
from orderproof.library_messages import silent_messages
from orderproof.logic.rewriting import Substitution
from orderproof.logic.terms import Formula, Term
from orderproof.recording.arguments import map_leaves
from orderproof.recording.assumptions import custom_calls, custom_operator_assumptions, signed_zero_assumption
from orderproof.recording.buffer_values import buffers_with_values
from orderproof.recording.captured_graph import ancestors, leaves_by_name
from orderproof.recording.fixed_numbers import fixed_numbers, with_decided_cases
from orderproof.recording.loop_rolling import conditions_without_indices, roll_loops
from orderproof.recording.open_call import OpenCall
from orderproof.recording.open_sizes import OpenSizes
from orderproof.recording.owned_state import OwnedState, owned_state
from orderproof.recording.recording import Recording
from orderproof.recording.refusal import RecordingRefused, reason_of

MAX_PATHS = 8


class UnreadableCondition(CaptureError):
    """A recording with kept sizes asks for what is not linear in them. The message shows it."""


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
        is_cut_off: The graph ends, without outputs, at a question whose answer is impossible.

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
    is_cut_off: bool = False

    def shape(self, node: Node) -> tuple[Term, ...]:
        """The shape of a node that is one tensor."""
        (shape,) = self.shapes[node]
        return shape

    @cached_property
    def of_inputs(self) -> frozenset[str]:
        """The names of the nodes that depend on inputs, and not on sizes and stored tensors alone."""
        found = set(self.inputs)
        for node in self.graph.nodes:
            if not found.isdisjoint(node.all_input_nodes):
                found.add(node)
        return frozenset(node.name for node in found)


OnlyAnswer = Callable[[OpenGraph], bool | None]  # to the last question of a graph that ends there


def record_open(
    module: nn.Module,
    inputs: Sequence[OpenInput],
    examples: Mapping[str, int],
    *,
    values: Mapping[str, Tensor] | None = None,
    only_answer: OnlyAnswer | None = None,
    kept: Collection[str] = (),
) -> list[OpenGraph]:
    """The recordings of a module's forward call with open sizes, one for each branch that its inputs decide.

    Args:
        module: The module.
        inputs: Its inputs.
        examples: An example of each open size, by which branches that depend on sizes are decided.
        values: The values of buffers on the meta device, by qualified name.
        only_answer: Decides questions with only one possible answer. The graph of the other one is cut off.
        kept: Names of open sizes that the call may fix to their example.

    Raises:
        CaptureError: It cannot be recorded so; the message is the reason.
        UnreadableCondition: With ``kept`` sizes: a condition is not linear in them.

    """
    with buffers_with_values(module, values or {}):
        return _record_branches(module, inputs, partial(OpenSizes, examples, kept=kept), only_answer)


def _record_branches(
    module: nn.Module, inputs: Sequence[OpenInput], sizes: Callable[[], OpenSizes], only_answer: OnlyAnswer | None
) -> list[OpenGraph]:
    graphs: list[OpenGraph] = []
    cut_off: dict[tuple[bool, ...], OpenGraph] = {}
    reached = owned_state(module)
    answers: list[bool] | None = []
    not_rolled = ""  # why a loop over an open range is not recorded for an index that is a symbol
    ways = [0, 1]  # the first iterations that are recorded by themselves; without a way, it runs for the example only
    while answers is not None:
        if len(graphs) == MAX_PATHS:
            raise CaptureError(f"its inputs decide more than {MAX_PATHS} branches")
        call = OpenCall(sizes(), answers)
        try:
            recording = _Branch(module, inputs, call, reached, only_answer, apart=ways[0] if ways else None)
            graphs.append(recording.record())
        except Exception as error:
            if call.sizes.has_indices:
                not_rolled = not_rolled or reason_of(error)
                ways.pop(0)
                continue
            if not_rolled and call.sizes.fixed:
                raise CaptureError(call.sizes.why_fixed(call.sizes.fixed[0], not_rolled)) from None
            raise
        cut_off |= {tuple(q.answer for q in one.questions): one for one in recording.cut_off}
        answers = call.next_answers()
    return [*graphs, *cut_off.values()]


class _Branch:
    """The recording of one branch, and the graphs that are cut off next to it."""

    def __init__(
        self, module: nn.Module, inputs: Sequence[OpenInput], call: OpenCall, reached: OwnedState,
        only_answer: OnlyAnswer | None, *, apart: int | None,
    ) -> None:  # fmt: skip
        self.call, self.sizes = call, call.sizes
        self.cut_off: list[OpenGraph] = []
        tensors = tuple(
            torch.empty(
                [call.sizes.symbols[s] if isinstance(s, str) else s for s in x.sizes], dtype=x.dtype, device="meta"
            )
            for x in inputs
        )
        self.recording = Recording(
            module, tensors, call, reached=reached, rolls_loops=apart is not None, apart=apart or 0
        )
        self.aliases = [self.recording.placeholder(x.name, tensor) for x, tensor in zip(inputs, tensors, strict=True)]
        self.nodes = tuple(alias.node for alias in self.aliases)
        for alias, one in zip(self.aliases, inputs, strict=True):
            alias.storage.fixed = one.fixed
        if only_answer is not None:
            call.only_answer = lambda node, line: self._only_answer(only_answer, node, line)

    def record(self) -> OpenGraph:
        """The graph of the branch."""
        sizes, call, recording, nodes = self.sizes, self.call, self.recording, self.nodes
        with silent_messages():
            output, changed, assumptions = recording.call(self.aliases)
            if sizes.unreadable:
                raise UnreadableCondition(f"a condition on its sizes cannot be read: {sizes.unreadable}")
            if sizes.fixed:
                raise CaptureError(sizes.why_fixed(sizes.fixed[0]))
            try:
                results = {
                    name: recording.recorded.node_of(x)
                    for name, x in leaves_by_name(output).items()
                    if isinstance(x, Tensor)
                }
            except RecordingRefused as error:
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
        assumptions += (*of_loops, *custom_operator_assumptions(custom, graph), *signed_zero_assumption(graph))
        return OpenGraph(
            graph,
            nodes,
            results,
            recording.state,
            frozenset(n for n in recording.state.values() if n in recording.tensors.parameters),
            recording.values(),
            _with_fixed_numbers(sizes, graph, conditions),
            tuple(with_decided_cases(conditions)),
            tuple(Question(*question) for question in call.questions),
            tuple(changed),
            assumptions,
        )

    def _only_answer(self, decide: OnlyAnswer, node: Node, line: str) -> bool | None:
        """The only possible answer to a question of the call, which runs meanwhile."""
        if self.sizes.has_indices:  # the loop is not rolled yet
            return None
        with torch._C.DisableTorchFunction():
            graph = self._graph_until(node, line)
            answer = decide(graph)
        if answer is not None:
            *before, last = graph.questions
            self.cut_off.append(replace(graph, questions=(*before, replace(last, answer=not answer))))
        return answer

    def _graph_until(self, node: Node, line: str) -> OpenGraph:
        """The part of the graph on which a question and those before it depend."""
        recording = self.recording
        asked = [*self.call.questions, (node, False, line)]
        needed = ancestors([*self.nodes, *(one for one, _, _ in asked)])
        graph, copies = Graph(), dict[Node, Node]()
        for one in recording.graph.nodes:
            if one in needed:
                copies[one] = graph.node_copy(one, copies.__getitem__)
        graph.output(tuple(copies[one] for one, _, _ in asked))
        state = {one.name: recording.state[one.name] for one in copies if one.name in recording.state}
        values = recording.values()
        conditions = self.sizes.conditions()
        return OpenGraph(
            graph,
            tuple(copies[one] for one in self.nodes),
            {},
            state,
            frozenset(name for name in state.values() if name in recording.tensors.parameters),
            {name: values[name] for name in state.values() if name in values},
            _with_fixed_numbers(self.sizes, graph, conditions),
            tuple(with_decided_cases(conditions)),
            tuple(Question(copies[one], answer, where) for one, answer, where in asked),
            (),
            (),
            is_cut_off=True,
        )


def _with_fixed_numbers(
    sizes: OpenSizes, graph: Graph, conditions: Sequence[Formula]
) -> dict[Node, tuple[tuple[Term, ...], ...]]:
    """Replace numbers that the conditions fix among the arguments; the shapes of the nodes."""
    fixed = fixed_numbers(conditions)
    for node in graph.nodes if fixed.terms else ():
        node.args, node.kwargs = map_leaves(Term, fixed.term, (node.args, node.kwargs))
    return {node: _shapes(sizes, node, fixed) for node in graph.nodes if node.op in ("placeholder", "call_function")}


def _shapes(sizes: OpenSizes, node: Node, fixed: Substitution) -> tuple[tuple[Term, ...], ...]:
    value = node.meta["val"]
    tensors = value if isinstance(value, list | tuple) else (value,)
    return tuple(tuple(map(fixed.term, sizes.shape(x))) for x in tensors if isinstance(x, Tensor))
