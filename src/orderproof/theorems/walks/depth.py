"""Induction over layers: a proof for the recorded layers is one for every number of them.

Let F be the fact about the result of the last recorded layer. If what enters the first layer fulfils F, and each layer
maps F to a fact that implies F, then F holds after any number of layers with the code of the recorded ones, in any
order. `layers` finds them.

Machine-checked (proofs/symbolic/depth.v): depth_induction, depth_induction_weaken.
Not machine-checked: that layers have the same code, which is compared.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch.fx import Node

from orderproof.logic.terms import FALSE
from orderproof.recording.open_recording import OpenGraph
from orderproof.theorems.facts.open_fact import OpenFact
from orderproof.theorems.walks.context import Context
from orderproof.theorems.walks.layers import Layer, repeated_layers
from orderproof.theorems.walks.open_walk import OpenWalk, derive


@dataclass(frozen=True)
class Induction:
    """An induction over layers: for each the facts from the invariant, or None if the walk began it with that."""

    layers: tuple[Layer, ...]
    derived: tuple[OpenWalk | None, ...]


def holds_at_every_depth(graph: OpenGraph, done: OpenWalk, output: Node, context: Context) -> bool:
    """True if the fact about an output holds for every number of the recorded layers."""
    return induction(graph, done, output, context) is not None


def induction(graph: OpenGraph, done: OpenWalk, output: Node, context: Context) -> Induction | None:
    """The induction that proves the fact about an output for every number of the recorded layers; None if it fails."""

    def matching(first: Node, second: Node) -> bool:
        return _is_alike(done.facts.get(first), done.facts.get(second))

    layers = repeated_layers(graph, output, matching)
    if not layers or any(node in context.common for layer in layers for node in (layer.entry, layer.result)):
        return None
    invariant = done.facts.get(layers[-1].result)
    if not isinstance(invariant, OpenFact) or any(
        part is not FALSE for part in (invariant.unbounded, invariant.hidden, invariant.zero)
    ):
        return None
    invariant = OpenFact(invariant.dims, invariant.dtype, invariant.same)
    if not _implies(context, invariant, done.facts.get(layers[0].entry)):
        return None
    derived: list[OpenWalk | None] = []
    for layer in layers:
        entered = done.facts.get(layer.entry)
        if isinstance(entered, OpenFact) and entered == invariant:
            result = done.facts.get(layer.result)  # the walk began this layer with the invariant
            derived.append(None)
        else:
            own = set(layer.nodes)
            known = {node: fact for node, fact in done.facts.items() if node not in own} | {layer.entry: invariant}
            again = derive(graph, layer.nodes, known, context)
            result = again.facts.get(layer.result)
            derived.append(again)
        if not _implies(context, invariant, result):
            return None
    return Induction(tuple(layers), tuple(derived))


def _implies(context: Context, invariant: OpenFact, fact: object) -> bool:
    """True if a fact is at least as strong as the invariant."""
    if not isinstance(fact, OpenFact) or not _is_alike(invariant, fact):
        return False
    ordinary = fact.unbounded is FALSE and fact.hidden is FALSE
    return ordinary and context.proves(fact.same, fact.sizes, invariant.same)


def _is_alike(first: object, second: object) -> bool:
    """True if two facts are about tensors of the same shape and dtype."""
    if not isinstance(first, OpenFact) or not isinstance(second, OpenFact):
        return False
    return first.dims == second.dims and first.dtype == second.dtype
