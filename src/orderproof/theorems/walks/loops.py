"""Induction over the iterations of a loop of open length.

A loop hands tensors S from one iteration to the next. Let F(i) be a fact about S at the begin of iteration i. If what
enters the loop fulfils F(0), and the body maps F(i) to a fact about the next S that implies F(i + 1) for every i from 0
to n - 1, then F(n) holds of what leaves the loop; and a fact about a tensor of the body, given F(i), holds in every
iteration. F is looked for: of each tensor the strongest formula that the statement suggests and that the body keeps.

Machine-checked (proofs/symbolic/depth.v): loop_induction, loop_values.
Not machine-checked: that the iterations have the same code (recording/loop_recording.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.fx import Node

from orderproof.logic.rewriting import Substitution
from orderproof.logic.terms import FALSE, TRUE, Formula, Term, Variable, as_term, at_most
from orderproof.recording.loop_operators import LOOP_STATE, loop_body, loop_count, loop_index
from orderproof.recording.open_recording import OpenGraph
from orderproof.theorems.facts.open_fact import NotCovered, OpenFact, dims_of, index
from orderproof.theorems.facts.reindexing import with_single_axis
from orderproof.theorems.walks.context import Context
from orderproof.theorems.walks.open_operation import OpenFacts

MAX_TRIES = 80  # of invariants of one loop
Facts = dict[Node, OpenFacts]
Derive = Callable[..., Any]  # (graph, nodes, known facts, context): the facts of the nodes


@dataclass(frozen=True)
class Loop:
    """A loop of a graph: its states, the nodes of its body, its end, and its range."""

    states: tuple[Node, ...]
    body: tuple[Node, ...]
    end: Node
    index: Term
    count: Term

    @classmethod
    def at(cls, graph: OpenGraph, first: Node) -> Loop:
        """The loop whose first state is this node."""
        nodes, end = loop_body(graph.graph, first)
        states = tuple(n for n in nodes if n.target is LOOP_STATE and loop_index(n) is loop_index(first))
        body = tuple(n for n in nodes if n not in states)
        return cls(states, body, end, loop_index(first), as_term(loop_count(first)))

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes."""
        return (*self.states, *self.body, self.end)

    @property
    def variable(self) -> Variable:
        """The variable of the index."""
        (found,) = self.index.variables
        return found

    @property
    def next_nodes(self) -> list[Node]:
        """The node of each state at the end of an iteration."""
        found = self.end.args[1]
        assert isinstance(found, list | tuple)
        return [node for node in found if isinstance(node, Node)]


@dataclass
class _Invariant:
    """The fact about a state that is tried: a place in a list of formulas, strong claims first."""

    initial: OpenFact
    formulas: list[Formula]
    place: int = 0
    is_ordinary: bool = True

    @property
    def same(self) -> Formula:
        return self.formulas[self.place]

    @property
    def fact(self) -> OpenFact:
        unbounded = FALSE if self.is_ordinary else TRUE
        return OpenFact(self.initial.dims, self.initial.dtype, self.same, unbounded=unbounded)

    def weaken(self) -> None:
        self.place += 1
        if self.place == len(self.formulas):
            raise NotCovered("no invariant of the loop was found")


def loop_facts(
    graph: OpenGraph, loop: Loop, known: Mapping[Node, OpenFacts], context: Context, derive: Derive
) -> Facts:
    """The facts about the nodes of a loop, and about what leaves it. Raises `NotCovered`."""
    if not context.proves(at_most(0, loop.count), ()):
        raise NotCovered("a loop may have a negative number of iterations")
    tried = _Search(graph, loop, known, context, derive)
    return tried.facts()


class _Search:
    def __init__(
        self, graph: OpenGraph, loop: Loop, known: Mapping[Node, OpenFacts], context: Context, derive: Derive
    ) -> None:
        self.graph, self.loop, self.known, self.derive = graph, loop, known, derive
        self.outside = context
        self.context = replace(context, loops=(*context.loops, (loop.index, loop.count)))
        self.tries = 0
        self.invariants = [self._strongest(state) for state in loop.states]

    def _strongest(self, state: Node) -> _Invariant:
        entered = self.known.get(state.args[0])  # type: ignore[arg-type]
        if not isinstance(entered, OpenFact):
            raise NotCovered("nothing is known of what enters a loop")
        initial = _plain(entered)
        formulas = self.outside.invariants(initial.sizes, (self.loop.index - 1, self.loop.count))
        found = _Invariant(initial, formulas, is_ordinary=_is_ordinary(initial))
        self._weaken_to_start(found)
        return found

    def _weaken_to_start(self, one: _Invariant) -> None:
        """Go on to the first formula that what enters the loop fulfils: a later one need not follow from it."""
        start = Substitution({self.loop.variable: as_term(0)})
        while not self.outside.proves(one.initial.same, one.initial.sizes, start.formula(one.same)):
            one.weaken()

    def _weaken(self, one: _Invariant) -> None:
        one.weaken()
        self._weaken_to_start(one)

    def facts(self) -> Facts:
        """The facts, given invariants that the body keeps."""
        chosen = self.invariants
        for k, one in enumerate(chosen):  # what each needs of its own, if the others are as strong as they can be
            while not self._kept(self._body([other if j == k else _first(other) for j, other in enumerate(chosen)]), k):
                self._weaken(one)
        while True:
            found = self._body(chosen)
            failing = [k for k in range(len(chosen)) if not self._kept(found, k)]
            if not failing:
                return found | {self.loop.end: self._left()}
            for k in failing:
                self._weaken(chosen[k])

    def _body(self, invariants: list[_Invariant]) -> Facts:
        """The facts about the states and the body."""
        self.tries += 1
        if self.tries > MAX_TRIES:
            raise NotCovered("no invariant of the loop was found")
        states: Facts = {node: one.fact for node, one in zip(self.loop.states, invariants, strict=True)}
        derived = self.derive(self.graph, self.loop.body, {**self.known, **states}, self.context)
        for node in self.loop.next_nodes:
            if not isinstance((states | derived.facts).get(node), OpenFact):
                raise NotCovered(
                    next(iter(derived.failures.values()), "nothing is known of what an iteration computes")
                )
        return states | {node: derived.facts[node] for node in self.loop.body if node in derived.facts}

    def _kept(self, found: Facts, k: int) -> bool:
        """True if the body keeps an invariant, which is made to say less of its numbers if that is why it does not."""
        one, fact = self.invariants[k], found[self.loop.next_nodes[k]]
        assert isinstance(fact, OpenFact)
        fact = _plain(fact)
        after = Substitution({self.loop.variable: self.loop.index + 1})
        if one.is_ordinary and not _is_ordinary(fact):
            one.is_ordinary = False
            return False
        return self.context.proves(fact.same, fact.sizes, after.formula(one.same))

    def _left(self) -> tuple[OpenFact, ...]:
        """The facts about the states after the last iteration."""
        end = {self.loop.variable: self.loop.count}
        return tuple(
            one.fact.at(one.fact.dims, [index(j) for j in range(len(one.fact.sizes))], end) for one in self.invariants
        )


def _first(one: _Invariant) -> _Invariant:
    return replace(one, place=0)


def _is_ordinary(fact: OpenFact) -> bool:
    ranges = fact.ranges()
    return ranges.hidden is FALSE and ranges.unbounded is FALSE


def _plain(fact: OpenFact) -> OpenFact:
    """The fact with one axis for each dimension. Raises `NotCovered`."""
    for dim in range(len(fact.dims)):
        fact = with_single_axis(fact, dim)
    return fact


def stacked_fact(node: Node, facts: Mapping[Node, OpenFacts]) -> OpenFact:
    """The fact about the values of all iterations along a new dimension: its index is that of the loop."""
    _, value, dim, loop, count = node.args
    fact = facts.get(value)  # type: ignore[arg-type]
    if not isinstance(fact, OpenFact):
        raise NotCovered("nothing is known of what an iteration computes")
    assert isinstance(dim, int)
    assert isinstance(loop, Term)
    (own,) = dims_of([as_term(count)])
    first = fact.first_axis(dim)
    terms = [index(k if k < first else k + len(own)) for k in range(len(fact.sizes))]
    (variable,) = loop.variables
    dims = [*fact.dims[:dim], own, *fact.dims[dim:]]
    stacked = fact.at(dims, terms, {variable: index(first) if own else as_term(0)})
    return replace(stacked, dtype=_dtype(node))


def _dtype(node: Node) -> torch.dtype:
    dtype: torch.dtype = node.meta["val"].dtype
    return dtype
