"""Where an influence law is broken: the places at which a token first depends on one it must not.

In a tensor with one dimension as long as the token axis, an element at token i may depend on tokens up to i.
The walk is repeated with every such excess clamped, so that each layer that leaks is found, not only the
first one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch.fx import Node

from orderproof.auditing.examine import Examination
from orderproof.prover.constants import is_arbitrary
from orderproof.prover.fact import ALWAYS, NEVER, Fact, Levels, compress
from orderproof.prover.interpret import interpret
from orderproof.prover.rule import Break


def leaks(done: Any, needed: set[Node], exam: Examination) -> list[Break]:
    """Every place where a token comes to depend on a later one."""
    found: list[Break] = []
    starts = exam.starts
    by_name = {n.name: axis for n, axis in starts.items()}
    tokens = exam.tokens

    def mend(node: Node, fact: Fact) -> Fact:
        if int(fact.level.max(initial=NEVER)) < 0 or is_arbitrary(node):
            return fact  # uninitialised memory is no leak where it is overwritten; where it is not, its reader is
        allowed = done.law.allowed(fact.shape, tokens, exam.rows)
        if allowed is None:
            return fact
        level = np.broadcast_to(fact.level, np.broadcast_shapes(fact.level.shape, allowed.shape))
        over = level > allowed
        if not over.any():
            return fact
        if node in needed:
            found.append(Break(node, None, None, (), (), constant=False, reason=_told(over, level, fact, tokens)))
        return Fact(fact.shape, fact.moves, compress(np.minimum(fact.level, allowed)), fact.known)

    captured = done.captured
    facts = {
        n: done.law.input_fact(tuple(int(s) for s in n.meta["val"].shape), by_name[n.name])
        for n in captured.graph.nodes
        if n.name in by_name
    }
    interpret(captured.graph, done.constants, facts, mend=mend)
    return found


def _told(over: NDArray[np.bool_], level: Levels, fact: Fact, tokens: int) -> str:
    """Which token first depends on what it must not, in words."""
    where = tuple(int(i) for i in np.argwhere(over)[0])
    dims = [d for d, size in enumerate(fact.shape) if size == tokens and over.shape[d] > 1]
    who = f"token {where[dims[0]]}" if dims else f"row {where[0]}"
    if int(level[where]) >= ALWAYS:
        return f"{who} comes to depend on anything"
    return f"{who} comes to depend on token {int(level[where])}"
