"""The operator at which tokens mix before the place at which a leak shows.

A leak shows in the first tensor that has an axis of tokens again. Between two such tensors, a model may flatten rows
and tokens, route tokens to experts or run over steps. An operator mixes tokens if a larger share of the elements of its
result depends on the tokens of a cut than of each of its operands. A selection or a change of layout mixes nothing.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from torch.fx import Node

from orderproof.auditing.explain.entries import base_name, source_of
from orderproof.diagnosis.domain.fact import NEVER, Fact
from orderproof.laws.mixing_kinds import OTHER, RECURRENCE, mixing_kind
from orderproof.recording.captured_graph import module_path

_LAYOUTS = {  # operators whose result has elements of one operand
    "alias", "cat", "clone", "contiguous", "detach", "expand", "flatten", "getitem", "index_select", "narrow",
    "permute", "reshape", "select", "slice", "split", "split_with_sizes", "squeeze", "stack", "t", "to", "_to_copy",
    "transpose", "unbind", "unflatten", "unsqueeze", "_unsafe_view", "view",
}  # fmt: skip
_JOINS = {"cat", "stack"}
_ROUNDING = 1e-9
MAX_LOOP_NODES = 100  # that are searched for the state of a loop over steps

Shares = NDArray[np.float64]  # of each cut, the share of the elements that depend on tokens from it on


@dataclass(frozen=True)
class Origin:
    """The operator at which tokens mix, and in which way: a kind of `mixing_kinds`."""

    node: Node
    kind: str
    passes_softmax: bool  # between this operator and the leak


@dataclass
class Mixing:
    """The nodes of a walk whose elements depend on more than a token each, from the facts in their order."""

    tokens: int
    _shares: dict[Node, Shares] = field(default_factory=dict)
    _mixed: dict[Node, None] = field(default_factory=dict)
    _given: Shares | None = None

    def start(self, inputs: dict[Node, Fact]) -> None:
        """Note the facts of the inputs."""
        for node, fact in inputs.items():
            self._shares[node] = self._share(fact)
        self._given = np.maximum.reduce([np.zeros(self.tokens), *self._shares.values()])

    def note(self, node: Node, fact: Fact) -> None:
        """Note the fact of a node, which follows from those before it."""
        share = self._shares[node] = self._share(fact)
        operands = _operands(node)
        known = [self._shares[n] for n in operands if n in self._shares]
        before = np.maximum.reduce([np.zeros(self.tokens), *known])
        grows = base_name(node) not in _LAYOUTS and bool((share > before + _ROUNDING).any())
        carried = any(n in self._mixed for n in operands)
        if (grows or carried) and self._given is not None and bool((share > self._given + _ROUNDING).any()):
            self._mixed[node] = None

    def repaired(self, node: Node, fact: Fact) -> None:
        """Replace the fact of a leak by the one with which the walk goes on."""
        self._shares[node] = self._share(fact)
        self._mixed.pop(node, None)

    def origin(self, leak: Node) -> Origin:
        """The operator at which the tokens of a leak mix, before the fact of the leak is repaired."""
        queue, seen = [leak], {leak}
        while queue:
            for n in _operands(queue.pop()):
                if n in self._mixed and n not in seen:
                    seen.add(n)
                    queue.append(n)
        passes_softmax = any("softmax" in base_name(n) for n in seen)
        starts = [n for n in seen if n in self._mixed and not any(i in self._mixed for i in _operands(n))]
        if len(seen) > 1 and starts:
            first = min(starts, key=list(leak.graph.nodes).index)
            times = sum(_is_same_line(first, n) for n in leak.graph.nodes)
            kind = mixing_kind(base_name(first))
            return Origin(first, RECURRENCE if kind == OTHER and times >= self.tokens - 1 else kind, passes_softmax)
        if self._is_join_of_steps(leak):
            return Origin(_carried_state(leak.all_input_nodes[-1]), RECURRENCE, passes_softmax=False)
        return Origin(leak, mixing_kind(base_name(leak)), passes_softmax)

    def _is_join_of_steps(self, node: Node) -> bool:
        """True for an operator that joins one result for each token."""
        return base_name(node) in _JOINS and len(node.all_input_nodes) >= self.tokens

    def _share(self, fact: Fact) -> Shares:
        levels = fact.dependence.reshape(-1, 1)
        share: Shares = (levels > np.arange(NEVER, self.tokens - 1)).mean(axis=0)
        return share


def _operands(node: Node) -> list[Node]:
    """The operands of a node; of one of several results, those of the operator that gives them."""
    if node.target is operator.getitem:
        return _operands(node.all_input_nodes[0])
    return node.all_input_nodes


def _carried_state(last: Node) -> Node:
    """The operator that computes the state of a loop over steps: the nearest one that follows from its own line."""
    computed = [n for n in _nearest_first(last) if base_name(n) not in _LAYOUTS and n.all_input_nodes]
    carried = (n for n in computed if any(_is_same_line(n, before) for before in _nearest_first(n)[1:]))
    return next(carried, computed[0] if computed else last)


def _nearest_first(node: Node) -> list[Node]:
    """A node and those from which it is computed, up to a number of them."""
    found = [node]
    for here in found:
        found += [n for n in dict.fromkeys(_operands(here)) if n not in found]
        if len(found) > MAX_LOOP_NODES:
            break
    return found


def _is_same_line(one: Node, other: Node) -> bool:
    same = one.target == other.target and module_path(one) == module_path(other)
    return same and source_of(one) == source_of(other) != ("", "")
