"""Where an influence law is broken: the places at which a token first depends on one it must not.

In a tensor with one dimension as long as the token axis, an element at token i may depend on tokens up to i.
The walk is repeated with every such excess clamped, so that each layer that leaks is found, not only the
first one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from torch.fx import Node

from orderproof.auditing.examine import Examination
from orderproof.prover.constants import is_arbitrary
from orderproof.prover.fact import ALWAYS, Fact, compress
from orderproof.prover.interpret import interpret
from orderproof.prover.rule import Break


def leaks(done: Any, needed: set[Node], exam: Examination) -> list[Break]:
    """Every place where a token comes to depend on a later one."""
    found: list[Break] = []
    starts = exam.starts
    by_name = {n.name: axis for n, axis in starts.items()}
    tokens = exam.tokens

    def mend(node: Node, fact: Fact) -> Fact:
        dims = [d for d, size in enumerate(fact.shape) if size == tokens]
        if len(dims) != 1 or int(fact.level.max()) < 0 or is_arbitrary(node):
            return fact  # uninitialised memory is no leak where it is overwritten; where it is not, its reader is
        d = dims[0]
        place = np.arange(tokens).reshape([-1 if k == d else 1 for k in range(len(fact.shape))])
        over = fact.level > place
        if not over.any():
            return fact
        where = np.argwhere(np.broadcast_to(over, np.broadcast_shapes(over.shape, place.shape)))[0]
        i = int(where[d])
        level = int(np.broadcast_to(fact.level, np.broadcast_shapes(fact.level.shape, place.shape))[tuple(where)])
        if node in needed:
            on = "on anything" if level >= ALWAYS else f"on token {level}"
            found.append(Break(node, None, None, (), (), constant=False, reason=f"token {i} comes to depend {on}"))
        return Fact(fact.shape, fact.moves, compress(np.minimum(fact.level, place)), fact.known)

    captured = done.captured
    facts = {
        n: done.law.input_fact(tuple(int(s) for s in n.meta["val"].shape), by_name[n.name])
        for n in captured.graph.nodes
        if n.name in by_name
    }
    interpret(captured.graph, done.constants, facts, mend=mend)
    return found
