"""An operator of an open graph with the facts about its operands.

Both walks over open graphs use it: that of values which agree in two runs, and that of tensors which move with the
tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, Protocol, TypeVar

import torch
from torch.fx import Node

from orderproof.logic.terms import Term, as_term
from orderproof.theorems.facts.open_fact import NotCovered
from orderproof.theorems.walks.context import Context


class _Shaped(Protocol):
    @property
    def shape(self) -> tuple[Term, ...]: ...


FactT = TypeVar("FactT", bound=_Shaped)


def operator_of(node: Node) -> str:
    """The operator of a node without namespace and overload: `add`."""
    return _name_of(node.target)


@cache
def _name_of(target: object) -> str:
    name = str(target)
    return name.split(".")[1] if "." in name else name


@dataclass
class Operation(Generic[FactT]):
    """One operator at one node: its arguments, the facts about them, the shapes of its results."""

    node: Node
    facts: Mapping[Node, FactT | tuple[FactT, ...]]
    shapes: tuple[tuple[Term, ...], ...]
    context: Context

    @property
    def name(self) -> str:
        """The operator without namespace and overload: `add`."""
        return operator_of(self.node)

    def argument(self, index: int, name: str, default: Any = None) -> Any:
        """A positional or keyword argument of the node; `default` if it is absent."""
        if index < len(self.node.args):
            return self.node.args[index]
        return self.node.kwargs.get(name, default)

    def fact(self, node: Any) -> FactT:
        """The fact about one tensor operand. Raises `NotCovered`."""
        found = self.facts.get(node) if isinstance(node, Node) else None
        if found is None or isinstance(found, tuple):
            raise NotCovered("one tensor was expected as an operand")
        return found

    @property
    def operand(self) -> FactT:
        """The fact about the first operand."""
        return self.fact(self.node.args[0])

    @property
    def shape(self) -> tuple[Term, ...]:
        """The shape of the one result. Raises `NotCovered`."""
        if len(self.shapes) != 1:
            raise NotCovered("an operator with several results")
        return self.shapes[0]

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the result, or of the first of several."""
        value = self.node.meta["val"]
        value = value[0] if isinstance(value, list | tuple) else value
        dtype: torch.dtype = value.dtype
        return dtype

    @property
    def rank(self) -> int:
        """The number of dimensions of the first operand."""
        return self.rank_of(self.node.args[0])

    def rank_of(self, node: Any) -> int:
        """The number of dimensions of an operand."""
        if not isinstance(node, Node):
            raise NotCovered("one tensor was expected as an operand")
        return int(node.meta["val"].dim())

    def dim(self, place: int, name: str = "dim", default: int = 0, *, rank: int | None = None) -> int:
        """A dimension among the arguments, counted from the first."""
        dim = self.argument(place, name, default)
        return int(dim) % (self.rank if rank is None else rank)

    def dims(self, value: Any) -> list[int]:
        """The dimensions that an argument names, which is None or empty for all, a number or a list."""
        chosen = range(self.rank) if value is None or value == [] else [value] if isinstance(value, int) else value
        return [int(d) % self.rank for d in chosen if self.rank]

    def checked(self, facts: FactT | tuple[FactT, ...]) -> FactT | tuple[FactT, ...]:
        """The facts, if their dimensions have the sizes of the results. Raises `NotCovered`."""
        for fact, shape in zip(facts if isinstance(facts, tuple) else (facts,), self.shapes, strict=False):
            own = fact.shape
            if len(own) != len(shape) or not all(map(self.context.equal_sizes, own, shape)):
                raise NotCovered("the rule of the operator gives another shape")
        return facts


def number(value: Any) -> Term | None:
    """A number among the arguments as a term; None if it is not an integer."""
    if isinstance(value, Term):
        return value
    return as_term(value) if isinstance(value, int) and not isinstance(value, bool) else None


def tensors(values: Any) -> list[Node]:
    """The nodes in a list of arguments."""
    return [value for value in values if isinstance(value, Node)]
