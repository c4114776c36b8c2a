"""The leaks of a graph: the places at which a token first depends on one that it must not depend on.

In a tensor with one dimension as long as the token axis, an element at token i may depend on tokens up to i. The walk
is repeated with every excess clamped, which finds each layer that leaks, not only the first one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.fx import Node

from orderproof.auditing.record.context import AuditContext
from orderproof.auditing.record.law_walk import LawWalk, input_facts
from orderproof.diagnosis.analysis import analyze
from orderproof.diagnosis.domain.constants import Constants
from orderproof.diagnosis.domain.fact import NEVER, DependenceArray, Fact, compress
from orderproof.diagnosis.rule import RelationBreak
from orderproof.recording.captured_graph import ancestors
from orderproof.recording.nondeterminism import is_nondeterministic

MAX_MASK_SEARCH = 24  # [operators] before the place of a leak that are searched for its mask
_STACK = torch.ops.aten.stack.default
_JOINS = {_STACK, torch.ops.aten.cat.default}
_PRODUCTS = {torch.ops.aten.linear.default, torch.ops.aten.addmm.default, torch.ops.aten.mm.default}


def find_leaks(done: LawWalk, needed: set[Node], context: AuditContext) -> list[RelationBreak]:
    """Every place at which a token depends on another that it must not depend on."""
    leaks: list[RelationBreak] = []
    tokens = context.token_count

    def clamp_leak(node: Node, fact: Fact) -> Fact:
        if is_nondeterministic(node):  # uninitialised memory is no leak
            return Fact(fact.shape, fact.moves, np.full_like(fact.dependence, NEVER), fact.ranges)
        if int(fact.dependence.max(initial=NEVER)) < 0:
            return fact
        allowed = done.law.max_dependence(fact.shape, tokens, context.batch_size)
        if allowed is None:
            return fact
        level = np.broadcast_to(fact.dependence, np.broadcast_shapes(fact.dependence.shape, allowed.shape))
        over = level > allowed
        if not over.any():
            return fact
        if node in needed:
            mask = nearest_mask(node, done.constants)
            reason = _leak_description(done.law, over, level, fact, tokens)
            place = _part_with(node, over, fact, done)
            leaks.append(RelationBreak(place, mask, None, (), (), constant=False, reason=reason))
        return Fact(fact.shape, fact.moves, compress(np.minimum(fact.dependence, allowed)), fact.ranges)

    captured = done.captured
    facts = input_facts(context, done.law, captured)
    analyze(captured.graph, done.constants, facts, transform_fact=clamp_leak)
    spreading = _spreading_nodes(done, needed, context)
    return [leak for leak in leaks if leak.node in spreading] or leaks


def _spreading_nodes(done: LawWalk, needed: set[Node], context: AuditContext) -> set[Node]:
    """The nodes from which a violation reaches an output: what a later operator takes away again is no leak.

    An operator takes it away if all that it gives may depend on what it depends on, as where documents are masked.
    """
    outputs = [node for node in done.captured.outputs.values() if node in needed]
    found, waiting = set(outputs), outputs
    while waiting:
        for node in waiting.pop().all_input_nodes:
            if node not in found and _may_violate(done, node, context):
                found.add(node)
                waiting.append(node)
    return found


def _may_violate(done: LawWalk, node: Node, context: AuditContext) -> bool:
    """True if a node depends on what it must not, or its shape does not say on what it may."""
    if not isinstance(node.meta.get("val"), torch.Tensor):
        return isinstance(node.meta.get("val"), list | tuple)
    if not _depends(done, node):
        return False
    fact = done.walk.fact(node)
    allowed = done.law.max_dependence(fact.shape, context.token_count, context.batch_size)
    return allowed is None or bool((fact.dependence > allowed).any())


def _part_with(node: Node, over: NDArray[np.bool_], fact: Fact, done: LawWalk) -> Node:
    """Where the first element in `over` comes from, if an operator joins parts along the tokens; else the operator.

    It is followed back to what another part is made of too: to a step of a loop that goes on with the state before it.
    """
    if node.target not in _JOINS:
        return node
    parts, dim = [*node.all_input_nodes], node.args[1] if len(node.args) > 1 else node.kwargs.get("dim", 0)
    if len(parts) < 2 or not isinstance(dim, int) or parts != list(node.args[0]):  # type: ignore[arg-type]
        return node
    sizes = [1 if node.target is _STACK else part.meta["val"].shape[dim] for part in parts]
    joined: NDArray[np.bool_] = np.moveaxis(np.broadcast_to(over, fact.shape), dim, 0).reshape(fact.shape[dim], -1)
    entries = np.asarray(joined.any(axis=1))
    owner = np.repeat(np.arange(len(parts)), sizes)
    first = int(owner[entries.argmax()])
    shared = ancestors([parts[k] for k in range(len(parts)) if not entries[owner == k].any()])
    place = parts[first]
    while True:
        found = (n for n in place.all_input_nodes if n not in shared and _depends(done, n))
        following = next(found, None)
        if following is None:
            return place
        place = following


def _depends(done: LawWalk, node: Node) -> bool:
    """True if a tensor depends on what the law replaces."""
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and int(done.walk.fact(node).dependence.max(initial=NEVER)) >= 0


def nearest_mask(node: Node, constants: Constants) -> Node | None:
    """The mask that a leak passed: the nearest constant before an operator that adds, selects or masks."""
    queue, seen = [node], {node}
    for _ in range(MAX_MASK_SEARCH):
        if not queue:
            return None
        here = queue.pop(0)
        for n in here.all_input_nodes:
            if n in constants and not constants.is_opaque(n) and _is_mask_like(n, constants):
                return n
            if n not in seen and n not in constants and here.target not in _PRODUCTS:
                seen.add(n)
                queue.append(n)
    return None


def _is_mask_like(node: Node, constants: Constants) -> bool:
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor) or value.dim() < 2:
        return False
    return value.dtype is torch.bool or constants.has_masking_magnitude(node) or constants.is_multiplicative_mask(node)


def _leak_description(law: Any, over: NDArray[np.bool_], level: DependenceArray, fact: Fact, tokens: int) -> str:
    """The first token that depends on another that it must not depend on, in words."""
    where = tuple(int(i) for i in np.argwhere(over)[0])
    dims = [d for d, size in enumerate(fact.shape) if size == tokens and over.shape[d] > 1]
    element = f"token {where[dims[0]]}" if dims else f"row {where[0]}"
    return f"{element} comes to depend on {law.dependence_text(int(level[where]))}"
