"""Constants that meet tokens: their values at each index, and the facts that follow from these.

Lemma. Let a tensor depend on sizes and indices alone, and let p be a permutation of the tokens.
  1. Booleans that are all true, or all false, are the same for every index.
  2. A tensor whose value at tokens i, j, ... is that at p(i), p(j), ... moves with the tokens along all of these axes:
     the identity matrix, since p(i) = p(j) where i = j, and nowhere else.

Not machine-checked: all of it.
"""

from __future__ import annotations

from itertools import combinations

import torch
from torch.fx import Node

from orderproof.logic.rewriting import Substitution
from orderproof.logic.terms import Formula, Term, apply, as_term, at_most, equal, implication, less, negation
from orderproof.recording.captured_graph import ancestors
from orderproof.recording.open_recording import OpenGraph
from orderproof.theorems.facts.moved_fact import Axis, Motion, MovedFact
from orderproof.theorems.facts.open_fact import Cases, OpenFact, Value, axis_variable, index
from orderproof.theorems.statement import TOKENS
from orderproof.theorems.walks.context import Context
from orderproof.theorems.walks.moved_operation import MovedFacts
from orderproof.theorems.walks.open_walk import OpenWalk, derive


def constant_operands(graph: OpenGraph, node: Node) -> list[Node]:
    """The operands that depend on no input."""
    return [operand for operand in node.all_input_nodes if ancestors([operand]).isdisjoint(graph.inputs)]


def constant_walk(graph: OpenGraph, node: Node, context: Context) -> OpenWalk:
    """The facts with values about what a node depends on, none of which is an input."""
    before = ancestors([node])
    return derive(graph, [n for n in graph.graph.nodes if n in before], {}, context)


def compares_indices(graph: OpenGraph, node: Node, facts: MovedFacts) -> bool:
    """True of booleans that follow from the indices of tokens."""
    if not isinstance(facts, MovedFact) or node.meta["val"].dtype is not torch.bool or not facts.is_unmoved:
        return False
    return any(axis.size is TOKENS and axis.motion is Motion.STILL for dim in facts.dims for axis in dim)


def is_constant(graph: OpenGraph, node: Node, context: Context) -> bool:
    """True if booleans that depend on no input are all true, or all false: `index >= 0`."""
    before = ancestors([node])
    if not before.isdisjoint(graph.inputs):
        return False
    fact = constant_walk(graph, node, context).facts.get(node)
    if not isinstance(fact, OpenFact) or not isinstance(fact.value, Formula):
        return False
    return context.proves(fact.value, fact.sizes) or context.proves(negation(fact.value), fact.sizes)


def moved_by_value(graph: OpenGraph, node: Node, facts: MovedFacts, context: Context) -> MovedFact | None:
    """The fact that all axes of tokens move, of a constant whose values are then the same: the identity matrix."""
    if not isinstance(facts, MovedFact) or not facts.is_unmoved:
        return None
    axes = [k for k, axis in enumerate(a for dim in facts.dims for a in dim) if axis.size is TOKENS]
    value_fact = constant_walk(graph, node, context).facts.get(node) if len(axes) > 1 else None
    if not isinstance(value_fact, OpenFact) or value_fact.value is None:
        return None
    if value_fact.dims != tuple(tuple(axis.size for axis in dim) for dim in facts.dims):
        return None
    tokens = {axis_variable(k): apply("p", index(k)) for k in axes}
    second = Substitution(tokens)
    permutation = [f for token in tokens.values() for f in (at_most(0, token), less(token, TOKENS))]
    permutation += [
        implication(equal(tokens[a], tokens[b]), equal(as_term(a), as_term(b))) for a, b in combinations(tokens, 2)
    ]
    if not all(context.proves(one, value_fact.sizes, *permutation) for one in _unchanged(value_fact.value, second)):
        return None
    return with_moved_tokens(facts)


def _unchanged(value: Value, second: Substitution) -> list[Formula]:
    """That a value is the same at other indices."""
    if isinstance(value, Term):
        return [equal(value, second.term(value))]
    conditions = [c for c, _ in value.pairs] if isinstance(value, Cases) else [value]
    pairs = [(c, second.formula(c)) for c in conditions]
    return [implication(a, b) for first, other in pairs for a, b in ((first, other), (other, first))]


def with_moved_tokens(fact: MovedFact) -> MovedFact:
    """The fact with all axes of tokens moved."""
    return MovedFact(
        tuple(tuple(Axis(a.size, Motion.MOVED if a.size is TOKENS else a.motion) for a in dim) for dim in fact.dims)
    )
