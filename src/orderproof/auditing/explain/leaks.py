"""The leaks of a graph: the places at which a token first depends on one that it must not depend on.

In a tensor with one dimension as long as the token axis, an element at token i may depend on tokens up to i. The walk
is repeated with every excess clamped, which finds each layer that leaks, not only the first one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch.fx import Node

from orderproof.auditing.explain.mixing import Mixing
from orderproof.auditing.record.context import AuditContext
from orderproof.auditing.record.law_walk import LawWalk, input_facts
from orderproof.diagnosis.analysis import analyze
from orderproof.diagnosis.domain.constants import Constants
from orderproof.diagnosis.domain.fact import NEVER, DependenceArray, Fact, compress
from orderproof.diagnosis.rule import RelationBreak
from orderproof.recording.nondeterminism import is_nondeterministic

MAX_MASK_SEARCH = 24  # [operators] before the place of a leak that are searched for its mask
_PRODUCTS = {torch.ops.aten.linear.default, torch.ops.aten.addmm.default, torch.ops.aten.mm.default}


class Leak(NamedTuple):
    """A place at which a token depends on another that it must not depend on, and how its operator mixes them."""

    place: RelationBreak
    kind: str


def find_leaks(done: LawWalk, needed: set[Node], context: AuditContext, *, pooled: bool) -> list[Leak]:
    """Every leak, at the operator at which its tokens mix; at that of the leak itself if it passed a mask.

    ``pooled``: the output has no axis of tokens. A tensor without one is then left of all tokens; else it may be one
    step of a loop over them.
    """
    leaks: dict[Node, tuple[Node, Leak]] = {}
    tokens = context.token_count
    mixing = Mixing(tokens)

    def clamp_leak(node: Node, fact: Fact) -> Fact:
        mixing.note(node, fact)
        if is_nondeterministic(node):  # uninitialised memory is no leak
            return Fact(fact.shape, fact.moves, np.full_like(fact.dependence, NEVER), fact.ranges)
        is_step = tokens not in fact.shape and not pooled and not done.law.replaces_whole_rows
        if int(fact.dependence.max(initial=NEVER)) < 0 or is_step:
            return fact
        allowed = done.law.max_dependence(fact.shape, tokens, context.batch_size)
        if allowed is None:
            return fact
        level = np.broadcast_to(fact.dependence, np.broadcast_shapes(fact.dependence.shape, allowed.shape))
        over = level > allowed
        if not over.any():
            return fact
        if node in needed:
            mask, origin = nearest_mask(node, done.constants), mixing.origin(node)
            reason = _leak_description(done.law, over, level, fact, tokens)
            at = node if mask is not None and origin.passes_softmax else origin.node
            found = RelationBreak(at, mask, None, (), (), constant=False, reason=reason)
            leaks.setdefault(at, (node, Leak(found, origin.kind)))
        clamped = Fact(fact.shape, fact.moves, compress(np.minimum(fact.dependence, allowed)), fact.ranges)
        mixing.repaired(node, clamped)
        return clamped

    captured = done.captured
    facts = input_facts(context, done.law, captured)
    mixing.start(facts)
    analyze(captured.graph, done.constants, facts, transform_fact=clamp_leak)
    spreading = _spreading_nodes(done, needed, context)
    return [leak for node, leak in leaks.values() if node in spreading] or [leak for _, leak in leaks.values()]


def _spreading_nodes(done: LawWalk, needed: set[Node], context: AuditContext) -> set[Node]:
    """The nodes from which a violation reaches an output: what a later operator takes away again is no leak.

    So a shift by a token leaks nothing if what it brings from another document is then set to zero.
    """
    waiting = [node for node in done.captured.outputs.values() if node in needed]
    found = set(waiting)
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
    fact = done.walk.fact(node)
    if int(fact.dependence.max(initial=NEVER)) < 0:
        return False
    allowed = done.law.max_dependence(fact.shape, context.token_count, context.batch_size)
    return allowed is None or bool((fact.dependence > allowed).any())


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
