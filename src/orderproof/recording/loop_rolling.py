"""Replace the two recorded iterations of a loop by one for an arbitrary index.

The iterations are compared node by node: the same operator on the same arguments, with one index in place of the other.
Where the second reads what the first computed and the first reads a tensor from before the loop, iterations hand a
tensor on. The second iteration stays, and reads LOOP_STATE instead; what follows the loop reads LOOP_END.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, Node

from orderproof.errors import CaptureError
from orderproof.logic.rewriting import Substitution
from orderproof.logic.solver import Solver
from orderproof.logic.terms import Formula, Term, as_term, at_most, equal, less
from orderproof.recording.arguments import leaves
from orderproof.recording.loop_operators import LOOP_END, LOOP_STATE
from orderproof.recording.loop_recording import Loops, RecordedLoop, renaming
from orderproof.recording.open_sizes import LEAST_SIZE, OpaqueNumber, OpenSizes

OPAQUE = (
    "a loop of open length computes a number from its index: index a tensor that is made before the loop, as "
    "`(torch.arange(n) / n)[i]`"
)


class NotRolled(CaptureError):
    """The iterations of a loop differ; the message says how."""


def roll_loops(graph: Graph, loops: Loops) -> dict[Node, Node]:
    """Replace the iterations of each loop. Returns what replaces nodes of the graph. Raises `NotRolled`."""
    assert loops.recorded.open_call is not None
    sizes = loops.recorded.open_call.sizes
    questions = {node for node, _, _ in loops.recorded.open_call.questions}
    replaced: dict[Node, Node] = {}
    for loop in loops.found:
        if not questions.isdisjoint(n for nodes in loop.iterations for n in nodes):
            raise NotRolled("a branch inside a loop of open length depends on inputs")
        replaced |= _Rolling(graph, loop, sizes, renaming(loops, loop)).run()
    for loop in loops.found:
        _refuse_index_outside(graph, loop, sizes)
    return replaced


def _refuse_index_outside(graph: Graph, loop: RecordedLoop, sizes: OpenSizes) -> None:
    """Raise `NotRolled` if a node that is not in a loop uses the last index that Python has left."""
    own = {*loop.iterations[1], *loop.stacked}
    index = sizes.term(loop.indices[1])
    (name,) = (variable.name for variable in index.variables)
    for node in graph.nodes:
        if node in own or node.target in (LOOP_STATE, LOOP_END) or node.op == "output":
            continue
        numbers = [x for x in leaves((node.args, node.kwargs)) if isinstance(x, Term | OpaqueNumber)]
        shapes = [size for shape, _ in _layouts(sizes, node) for size in shape]
        if any(name in str(x) for x in (*numbers, *shapes)):
            raise NotRolled("the index of a loop of open length is used after it")


def conditions_without_indices(conditions: Sequence[Formula], loops: Loops) -> list[Formula]:
    """The conditions about sizes; those about indices must hold for every index. Raises `NotRolled`.

    If one does not, as that an index is a place of a table, the sizes are those for which it holds at the last one.
    """
    sizes = loops.sizes
    premises = [at_most(LEAST_SIZE, sizes.term(size)) for size in sizes.symbols.values()]
    names: set[str] = set()
    last: list[Substitution] = []
    for loop in loops.found:
        count = sizes.term(loop.count)
        for index in map(sizes.term, loop.indices):
            premises += [at_most(0, index), less(index, count)]
            names |= {variable.name for variable in index.variables}
            last.append(Substitution(dict.fromkeys(index.variables, count - 1)))
    kept = [c for c in conditions if not any(name in str(c) for name in names)]
    solver = Solver()
    example = [equal(sizes.term(size), sizes.examples[name]) for name, size in sizes.symbols.items()]
    for c in conditions:
        if c in kept or solver.implies([*premises, *kept], c):
            continue
        for at_last in dict.fromkeys(one.formula(c) for one in last):
            others = not any(name in str(at_last) for name in names) and solver.implies(example, at_last)
            if others and solver.implies([*premises, *kept, at_last], c):
                kept.append(at_last)
                break
        else:
            raise NotRolled("a branch inside a loop of open length depends on its index")
    return kept


@dataclass
class _Rolling:
    graph: Graph
    loop: RecordedLoop
    sizes: OpenSizes
    renamed: Substitution
    initial: dict[int, Node] = field(default_factory=dict)  # by place of the node that is handed on
    following: list[Node] = field(default_factory=list)  # the states that become those of delayed variables

    def run(self) -> dict[Node, Node]:
        first, second = self.loop.iterations
        if len(first) != len(second):
            raise NotRolled("the iterations of a loop of open length have different operators")
        self.places = [{node: k for k, node in enumerate(nodes)} for nodes in (first, second)]
        self.index = self.sizes.term(self.loop.indices[1])
        for (_, before), one in self.loop.delayed.items():
            if self.initial.setdefault(self.places[0].get(one, -1), before) is not before or -1 in self.initial:
                raise NotRolled("the iterations of a loop of open length hand other tensors on")
        for one, other in zip(first, second, strict=True):
            self._compare(one, other)
        for one, other in self.loop.lists:
            if self.places[0].get(one) is None or self.places[0][one] != self.places[1].get(other):
                raise NotRolled("the iterations of a loop of open length append other tensors")
        if not self.initial:
            raise NotRolled("the iterations of a loop of open length hand nothing on")
        states = self._states(first, second)
        states += self._delayed_states(first, second, states)
        end, finals = self._ends(second, states)
        self._check_uses(first, second, end)
        inside = {*second, end, *self.loop.stacked}
        for k, final in finals.items():
            second[k].replace_all_uses_with(final, lambda user: user not in inside)
        for node in self.loop.stacked:
            value, dim, index, count = node.args
            node.args = (end, value, dim, index, count)
        for node in reversed(first):
            self.graph.erase_node(node)
        return {second[k]: final for k, final in finals.items()}

    def _compare(self, one: Node, other: Node) -> None:
        if one.op != "call_function" or one.target is not other.target or set(one.kwargs) != set(other.kwargs):
            raise NotRolled("the iterations of a loop of open length have different operators")
        self._same(one.args, other.args)
        for key, value in one.kwargs.items():
            self._same(value, other.kwargs[key])
        if _layouts(self.sizes, one) != _layouts(self.sizes, other):
            raise NotRolled("the iterations of a loop of open length compute tensors of different shapes")
        if any(self.index.variables & size.variables for shape, _ in _layouts(self.sizes, other) for size in shape):
            raise NotRolled("the size of a tensor depends on the index of a loop of open length")

    def _same(self, one: Any, other: Any) -> None:
        different = NotRolled("the iterations of a loop of open length have different arguments")
        if isinstance(other, list | tuple):
            if not isinstance(one, list | tuple) or len(one) != len(other):
                raise different
            for a, b in zip(one, other, strict=True):
                self._same(a, b)
        elif isinstance(other, Node):
            self._same_node(one, other, different)
        elif isinstance(other, OpaqueNumber) or isinstance(one, OpaqueNumber):
            raise NotRolled(OPAQUE)
        elif isinstance(other, Term) or isinstance(one, Term):
            if self.renamed.term(as_term(one)) is not as_term(other):
                raise different
        elif type(one) is not type(other) or (one != other and one == one):
            raise different

    def _same_node(self, one: Any, other: Node, different: NotRolled) -> None:
        first, second = self.places
        if other in second:
            if first.get(one) != second[other]:
                raise different
        elif other in first:
            place = first[other]
            if one in first or self.initial.setdefault(place, one) is not one:
                raise different
        elif one is not other and (one, other) not in self.loop.delayed:
            raise different

    def _states(self, first: list[Node], second: list[Node]) -> list[Node]:
        states = []
        for place, initial in sorted(self.initial.items()):
            if _layouts(self.sizes, initial) != _layouts(self.sizes, second[place]):
                raise NotRolled("a loop of open length changes the shape of a tensor")
            with self.graph.inserting_before(second[0]):
                state = self._node(LOOP_STATE, (initial,), second[place], _like(second[place].meta["val"]))
            for node in second:
                node.replace_input_with(first[place], state)
            states.append(state)
        return states

    def _delayed_states(self, first: list[Node], second: list[Node], states: list[Node]) -> list[Node]:
        """A state for each variable that has what another one had an iteration before."""
        found: dict[tuple[Node, Node], Node] = {}
        places = sorted(self.initial)
        for pair, one in self.loop.delayed.items():
            other = states[places.index(self.places[0][one])]
            if _layouts(self.sizes, pair[0]) != _layouts(self.sizes, other):
                raise NotRolled("a loop of open length changes the shape of a tensor")
            with self.graph.inserting_before(second[0]):
                found[pair] = self._node(LOOP_STATE, (pair[0],), other, _like(other.meta["val"]))
            self.following.append(other)

        def delayed(one: Any, other: Any) -> Any:
            if isinstance(other, list | tuple):
                return type(other)(map(delayed, one, other))
            return found.get((one, other), other) if isinstance(other, Node) else other

        for one, other in zip(first, second, strict=True) if found else ():
            other.args = delayed(one.args, other.args)
            other.kwargs = {key: delayed(one.kwargs[key], value) for key, value in other.kwargs.items()}
        return list(found.values())

    def _ends(self, second: list[Node], states: list[Node]) -> tuple[Node, dict[int, Node]]:
        places = sorted(self.initial)
        following = [*(second[k] for k in places), *self.following]
        values = [_like(node.meta["val"]) for node in following]
        with self.graph.inserting_after(second[-1]):
            end = self._node(LOOP_END, (states, following), second[-1], values)
        finals, last = {}, end
        for j, k in enumerate(places):
            with self.graph.inserting_after(last):
                last = finals[k] = self.graph.call_function(operator.getitem, (end, j))
            last.meta = {**second[k].meta, "val": values[j]}
        return end, finals

    def _node(self, target: Any, args: tuple[Any, ...], like: Node, value: Any) -> Node:
        count = self.sizes.term(self.loop.count)
        every: tuple[Any, ...] = (*args, self.index, count)
        node = self.graph.call_function(target, every)
        node.meta = {**like.meta, "val": value}
        return node

    def _check_uses(self, first: list[Node], second: list[Node], end: Node) -> None:
        own = set(second)
        for place, node in enumerate(first):
            if any(user not in self.places[0] for user in node.users):
                raise NotRolled(f"a tensor of an earlier iteration is used after a loop of open length ({place})")
        for place, node in enumerate(second):
            outside = [u for u in node.users if u not in own and u is not end and u not in self.loop.stacked]
            if outside and place not in self.initial:
                raise NotRolled("a tensor of the last iteration is used after a loop of open length")


def _like(value: Any) -> Any:
    return torch.empty_like(value)


def _layouts(sizes: OpenSizes, node: Node) -> list[tuple[tuple[Term, ...], torch.dtype]]:
    value = node.meta["val"]
    tensors = value if isinstance(value, list | tuple) else (value,)
    return [(sizes.shape(x), x.dtype) for x in tensors if isinstance(x, Tensor)]
