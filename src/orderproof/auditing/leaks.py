"""Where an influence law is broken: the places at which a token first depends on one it must not.

In a tensor with one dimension as long as the token axis, an element at token i may depend on tokens up to i.
The walk is repeated with every such excess clamped, so that each layer that leaks is found, not only the
first one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.fx import Node

from orderproof.auditing.examine import Examination
from orderproof.prover.constants import Constants, is_arbitrary
from orderproof.prover.fact import ALWAYS, NEVER, Fact, Levels, compress
from orderproof.prover.interpret import interpret
from orderproof.prover.rule import Break

NEAR = 8  # operators between a mask and the place where its leak shows
_PRODUCTS = {torch.ops.aten.linear.default, torch.ops.aten.addmm.default, torch.ops.aten.mm.default}


def leaks(done: Any, needed: set[Node], exam: Examination) -> list[Break]:
    """Every place where a token comes to depend on a later one."""
    found: list[Break] = []
    starts = exam.starts
    by_name = {n.name: axis for n, axis in starts.items()}
    tokens = exam.tokens

    def mend(node: Node, fact: Fact) -> Fact:
        if is_arbitrary(node):  # memory to be written to is no leak
            return Fact(fact.shape, fact.moves, np.full_like(fact.level, NEVER), fact.known)
        if int(fact.level.max(initial=NEVER)) < 0:
            return fact
        allowed = done.law.allowed(fact.shape, tokens, exam.rows)
        if allowed is None:
            return fact
        level = np.broadcast_to(fact.level, np.broadcast_shapes(fact.level.shape, allowed.shape))
        over = level > allowed
        if not over.any():
            return fact
        if node in needed:
            mask = mask_of(node, done.constants)
            found.append(Break(node, mask, None, (), (), constant=False, reason=_told(over, level, fact, tokens)))
        return Fact(fact.shape, fact.moves, compress(np.minimum(fact.level, allowed)), fact.known)

    captured = done.captured
    facts = {
        n: done.law.input_fact(tuple(int(s) for s in n.meta["val"].shape), by_name[n.name])
        for n in captured.graph.nodes
        if n.name in by_name
    }
    interpret(captured.graph, done.constants, facts, mend=mend)
    return found


def mask_of(node: Node, constants: Constants) -> Node | None:
    """The mask that let a leak through: the nearest constant that adds, selects or hides on the way to an operator."""
    queue, seen = [node], {node}
    for _ in range(NEAR):
        if not queue:
            return None
        here = queue.pop(0)
        for n in here.all_input_nodes:
            if n in constants and not constants.opaque(n) and _hides(n, constants):
                return n
            if n not in seen and n not in constants and here.target not in _PRODUCTS:
                seen.add(n)
                queue.append(n)
    return None


def _hides(node: Node, constants: Constants) -> bool:
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor) or value.dim() < 2:
        return False
    return value.dtype is torch.bool or constants.is_large(node) or constants.is_mask(node)


def _told(over: NDArray[np.bool_], level: Levels, fact: Fact, tokens: int) -> str:
    """Which token first depends on what it must not, in words."""
    where = tuple(int(i) for i in np.argwhere(over)[0])
    dims = [d for d, size in enumerate(fact.shape) if size == tokens and over.shape[d] > 1]
    who = f"token {where[dims[0]]}" if dims else f"row {where[0]}"
    if int(level[where]) >= ALWAYS:
        return f"{who} comes to depend on anything"
    return f"{who} comes to depend on token {int(level[where])}"
