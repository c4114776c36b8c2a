"""Operators of a loop of open length in a recorded graph.

A loop `for i in range(n)` whose number of iterations is open is recorded once, for an index i that is a symbol:

    state = LOOP_STATE(initial, i, n)                 one for each tensor that an iteration hands to the next
    ...                                               the body, once
    ends = LOOP_END([state, ...], [next, ...], i, n)  the states after n iterations
    stacked = LOOP_STACK(ends, value, dim, i, n)      the values of all iterations, along a new dimension

Between the first LOOP_STATE of an index and its LOOP_END there are the nodes of the body, and no others.
"""

from __future__ import annotations

from typing import Any

from torch.fx import Graph, Node

from orderproof.logic.terms import Term


class LoopOperator:
    """An operator of a loop, which only the interpreters of open graphs know."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __str__(self) -> str:
        return f"loop.{self.__name__}.default"

    __repr__ = __str__

    def __call__(self, *_: Any, **__: Any) -> Any:
        """Raise `TypeError`: a graph needs a callable target."""
        raise TypeError(f"{self} is no function")


LOOP_STATE, LOOP_END, LOOP_STACK = LoopOperator("state"), LoopOperator("end"), LoopOperator("stack")


def loop_index(node: Node) -> Term:
    """The index of the loop of a LOOP_STATE or LOOP_END."""
    found = node.args[-2]
    assert isinstance(found, Term)
    return found


def loop_count(node: Node) -> Term | int:
    """The number of iterations of the loop of a LOOP_STATE or LOOP_END."""
    found = node.args[-1]
    assert isinstance(found, Term | int)
    return found


def loop_body(graph: Graph, first: Node) -> tuple[list[Node], Node]:
    """The nodes of a loop from its first LOOP_STATE on, and its LOOP_END."""
    nodes, node = [], first
    while not (node.target is LOOP_END and loop_index(node) is loop_index(first)):
        nodes.append(node)
        node = node.next
        if node is graph._root:
            raise ValueError("a loop has no end")
    return nodes, node
