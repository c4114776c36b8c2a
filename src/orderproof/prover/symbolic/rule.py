"""Rules of the open walk: for a family of operators, the fact about the result from facts about the operands."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.fx import Node

from orderproof.prover.logic.terms import FALSE, TRUE, Term, apply, as_term, holds
from orderproof.prover.symbolic.context import Context
from orderproof.prover.symbolic.open_fact import NotCovered, OpenFact, index, size_of
from orderproof.prover.symbolic.overflow import fits

OpenFacts = OpenFact | tuple[OpenFact, ...]
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


@dataclass
class Application:
    """One operator applied at one node: its arguments, the facts about them, the shapes of its results."""

    node: Node
    facts: dict[Node, OpenFacts]
    shapes: tuple[tuple[Term, ...], ...]
    context: Context

    @property
    def name(self) -> str:
        """The operator without namespace and overload: `add`."""
        return str(self.node.target).split(".")[1] if "." in str(self.node.target) else str(self.node.target)

    def argument(self, index: int, name: str, default: Any = None) -> Any:
        """A positional or keyword argument of the node; `default` if it is absent."""
        if index < len(self.node.args):
            return self.node.args[index]
        return self.node.kwargs.get(name, default)

    def fact(self, node: Any) -> OpenFact:
        """The fact about one tensor operand. Raises `NotCovered`."""
        found = self.facts[node] if isinstance(node, Node) else None
        if not isinstance(found, OpenFact):
            raise NotCovered("one tensor was expected as an operand")
        return found

    @property
    def operand(self) -> OpenFact:
        """The fact about the first operand."""
        return self.fact(self.node.args[0])

    @property
    def shape(self) -> tuple[Term, ...]:
        """The shape of the one result."""
        (shape,) = self.shapes
        return shape

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the result, or of the first of several."""
        value = self.node.meta["val"]
        value = value[0] if isinstance(value, list | tuple) else value
        dtype: torch.dtype = value.dtype
        return dtype

    def dim(self, place: int, name: str = "dim", default: int = 0, *, rank: int | None = None) -> int:
        """A dimension among the arguments, counted from the first."""
        dim = self.argument(place, name, default)
        return int(dim) % (len(self.operand.dims) if rank is None else rank)

    def checked(self, facts: OpenFacts) -> OpenFacts:
        """The facts, if their dimensions have the sizes of the results. Raises `NotCovered`."""
        for fact, shape in zip(facts if isinstance(facts, tuple) else (facts,), self.shapes, strict=False):
            if len(fact.dims) != len(shape) or not all(
                self.context.equal_sizes(size_of(axes), size) for axes, size in zip(fact.dims, shape, strict=True)
            ):
                raise NotCovered("the rule of the operator gives another shape")
        return facts

    def finished(self, fact: OpenFact) -> OpenFact:
        """The fact with the dtype of the result; unknown integers that agree become a function of their indices."""
        fact = replace(fact, dtype=self.dtype)
        if isinstance(fact.value, Term) and not fits(self.context, fact.value, fact.sizes, fact.dtype):
            return OpenFact(fact.dims, fact.dtype, unbounded=TRUE)
        if fact.value is None and fact.same is TRUE and len(self.shapes) == 1:
            return with_function(fact, self.node.name)
        return replace(fact, same=TRUE, hidden=FALSE, zero=FALSE, unbounded=FALSE) if fact.value is not None else fact


def with_function(fact: OpenFact, name: str) -> OpenFact:
    """The same integers or booleans in both runs, as an arbitrary function of their indices."""
    if fact.dtype in INTEGERS and (fact.unbounded is not FALSE or fact.hidden is not FALSE):
        return fact  # the value of an integer says nothing of its size
    indices = [index(k) for k in range(len(fact.sizes))]
    if fact.dtype is torch.bool:
        return replace(fact, value=holds(name, *indices))
    return replace(fact, value=apply(name, *indices)) if fact.dtype in INTEGERS else fact


OpenRule = Callable[[Application], OpenFacts]
_rules: dict[str, OpenRule] = {}
_loaded = False


def open_rule(*operators: str) -> Callable[[OpenRule], OpenRule]:
    """Register a function as the rule of these operators, by name without namespace and overload."""

    def register(function: OpenRule) -> OpenRule:
        for name in operators:
            if name in _rules:
                raise ValueError(f"{name} has a rule already")
            _rules[name] = function
        return function

    return register


def find_open_rule(target: Any) -> OpenRule | None:
    """The rule of an operator; that of pointwise operators, if torch says it is one."""
    global _loaded
    if not _loaded:
        package = importlib.import_module("orderproof.prover.symbolic.rules")
        for info in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{package.__name__}.{info.name}")
        _loaded = True
    name = str(target)
    parts = name.split(".")
    if not name.startswith("aten.") or len(parts) < 2:
        return _rules.get(name)
    found = _rules.get(parts[1])
    if found is None and torch.Tag.pointwise in getattr(target, "tags", ()):
        found = _rules["<pointwise>"]
    return found


def number(value: Any) -> Term | None:
    """A number among the arguments as a term; None if it is not an integer."""
    if isinstance(value, Term):
        return value
    return as_term(value) if isinstance(value, int) and not isinstance(value, bool) else None
