"""Rules: for a family of operators, the fact about the result that follows from facts about the operands.

A rule is a function from an `Application` (one operator applied at one node) to a fact, registered under
the names of its operators and under the name of its lemma. Where nothing follows it raises
`NothingFollows` with the reason; it never guesses.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch.fx import Node
from torch.utils._pytree import tree_leaves

from orderproof.prover.fact import FLOAT16_LARGE, Fact, Shape, may_mask

if TYPE_CHECKING:
    from orderproof.prover.constants import Constants
    from orderproof.prover.move import Move

_ORDERS = {"p", "ord"}  # numbers that are no elements: of a norm
Facts = Fact | tuple[Fact, ...]
Place = int | str | tuple[int, int] | None  # which argument of a node: its index, its name, or an index in a list


class NothingFollows(Exception):
    """No lemma covers this operator on these facts; the message is the reason."""


@dataclass(frozen=True, slots=True)
class Break:
    """A place where the relation between the runs is lost: an operand that does not move as it must."""

    node: Node
    operand: Node | None  # the operand at fault; None where it is the operator itself
    argument: Place  # where that operand stands among the node's arguments
    dims: tuple[int, ...]  # the operand's dimensions that would have to be uniform
    moves: tuple[Move, ...]  # how they would have to move
    constant: bool
    reason: str


@dataclass(slots=True)
class Application:
    """One operator applied at one node: its arguments, their facts, and a place to report to."""

    node: Node
    facts: dict[Node, Facts]
    constants: Constants
    repairing: bool  # go on after a break as if the operand had moved as it must
    breaks: list[Break]
    assume: Callable[[str], None]
    lemma: str = ""
    broken: bool = field(default=False)

    @property
    def args(self) -> tuple[Any, ...]:
        """The node's positional arguments."""
        return self.node.args

    def argument(self, index: int, name: str, default: Any = None) -> Any:
        """An argument given by place or by name."""
        if index < len(self.node.args):
            return self.node.args[index]
        return self.node.kwargs.get(name, default)

    def fact(self, node: Node) -> Fact:
        """The fact about one tensor operand."""
        found = self.facts[node]
        if isinstance(found, tuple):
            raise NothingFollows(f"{node.name} is several tensors where one was expected")
        return found

    @property
    def shape(self) -> Shape:
        """The shape of the result."""
        return shape_of(self.node)

    @property
    def target(self) -> str:
        """The operator's full name, such as aten.add.Tensor."""
        return str(self.node.target)

    def may_mask(self, node: Node) -> bool:
        """Whether an operand may hold entries as negative as a mask, or infinite."""
        if node in self.constants and not self.constants.opaque(node):
            return self.constants.is_large(node)
        found = self.facts.get(node)
        facts = found if isinstance(found, tuple) else (found,)
        return any(f is not None and may_mask(f.known) for f in facts)

    def report(self, found: Break) -> None:
        """Note a break; the caller decides what the result then is."""
        self.broken = True
        self.breaks.append(found)


def shape_of(node: Node) -> Shape:
    """The shape of a node's tensor value."""
    value = node.meta["val"]
    return tuple(int(s) for s in value.shape)


def dtype_of(node: Node) -> torch.dtype:
    """The dtype of a node's tensor value."""
    dtype: torch.dtype = node.meta["val"].dtype
    return dtype


def has_large_number(node: Node) -> bool:
    """Whether a number that is combined with the elements is as large as a mask, infinite, or none."""
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return False
    given = [(x.name, str(x.type)) for x in schema.arguments]
    values = {name: v for (name, _), v in zip(given, node.args, strict=False)} | node.kwargs
    if "max_pool" in str(node.target) and set(tree_leaves(values.get("dilation", 1))) != {1}:
        return True  # of a window that holds border alone, minus infinity
    numbers = [
        values.get(name) for name, kind in given if name not in _ORDERS and ("number" in kind or "float" in kind)
    ]
    return any(isinstance(v, int | float) and not abs(v) < FLOAT16_LARGE for v in numbers)


Function = Callable[[Application], Facts]


@dataclass(frozen=True, slots=True)
class Rule:
    """One lemma, the operators it covers, and the function that applies it."""

    lemma: str
    operators: tuple[str, ...]
    apply: Function
    module: str


_by_operator: dict[str, Rule] = {}
_rules: list[Rule] = []
_loaded = False


def rule(lemma: str, *operators: str) -> Callable[[Function], Function]:
    """Register a function as the rule of these operators (``softmax.int``, or ``softmax`` for every overload)."""

    def register(function: Function) -> Function:
        made = Rule(lemma, operators, function, function.__module__)
        for name in operators:
            key = name if name.startswith("transformers.") else f"aten.{name}"
            if key in _by_operator:
                raise ValueError(f"{key} has a rule already: {_by_operator[key].lemma} in {_by_operator[key].module}")
            _by_operator[key] = made
        _rules.append(made)
        return function

    return register


def _load() -> None:
    global _loaded
    if not _loaded:
        package = importlib.import_module("orderproof.prover.rules")
        for info in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{package.__name__}.{info.name}")
        _loaded = True


def rules() -> Iterator[Rule]:
    """Every registered rule."""
    _load()
    yield from _rules


def find(target: object) -> Rule | None:
    """The rule of an operator: by its full name, then by the name of its overload packet, then by its tag."""
    _load()
    name = str(target)
    found = _by_operator.get(name)
    if found is None and name.startswith("aten."):
        found = _by_operator.get(".".join(name.split(".")[:2]))
    if found is None and torch.Tag.pointwise in getattr(target, "tags", ()):
        found = _by_operator["aten.<pointwise>"]
    return found


# Lemmas of the walk itself, which need no file of their own.
PLAIN = {
    "given": "Given: the relation between the inputs.",
    "same_in_both_runs": "A value that depends on no input is the same in both runs.",
    "part_of_a_tuple": "One of several results.",
    "pure_function_of_unmoved": "A deterministic operator that reads nothing that moves gives nothing that moves.",
}


def sentences() -> dict[str, str]:
    """Each lemma in one sentence: the first line of its file."""
    found = dict(PLAIN)
    for made in rules():
        text = importlib.import_module(made.module).__doc__ or ""
        found.setdefault(made.lemma, text.strip().splitlines()[0])
    return found
