"""An operator of an open graph with the facts about its operands, and tables of rules by operator.

Both walks over open graphs use these: that of values which agree in two runs, and that of tensors which move with the
tokens.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import torch
from torch.fx import Node

from orderproof.logic.terms import Term, as_term
from orderproof.theorems.facts.open_fact import NotCovered
from orderproof.theorems.walks.context import Context

FactT = TypeVar("FactT")
RuleT = TypeVar("RuleT")


def operator_of(node: Node) -> str:
    """The operator of a node without namespace and overload: `add`."""
    name = str(node.target)
    return name.split(".")[1] if "." in name else name


@dataclass
class Operation(Generic[FactT]):
    """One operator at one node: its arguments, the facts about them, the shapes of its results."""

    node: Node
    facts: dict[Node, FactT | tuple[FactT, ...]]
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
        operand = self.node.args[0]
        assert isinstance(operand, Node)
        return int(operand.meta["val"].dim())

    def dim(self, place: int, name: str = "dim", default: int = 0, *, rank: int | None = None) -> int:
        """A dimension among the arguments, counted from the first."""
        dim = self.argument(place, name, default)
        return int(dim) % (self.rank if rank is None else rank)


class RuleTable(Generic[RuleT]):
    """Rules by operator, registered by the modules of a package, which are loaded when a rule is asked for."""

    def __init__(self, package: str) -> None:
        self.package = package
        self.rules: dict[str, RuleT] = {}
        self._loaded = False

    def register(self, *operators: str) -> Callable[[RuleT], RuleT]:
        """Register a function as the rule of these operators, by name without namespace and overload."""

        def add(function: RuleT) -> RuleT:
            for name in operators:
                if name in self.rules:
                    raise ValueError(f"{name} has a rule already")
                self.rules[name] = function
            return function

        return add

    def find(self, target: Any) -> RuleT | None:
        """The rule of an operator; that of pointwise operators, if torch says it is one."""
        if not self._loaded:
            package = importlib.import_module(self.package)
            for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
                importlib.import_module(info.name)
            self._loaded = True
        name = str(target)
        parts = name.split(".")
        if not name.startswith("aten.") or len(parts) < 2:
            return self.rules.get(name)
        found = self.rules.get(parts[1])
        if found is None and torch.Tag.pointwise in getattr(target, "tags", ()):
            found = self.rules["<pointwise>"]
        return found


def number(value: Any) -> Term | None:
    """A number among the arguments as a term; None if it is not an integer."""
    if isinstance(value, Term):
        return value
    return as_term(value) if isinstance(value, int) and not isinstance(value, bool) else None
